package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func wasHeld(held bool) core.Result { return core.Result{Outcome: core.Done, WasHeld: held} }

func TestForceReleaseOfWhatOthersHold(t *testing.T) {
	for _, held := range []bool{true, false} {
		r := newRig(t)
		r.force()
		r.wants("force")
		r.reply(core.ForceRelease, wasHeld(held))
		if held {
			r.wants("force: forced 1")
		} else {
			r.wants("force: forced 0")
		}
		r.idle()
	}
}

func TestForceReleaseTellsAHolderHere(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.force()
	// No release beside it: that would let others in, for the force to throw them out.
	r.wants("a: lost, forced", "a: over", "force")
	r.release("a")
	r.wants("A: not freed, lost")
	r.reply(core.ForceRelease, wasHeld(true))
	r.wants("force: forced 1", "acquire #2 x1 for 10s")
}

func TestForceReleaseThatFailsStillReleasesWhatWasHeldHere(t *testing.T) {
	r := held(t)
	r.force()
	r.forget()
	r.reply(core.ForceRelease, denied)
	r.wants("force: not done, rejected", "release #1")
	r.reply(core.Release, done)
	r.idle()
}

func TestForceReleaseIsNotRepeatedIfItMayHaveBeenDone(t *testing.T) {
	r := held(t)
	r.force()
	r.forget()
	r.reply(core.ForceRelease, timeoutR)
	r.wants("force: not done, unavailable", "release #1")
}

func TestForceReleaseWhileContending(t *testing.T) {
	r := contending(t)
	r.force()
	r.wants("force")
	r.reply(core.ForceRelease, wasHeld(true))
	r.wants("force: forced 1", "acquire #1 x1 for 10s")
}

func TestForceReleaseLeavesTheOthersTheirGo(t *testing.T) {
	r := overdueTenure(t)
	r.reply(core.Yield, yielded(1))
	r.force()
	r.forget()
	r.reply(core.ForceRelease, wasHeld(true))
	r.wants("force: forced 1")
}

func TestForceReleaseMayHitATermThatBeginsMeanwhile(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.force()
	r.reply(core.Acquire, done)
	r.wants("acquire #1 x1 for 10s", "force", "a: granted x1 until 9.898s")
	r.reply(core.ForceRelease, wasHeld(true))
	r.wants("force: forced 1", "renew #1 now") // to find out
	r.reply(core.Renew, gone)
	r.wants("a: lost, gone", "a: over")
}

func TestForceReleaseFails(t *testing.T) {
	r := newRig(t)
	r.force()
	r.forget()
	r.reply(core.ForceRelease, denied)
	r.wants("force: not done, rejected")
	r.idle()

	r.force()
	r.reply(core.ForceRelease, loadingR)
	r.wants("force")
	r.tick(r.wakesWithin(25*ms, 50*ms))
	r.wants("force")
	r.now = 1001 * ms // its time is over
	r.reply(core.ForceRelease, loadingR)
	r.wants("force: not done, unavailable")
	r.idle()
}

func TestHolderLearnsOfAForceReleaseByOthers(t *testing.T) {
	r := held(t)
	r.tick(3 * sec)
	r.forget()
	r.reply(core.Renew, gone)
	r.wants("a: lost, gone", "a: over")
	r.idle()
}
