package machinetest

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Linear checks that withdrawing twice as many waiters takes about twice the memory, in any order. If a withdrawal copied
// the queue, it would take four times the memory. With makes a machine at which n requests wait, from 1 to n; it returns
// what withdraws one, and how many wait.
func Linear(t *testing.T, with func(n int) (withdraw func(id int), waiters func() int)) {
	t.Helper()
	cost := func(n int) uint64 {
		withdraw, waiters := with(n)
		order := rand.New(rand.NewPCG(1, 1)).Perm(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, i := range order {
			withdraw(i + 1)
		}
		runtime.ReadMemStats(&after)
		if left := waiters(); left != 0 {
			t.Fatalf("%d are left", left)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	some, twice := cost(4000), cost(8000)
	t.Logf("%d bytes each of 4000, and %d of 8000", some/4000, twice/8000)
	if twice > some*5/2 {
		t.Errorf("%d bytes for 4000 waiters, and %d for 8000", some, twice)
	}
}

// Withdrawals checks that each way to withdraw a request is Linear. Fresh returns a machine at which that many requests may
// wait, and acquire makes a request of it.
func Withdrawals[M any, P interface {
	*M
	machine.Machine
}](t *testing.T, fresh func(queueLimit int) M, acquire func(m P, req machine.Request)) {
	for how, withdraw := range map[string]func(m P, id int){
		"by id":    func(m P, id int) { m.Cancel(0, uint64(id), 0, nil) },
		"by owner": func(m P, id int) { m.Cancel(0, 0, machine.Owner(id), nil) },
		"by death": func(m P, id int) { m.OwnerGone(0, machine.Owner(id)) },
	} {
		t.Run(how, func(t *testing.T) {
			Linear(t, func(n int) (func(id int), func() int) {
				m := fresh(n)
				do := func(event func(m P)) { // to a copy, as an actor does
					next := m
					event(&next)
					for e := (machine.Effect{}); P(&next).NextEffect(&e); {
					}
					m = next
				}
				for i := range n {
					do(func(m P) { acquire(m, machine.Request{ID: uint64(i + 1), Owner: machine.Owner(i + 1), Ref: t}) })
				}
				return func(id int) { do(func(m P) { withdraw(m, id) }) }, func() int { return P(&m).Summary().Waiters }
			})
		})
	}
}
