package expirable

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/machinetest"
)

func TestWithdrawals_DoNotCopyTheQueue(t *testing.T) {
	machinetest.Withdrawals(t, func(queueLimit int) Semaphore {
		cfg := testConfig
		cfg.QueueLimit = queueLimit
		return New(&cfg)
	}, func(s *Semaphore, req machine.Request) { s.Acquire(0, Request{Request: req, Count: 1}) })
}
