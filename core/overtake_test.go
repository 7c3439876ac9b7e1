package core_test

import (
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// fullR is what Redis says, for as long as its memory is full, to what could need more.
var fullR = core.Result{Outcome: core.Failed, Err: errors.New("OOM"), Transient: true}

// heldTwice is a rig whose a has re-entered its hold.
func heldTwice(t *testing.T, options ...option) *rig {
	t.Helper()
	r := held(t, append(options, owner(7))...)
	r.acquire("again", owner(7))
	r.reply(core.Acquire, done)
	r.forget()
	return r
}

func TestLastReleaseOvertakesARefusedOne(t *testing.T) {
	r := heldTwice(t)
	r.release("a")
	r.reply(core.Release, fullR)
	r.wants("release #1 to x1 for 10s")
	r.now = 10 * ms
	r.release("a")
	r.wants("a: over", "release #1")
	r.reply(core.Release, done)
	r.wants("A: freed x0", "A: freed x0")
	r.idle()
}

func TestLastReleaseThatWaitsOvertakesARefusedOne(t *testing.T) {
	r := heldTwice(t)
	r.release("a")
	r.release("a")
	r.release("a") // one too many
	r.wants("release #1 to x1 for 10s")
	r.reply(core.Release, timeoutR)
	r.wants("a: over", "A: not freed, not held", "release #1")
	r.reply(core.Release, done)
	r.wants("A: freed x0", "A: freed x0")
}

// What is under way is not overtaken as long as it may succeed.
func TestReleaseWaitsForAChangeThatIsNotRefused(t *testing.T) {
	r := heldTwice(t)
	r.release("a")
	r.release("a")
	r.reply(core.Release, done)
	r.wants("release #1 to x1 for 10s", "A: freed x1", "a: over", "release #1")
}

func TestReleaseOvertakesARefusedReentry(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7))
	r.reply(core.Acquire, fullR)
	r.forget()
	r.release("a")
	// Certainly not carried out: the key is as the next needs it.
	r.wants("a: over", "A: freed x0, handed on", "again: handed on x1 until 9.898s")

	r = held(t, owner(7))
	r.acquire("again", owner(7))
	r.reply(core.Acquire, timeoutR)
	r.forget()
	r.release("a")
	r.wants("a: over", "acquire #1 x1 for 10s") // the count must be known before
	r.now = 60 * ms
	r.reply(core.Acquire, fullR)
	r.sleep(120 * ms)
	r.wants("release #1")
	r.reply(core.Release, done)
	r.wants("A: freed x0", "acquire #2 x1 for 10s")
}

func TestReleaseOvertakesWhatIsSetRight(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7))
	r.cancel("again")
	r.reply(core.Acquire, timeoutR)
	r.sleep(60 * ms)
	r.reply(core.Release, fullR)
	r.forget()
	r.release("a")
	r.wants("a: over", "release #1")
}

// A release that leaves something is tried before what asks for more, and does not wait
// for Redis for longer than a call.
func TestPartialReleaseDoesNotWaitForARefusedReentry(t *testing.T) {
	r := heldTwice(t)
	r.acquire("third", owner(7))
	r.reply(core.Acquire, fullR)
	r.forget()
	r.release("a")
	r.wants("release #1 to x1 for 10s")
	r.reply(core.Release, done)
	r.wants("A: freed x1", "acquire #1 x2 for 10s")
}

func TestPartialReleaseIsAnsweredInTime(t *testing.T) {
	r := heldTwice(t)
	r.now = 10 * ms
	r.release("a")
	for r.now < sec {
		r.reply(core.Release, fullR)
		r.tick(r.wakesWithin(r.now, r.now+sec))
	}
	r.forget()
	r.now = max(r.now, 1010*ms)
	r.reply(core.Release, fullR)
	r.wants("A: not freed, unavailable", "release #1 to x1 for 10s") // it is still being set
	if n := r.lock.Snapshot().Count; n != 1 {
		t.Fatalf("it is held %d times", n)
	}
	r.reply(core.Release, fullR)
	r.release("a")
	r.wants("a: over", "release #1")
}

func TestDeathOvertakesARefusedRelease(t *testing.T) {
	r := heldTwice(t)
	r.release("a")
	r.reply(core.Release, fullR)
	r.forget()
	r.ownerGone(7)
	r.wants("a: over", "release #1")
	r.reply(core.Release, done)
	r.wants("A: freed x0")
}

// Of those who share a lease, each leaves by itself.
func TestReaderLeavesBesideARefusedReentryOfAnother(t *testing.T) {
	r := reading(t, owner(7))
	r.acquire("b", shared, owner(8))
	r.acquire("again", shared, owner(8))
	r.reply(core.Acquire, fullR)
	r.forget()
	r.leave("a")
	r.wants("a: over", "A: freed x0, handed on", "acquire #1 r2 for 10s")
}

func TestWriterAndReaderLeaveAltogether(t *testing.T) {
	r := writing(t, owner(7))
	r.acquire("read", shared, owner(7))
	r.reply(core.Acquire, done)
	r.release("a")
	r.reply(core.Release, fullR)
	r.forget()
	r.leave("a")
	r.wants("a: over", "release #1")
}

// Whoever is next is granted the lock when the count is known again.
func TestHandOnAfterAReleaseThatOvertookAnother(t *testing.T) {
	r := heldTwice(t)
	r.release("a")
	r.acquire("b")
	r.reply(core.Release, timeoutR)
	r.forget()
	r.release("a")
	r.wants("a: over", "acquire #1 x1 for 10s")
	r.reply(core.Acquire, done)
	r.wants("A: freed x0, handed on", "A: freed x0, handed on", "b: granted x1 until 9.9s")
}

// A lost reply takes as long as the release may: the next try repairs it all the same.
func TestLostReplyToAPartialReleaseIsRepaired(t *testing.T) {
	r := heldTwice(t)
	r.now = 10 * ms
	r.release("a")
	r.now = 2 * sec
	r.reply(core.Release, timeoutR)
	r.forget()
	r.sleep(r.now + 100*ms)
	r.wants("release #1 to x1 for 10s")
	r.reply(core.Release, done)
	r.wants("A: freed x1")
}
