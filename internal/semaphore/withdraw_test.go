package semaphore

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/machinetest"
)

func TestWithdrawals_DoNotCopyTheQueue(t *testing.T) {
	machinetest.Withdrawals(t, func(queueLimit int) Pool {
		cfg := testConfig
		cfg.QueueLimit = queueLimit
		p := New(&cfg)
		p.SetNextNumber(1) // for the only command
		return p
	}, func(p *Pool, req machine.Request) { p.Acquire(0, Request{Request: req, N: 1}) })
}
