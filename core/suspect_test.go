package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func (r *rig) suspect() {
	r.t.Helper()
	r.do(func(l *core.Lock) { l.Suspect(r.now) })
}

func TestSuspectedLeaseIsRenewedAtOnce(t *testing.T) {
	r := held(t)
	r.suspect()
	r.wants("renew #1 now")
	r.reply(core.Renew, gone)
	r.wants("a: lost, gone", "a: over")
}

// A command under way may have been carried out before the key was taken away: what it
// says is out of date, and the lock asks again.
func TestSuspicionWhileACommandIsUnderWay(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(t *testing.T) *rig
		kind  core.CommandKind
		wants []string // of its reply
	}{
		{"renewal", func(t *testing.T) *rig {
			r := held(t)
			r.tick(3 * sec)
			return r
		}, core.Renew, []string{"renew #1 now"}},
		{"re-entry of a fixed lease", func(t *testing.T) *rig {
			r := held(t, owner(7), fixed(2*sec))
			r.acquire("again", owner(7))
			return r
		}, core.Acquire, []string{"again: granted x2 until 1.978s", "renew #1 now"}},
		{"acquire", func(t *testing.T) *rig {
			r := newRig(t)
			r.acquire("a")
			return r
		}, core.Acquire, []string{"a: granted x1 until 9.898s", "renew #1 now"}},
		{"next grant", func(t *testing.T) *rig {
			r := held(t)
			r.acquire("b", fixed(2*sec))
			r.release("a")
			return r
		}, core.Acquire, []string{"A: freed x0, handed on", "b: granted x1 until 1.98s", "renew #1 now"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.start(t)
			r.forget()
			r.suspect()
			r.wants()
			r.reply(c.kind, done)
			r.wants(c.wants...)
			r.reply(core.Renew, done)
			r.wants() // once is enough
		})
	}
}

// A forced release that is made here may hit what an acquire under way has taken.
func TestForcedReleaseIsSuspectedWhileAnAcquireIsUnderWay(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.force()
	r.reply(core.ForceRelease, wasHeld(true))
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("a: granted x1 until 9.898s", "renew #1 now")
}

// Commands that are sent after a suspicion find out by themselves.
func TestSuspicionIsNoOlderThanTheTerm(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.suspect()
	r.reply(core.Acquire, refused(8*sec))
	r.subscribed()
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("a: granted x1 until 9.898s", "unsubscribe")
}
