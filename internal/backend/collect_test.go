package backend

import (
	"sync"
	"sync/atomic"
	"testing"
)

// However many answers come at once: enough is said once, and the last is known as such.
func TestCollect(t *testing.T) {
	const n = 64
	for enough := 1; enough <= n; enough *= 2 {
		calls, said, lasts := 0, 0, 0
		g := &collect[int]{n: n, judge: func(answers []int, last bool) (func(), bool) {
			if calls++; len(answers) != calls {
				t.Errorf("call %d has %d answers", calls, len(answers))
			}
			if last {
				lasts++
			}
			if len(answers) < enough {
				return nil, false
			}
			return func() { said++ }, true
		}}
		var all sync.WaitGroup
		var late atomic.Int64
		for i := range n {
			all.Go(func() {
				if g.add(i) {
					late.Add(1)
				}
			})
		}
		all.Wait()
		if late := int(late.Load()); late != n-enough {
			t.Errorf("enough with %d of %d: %d are late", enough, n, late)
		}
		want := 0
		if enough == n {
			want = 1
		}
		if said != 1 || calls != enough || lasts != want {
			t.Errorf("enough with %d: said %d times in %d calls, %d of them the last", enough, said, calls, lasts)
		}
	}
}
