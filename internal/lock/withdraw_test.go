package lock_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/machinetest"
)

func TestWithdrawals_DoNotCopyTheQueue(t *testing.T) {
	for name, features := range map[string]lock.Features{"local": {WaitQueue: true}, "fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			machinetest.Withdrawals(t, func(queueLimit int) lock.Lock {
				cfg := scriptConfig
				cfg.QueueLimit = queueLimit
				return lock.New(&cfg, &features)
			}, func(l *lock.Lock, req machine.Request) {
				if !l.HasNextTerm() {
					l.SetNextTerm(req.ID)
				}
				l.Acquire(0, req)
			})
		})
	}
}
