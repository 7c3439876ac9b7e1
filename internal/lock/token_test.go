package lock

import (
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// If another lock has drawn a higher token from one of the counters, no token of the block may be given to a hold.
func TestKnowTokens_EndsALowerBlock(t *testing.T) {
	fenced := &waiter{Request: machine.Request{Fenced: true}}
	for _, c := range []struct {
		known, highest []int64
		has            bool
	}{
		{[]int64{5, 30}, []int64{10, 30}, true},
		{[]int64{11, 20}, []int64{11, 30}, false},
		{[]int64{10, 31}, []int64{10, 31}, false},
	} {
		l := New(&machine.Config{}, &Features{Tokens: 2})
		l.tokens.keep(3, []int64{10, 30})
		l.KnowTokens(c.known)
		if got := l.HighestTokens(); !slices.Equal(got, c.highest) || l.tokens.has(fenced) != c.has {
			t.Errorf("after %v: highest %v, not %v; has a token: %v", c.known, got, c.highest, !c.has)
		}
		if next := l.tokens.next(fenced); (next != nil) != c.has || c.has && !slices.Equal(next, []int64{8, 28}) {
			t.Errorf("after %v: the next tokens are %v", c.known, next)
		}
	}
}
