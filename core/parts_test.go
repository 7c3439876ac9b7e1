package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// When a lock that is made of several loses one of them, the others are released.

func partly(t *testing.T, options ...option) *rig {
	t.Helper()
	cfg := rigConfig
	r := newRigOf(t, &cfg, core.Kind{Parts: true})
	r.acquire("a", options...)
	r.now = 2 * ms
	r.reply(core.Acquire, done)
	r.forget()
	return r
}

func TestLossOfAPartReleasesTheOthers(t *testing.T) {
	r := partly(t)
	r.acquire("b")
	r.tick(3 * sec)
	r.forget()
	r.reply(core.Renew, gone)
	r.wants("a: lost, gone", "a: over", "release #1")
	r.reply(core.Release, gone)
	r.wants("acquire #2 x1 for 10s") // not before that
}

func TestReEntryFindsAPartLost(t *testing.T) {
	r := partly(t, owner(7))
	r.acquire("again", owner(7))
	r.forget()
	r.reply(core.Acquire, taken)
	r.wants("a: lost, taken", "again: refused, lost", "a: over", "release #1")
}

func TestGrantFindsAPartLost(t *testing.T) {
	r := partly(t)
	r.acquire("b", fixed(2*sec))
	r.release("a")
	r.forget()
	r.reply(core.Acquire, refused(3*sec))
	r.wants("A: not freed, lost", "release #1", "subscribe")
	r.reply(core.Release, gone)
	r.wants("acquire #2 x1 for 2s")
}
