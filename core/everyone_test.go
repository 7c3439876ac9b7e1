package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// owed checks to whom the lock owes something.
func (r *rig) owed(holder any, pending ...string) {
	r.t.Helper()
	h, id, everyone := everyone(&r.lock)
	if h != holder || (id == 0) != (holder == nil) {
		r.t.Fatalf("the holder is %v, with id %d", h, id)
	}
	var names []string
	for _, ref := range everyone {
		names = append(names, fmt.Sprint(ref))
	}
	slices.Sort(names)
	if !slices.Equal(names, pending) {
		r.t.Fatalf("an answer is owed to %v, not %v", names, pending)
	}
}

func TestEveryone(t *testing.T) {
	r := newRig(t)
	r.owed(nil)
	r.acquire("a", owner(7))
	r.acquire("b")
	r.owed(nil, "a", "b")
	r.reply(core.Acquire, done)
	r.owed("a", "b")
	r.acquire("second", owner(7))
	r.release("a")
	r.acquire("third", owner(7))
	r.now = sec
	r.ensure("a", 9*sec)
	r.owed("a", "A", "b", "ensure", "second", "third")
	r.force()
	r.owed(nil, "b", "force")
}

func TestEveryoneDuringARelease(t *testing.T) {
	r := held(t)
	r.acquire("b", fixed(sec))
	r.release("a")
	r.owed(nil, "A", "b")
	r.reply(core.Acquire, done)
	r.owed("b")
	r.release("b")
	r.owed(nil, "B")
	r.reply(core.Release, done)
	r.owed(nil)
}

func TestTermsThatMayBeInRedis(t *testing.T) {
	r := newRig(t)
	terms := func(want ...uint64) {
		t.Helper()
		if got := terms(&r.lock); !slices.Equal(got, want) {
			t.Fatalf("the terms are %v, not %v", got, want)
		}
	}
	terms()
	r.acquire("a", fixed(2*sec))
	terms(1)
	r.reply(core.Acquire, done)
	r.acquire("b")
	terms(1)
	r.tick(2 * sec)
	terms(2, 1) // the second is wanted, and the first is not yet known to be gone
	r.reply(core.Release, done)
	terms(2)
	r.cancel("b")
	r.reply(core.Acquire, refused(sec))
	terms()
}
