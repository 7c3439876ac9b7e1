package machinetest

import (
	"math/rand/v2"
	"runtime"
	"testing"
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
