package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestCloseOfAFreeLock(t *testing.T) {
	r := newRig(t)
	r.close()
	r.acquire("a")
	r.wants("a: refused, closed")
	r.idle()
}

func TestCloseReleasesWhatIsHeld(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.close()
	r.wants("b: refused, closed", "a: lost, closed", "a: over", "release #1")
	r.close()
	r.release("a")
	r.wants("A: not freed, lost")
	r.reply(core.Release, done)
	r.wants()
	r.idle()
}

func TestCloseWhileContending(t *testing.T) {
	r := contending(t)
	r.close()
	r.wants("a: refused, closed", "unsubscribe")
	r.idle()
}

func TestCloseDuringATry(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.close()
	r.wants("acquire #1 x1 for 10s", "a: refused, closed")
	r.reply(core.Acquire, done)
	r.wants("release #1")
	r.reply(core.Release, done)
	r.idle()
}

func TestCloseWhileALeaseIsBeingPrepared(t *testing.T) {
	r := held(t)
	r.acquire("b", fixed(sec))
	r.release("a")
	r.forget()
	r.close()
	r.wants("b: refused, closed")
	r.reply(core.Acquire, done)
	r.wants("A: freed x0, handed on", "release #1")
	r.reply(core.Release, done)
	r.idle()
}

func TestCloseDuringAYield(t *testing.T) {
	for _, c := range []struct {
		name   string
		result core.Result
		want   []string
	}{
		{"kept", kept, []string{"A: freed x0, handed on", "release #1"}},
		{"released", yielded(1), []string{"A: freed x0"}},
		{"lost", gone, []string{"A: not freed, lost"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := overdueTenure(t)
			r.close()
			r.wants("b: refused, closed", "c: refused, closed")
			r.reply(core.Yield, c.result)
			r.wants(c.want...)
			if c.name == "kept" {
				r.reply(core.Release, done)
			}
			r.idle()
		})
	}
}

func TestCloseDuringARelease(t *testing.T) {
	r := held(t)
	r.release("a")
	r.acquire("b")
	r.forget()
	r.close()
	r.wants("b: refused, closed")
	r.reply(core.Release, done)
	r.wants("A: freed x0")
	r.idle()
}

func TestCloseWhileOthersHaveTheirGo(t *testing.T) {
	r := overdueTenure(t)
	r.reply(core.Yield, yielded(1))
	r.forget()
	r.close()
	r.wants("b: refused, closed", "c: refused, closed", "unsubscribe")
	r.idle()
}

func TestCloseWithChangesOutstanding(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("second", owner(7))
	r.acquire("third", owner(7))
	r.release("a")
	r.forget()
	r.close()
	r.wants("a: lost, closed", "second: refused, closed", "A: not freed, lost", "a: over", "third: refused, closed", "release #1")
	r.reply(core.Acquire, gone) // the re-entry was not in time
	r.reply(core.Release, done)
	r.wants()
	r.idle()
}

func TestClosedLockCanStillBeForceReleased(t *testing.T) {
	r := newRig(t)
	r.close()
	r.force()
	r.wants("force")
	r.reply(core.ForceRelease, wasHeld(true))
	r.wants("force: forced 1")
	r.idle()
}

func TestCloseOnAnAilingRedisIsBounded(t *testing.T) {
	r := held(t)
	r.close()
	r.sleep(40 * sec) // no command is ever answered
	r.idle()
}
