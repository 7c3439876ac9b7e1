package lock_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// memory returns how many bytes f allocates.
func memory(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// To withdraw twice as many waiters takes about twice the memory, in any order, by id and by owner, and so do
// their deadlines. If a withdrawal copied the queue, it would take four times the memory.
func TestWithdrawalsDoNotCopyTheQueue(t *testing.T) {
	for name, kind := range map[string]lock.Kind{"local": {WaitQueue: true}, "fair": {Queued: true}} {
		for how, withdraw := range map[string]func(l *lock.Lock, now machine.Instant, id uint64){
			"by id":    func(l *lock.Lock, now machine.Instant, id uint64) { l.Cancel(now, id, 0, nil) },
			"by owner": func(l *lock.Lock, now machine.Instant, id uint64) { l.Cancel(now, 0, machine.Owner(id), nil) },
			"by death": func(l *lock.Lock, now machine.Instant, id uint64) { l.OwnerGone(now, machine.Owner(id)) },
			"in time": func(l *lock.Lock, now machine.Instant, id uint64) {
				l.Tick(now + machine.Instant(time.Hour) + machine.Instant(id))
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				cost := func(n int) uint64 {
					b := newBench(&kind)
					b.cfg.QueueLimit = n
					for i := range n {
						req := machine.Request{ID: uint64(i + 1), Owner: machine.Owner(i + 1), Ref: b}
						if how == "in time" {
							req.Deadline = machine.Instant(time.Hour) + machine.Instant(i+1)
						}
						b.do(func(l *lock.Lock, now machine.Instant) { l.Acquire(now, req) })
					}
					order := rand.New(rand.NewPCG(1, 1)).Perm(n)
					spent := memory(func() {
						for i, id := range order {
							if how == "in time" {
								id = i
							}
							b.do(func(l *lock.Lock, now machine.Instant) { withdraw(l, now, uint64(id+1)) })
						}
					})
					if _, waiters, _ := b.now.Load(); waiters != 0 {
						t.Fatalf("%d are left", waiters)
					}
					return spent
				}
				some, twice := cost(4000), cost(8000)
				t.Logf("%d bytes each of 4000, and %d of 8000", some/4000, twice/8000)
				if twice > some*5/2 {
					t.Errorf("%d bytes for 4000 waiters, and %d for 8000", some, twice)
				}
			})
		}
	}
}
