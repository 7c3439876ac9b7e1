package expirable

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Withdrawing all of twice as many waiters takes hardly more than twice the memory, in any order. If a
// withdrawal copied the queue, it would be four times.
func TestWithdrawalsDoNotCopyTheQueue(t *testing.T) {
	for how, withdraw := range map[string]func(p *Semaphore, id int){
		"by id":    func(p *Semaphore, id int) { p.Cancel(0, uint64(id), 0, nil) },
		"by owner": func(p *Semaphore, id int) { p.Cancel(0, 0, machine.Owner(id), nil) },
		"by death": func(p *Semaphore, id int) { p.OwnerGone(0, machine.Owner(id)) },
	} {
		t.Run(how, func(t *testing.T) {
			cost := func(n int) uint64 {
				cfg := testConfig
				cfg.QueueLimit = n
				p := New(&cfg)
				do := func(event func(next *Semaphore)) {
					next := p
					event(&next)
					for more := true; more; {
						_, more = next.Effects()
					}
					p = next
				}
				for i := range n {
					do(func(next *Semaphore) {
						next.Acquire(0, Request{Request: machine.Request{ID: uint64(i + 1), Owner: machine.Owner(i + 1), Ref: t}})
					})
				}
				order := rand.New(rand.NewPCG(1, 1)).Perm(n)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for _, i := range order {
					do(func(next *Semaphore) { withdraw(next, i+1) })
				}
				runtime.ReadMemStats(&after)
				if _, waiters, _ := p.Load(); waiters != 0 {
					t.Fatalf("%d are left", waiters)
				}
				return after.TotalAlloc - before.TotalAlloc
			}
			some, twice := cost(4000), cost(8000)
			t.Logf("%d bytes each of 4000, and %d of 8000", some/4000, twice/8000)
			if twice > some*5/2 {
				t.Errorf("%d bytes for 4000 waiters, and %d for 8000", some, twice)
			}
		})
	}
}
