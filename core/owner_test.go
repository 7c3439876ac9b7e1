package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestDeadHolderReleases(t *testing.T) {
	r := held(t, owner(7))
	r.ownerGone(8)
	r.wants()
	r.ownerGone(7)
	r.wants("a: over", "release #1")
	r.reply(core.Release, done)
	r.wants()
	r.idle()
}

func TestDeadHolderHandsOn(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("b")
	r.ownerGone(7)
	r.wants("a: over", "b: handed on x1 until 9.898s")
}

func TestDeadWaiterLeavesTheQueueUnanswered(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("b", owner(8))
	r.acquire("c", owner(9))
	r.acquire("d", owner(8))
	r.ownerGone(8)
	r.wants()
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "c: handed on x1 until 9.898s")
}

func TestWaiterThatDiesDuringItsTry(t *testing.T) {
	r := newRig(t)
	r.acquire("a", owner(7))
	r.ownerGone(7)
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("release #1") // a grant for nobody
	r.reply(core.Release, done)
	r.idle()
}

func TestDeathEndsAHoldHoweverOftenItWasEntered(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7))
	r.reply(core.Acquire, done)
	r.forget()
	r.ownerGone(7)
	r.wants("a: over", "release #1")
	r.reply(core.Release, done)
	r.idle()
}

func TestDeathHandsOnWithTheCountSetRight(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7))
	r.reply(core.Acquire, done)
	r.acquire("b")
	r.forget()
	r.ownerGone(7)
	r.wants("a: over", "acquire #1 x1 for 10s")
	r.reply(core.Acquire, done)
	r.wants("b: granted x1 until 9.9s")
}

func TestDeathDuringAReEntry(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("second", owner(7))
	r.acquire("third", owner(7))
	r.forget()
	r.ownerGone(7)
	r.wants()
	r.reply(core.Acquire, done)
	r.wants("a: over", "release #1") // nobody is told of the re-entries
	r.reply(core.Release, done)
	r.idle()
}

func TestDeathDuringAPartialRelease(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("second", owner(7))
	r.reply(core.Acquire, done)
	r.acquire("third", owner(7))
	r.reply(core.Acquire, done)
	r.release("a")
	r.forget()
	r.ownerGone(7)
	r.reply(core.Release, done)
	r.wants("A: freed x2", "a: over", "release #1")
	r.reply(core.Release, done)
	r.idle()
}

func TestDeathWithReleasesOutstanding(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7))
	r.release("a")
	r.forget()
	r.ownerGone(7)
	r.reply(core.Acquire, done)
	r.wants("a: over", "A: not freed, not held", "release #1")
}

func TestOwnersDeathIsToldTwice(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7))
	r.forget()
	r.ownerGone(7)
	r.ownerGone(7)
	r.reply(core.Acquire, done)
	r.wants("a: over", "release #1")
	r.ownerGone(7)
	r.wants()
	r.reply(core.Release, done)
	r.idle()
}

func TestNobodyCannotDie(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.ownerGone(0)
	r.wants()
	if s := r.lock.Snapshot(); !s.HeldHere || s.Waiters != 1 {
		t.Fatalf("it is seen as %+v", s)
	}
}
