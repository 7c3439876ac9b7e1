package semaphore

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/machinetest"
)

func TestWithdrawals_DoNotCopyTheQueue(t *testing.T) {
	for how, withdraw := range map[string]func(p *Pool, id int){
		"by id":    func(p *Pool, id int) { p.Cancel(0, uint64(id), 0, nil) },
		"by owner": func(p *Pool, id int) { p.Cancel(0, 0, machine.Owner(id), nil) },
		"by death": func(p *Pool, id int) { p.OwnerGone(0, machine.Owner(id)) },
	} {
		t.Run(how, func(t *testing.T) {
			machinetest.Linear(t, func(n int) (func(id int), func() int) {
				cfg := testConfig
				cfg.QueueLimit = n
				p := New(&cfg)
				do := func(event func(next *Pool)) {
					next := p
					next.SetNextNumber(1)
					event(&next)
					for e := (machine.Effect{}); next.NextEffect(&e); {
					}
					p = next
				}
				for i := range n {
					do(func(next *Pool) {
						next.Acquire(0, Request{Request: machine.Request{ID: uint64(i + 1), Owner: machine.Owner(i + 1), Ref: t}, N: 1})
					})
				}
				one := func(id int) { do(func(next *Pool) { withdraw(next, id) }) }
				return one, func() int { return p.Waiters() }
			})
		})
	}
}
