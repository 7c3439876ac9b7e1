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

// Many readers ask for something about their lease while a renewal has no reply; then the lease is lost.
func TestLeaseRequests_DoNotCopyTheirLists(t *testing.T) {
	for name, ask := range map[string]func(l *lock.Lock, id uint64){
		"ensure": func(l *lock.Lock, id uint64) { l.Ensure(4*sec, id, 9*sec, t) },
		"extend": func(l *lock.Lock, id uint64) { l.Extend(4*sec, id, 0, 9*sec, t) },
	} {
		with := func(n int) (l *lock.Lock, do func(event func(*lock.Lock))) {
			cfg := scriptConfig
			cfg.QueueLimit, cfg.HandOffLimit = n, 10*sec
			fresh := lock.New(&cfg, &lock.Features{Shares: true, WaitQueue: true})
			l = &fresh
			l.SetNextTerm(1)
			sent := uint64(0)
			do = func(event func(*lock.Lock)) { // to a copy, as an actor does
				next := *l
				event(&next)
				for e := (machine.Effect{}); next.NextEffect(&e); {
					if e.Kind == machine.Send {
						sent = e.Ref.(*lock.Command).Seq
					}
				}
				*l = next
			}
			for i := range n {
				do(func(l *lock.Lock) { l.Acquire(0, machine.Request{ID: uint64(i + 1), Mode: machine.Shared, Ref: t}) })
				do(func(l *lock.Lock) { l.Replied(0, sent, lock.Result{Outcome: lock.Done}) })
			}
			do(func(l *lock.Lock) { l.Tick(4 * sec) })
			return l, do
		}
		t.Run(name, func(t *testing.T) {
			machinetest.Linear(t, func(n int) (func(id int), func() int) {
				l, do := with(n)
				return func(id int) { do(func(l *lock.Lock) { ask(l, uint64(id)) }) }, func() int { return l.Summary().Waiters }
			})
		})
		t.Run(name+" and lose", func(t *testing.T) {
			machinetest.Linear(t, func(n int) (func(id int), func() int) {
				l, do := with(n)
				for i := range n {
					do(func(l *lock.Lock) { ask(l, uint64(i+1)) })
				}
				return func(int) { do(func(l *lock.Lock) { l.Tick(10 * sec) }) }, func() int { return l.Summary().Holds }
			})
		})
	}
}
