package lock_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/machinetest"
)

func TestWithdrawals_DoNotCopyTheQueue(t *testing.T) {
	ends := func(waiter int) machine.Instant { return time.Hour + machine.Instant(waiter) }
	for name, kind := range map[string]lock.Kind{"local": {WaitQueue: true}, "fair": {Queued: true}} {
		for how, withdraw := range map[string]func(l *lock.Lock, now machine.Instant, id uint64){
			"by id":    func(l *lock.Lock, now machine.Instant, id uint64) { l.Cancel(now, id, 0, nil) },
			"by owner": func(l *lock.Lock, now machine.Instant, id uint64) { l.Cancel(now, 0, machine.Owner(id), nil) },
			"by death": func(l *lock.Lock, now machine.Instant, id uint64) { l.OwnerGone(now, machine.Owner(id)) },
			"in time":  nil, // the waiters end one after another
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				machinetest.Linear(t, func(n int) (func(id int), func() int) {
					b, ended := newBench(&kind), 0
					b.cfg.QueueLimit = n
					for i := range n {
						req := machine.Request{ID: uint64(i + 1), Owner: machine.Owner(i + 1), Ref: b}
						if withdraw == nil {
							req.Deadline = ends(i + 1)
						}
						b.do(func(l *lock.Lock, now machine.Instant) { l.Acquire(now, req) })
					}
					one := func(id int) {
						b.do(func(l *lock.Lock, now machine.Instant) {
							if withdraw != nil {
								withdraw(l, now, uint64(id))
								return
							}
							ended++
							l.Tick(ends(ended))
						})
					}
					return one, func() int { return b.now.Summary().Waiters }
				})
			})
		}
	}
}
