package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestFixedLeaseIsNotRenewed(t *testing.T) {
	r := newRig(t)
	r.acquire("a", fixed(20*sec))
	r.now = 5 * ms
	r.reply(core.Acquire, done)
	r.wants("acquire #1 x1 for 20s", "a: granted x1 until 19.798s")
	r.wakes(19798 * ms)
}

func TestEndOfAFixedLeaseIsToldAndCleanedUp(t *testing.T) {
	r := held(t, fixed(2*sec))
	r.acquire("b")
	r.wakes(1978 * ms)
	r.tick(1978 * ms)
	r.wants("a: lost, expired", "a: over", "release #1")
	r.now += 2 * ms
	r.reply(core.Release, done)
	r.wants("acquire #2 x1 for 10s") // not before the old term is known to be gone
}

func TestShortLeasesHaveShortCalls(t *testing.T) {
	r := newRig(t)
	r.acquire("a", fixed(400*ms))
	if c := r.last(core.Acquire); c.Deadline != 100*ms {
		t.Fatalf("a call about a lease of 400 ms may last until %v", c.Deadline)
	}
}

func TestReEntryKeepsAFixedLeaseAsItIs(t *testing.T) {
	r := held(t, owner(7), fixed(2*sec))
	r.now = sec
	r.acquire("again", owner(7))
	r.wants("acquire #1 x2 for 1s") // what is left of it
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 1.988s") // as margins go by what is left
	r.now = 1500 * ms
	r.release("a")
	r.wants("release #1 to x1 for 500ms")
}

func TestReEntryMayProlongAFixedLease(t *testing.T) {
	r := held(t, owner(7), fixed(2*sec))
	r.now = sec
	r.acquire("again", owner(7), fixed(5*sec))
	r.wants("acquire #1 x2 for 5s")
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 5.948s")
}

func TestReEntryNeverShortensAFixedLease(t *testing.T) {
	r := held(t, owner(7), fixed(2*sec))
	r.now = sec
	r.acquire("again", owner(7), fixed(100*ms))
	r.wants("acquire #1 x2 for 1s")
}

func TestRepeatedReEntryDoesNotProlongAFixedLease(t *testing.T) {
	r := held(t, owner(7), fixed(2*sec))
	r.now = sec
	r.acquire("again", owner(7))
	r.reply(core.Acquire, loadingR)
	r.forget()
	r.now = 1200 * ms
	r.tick(r.now)
	r.wants("acquire #1 x2 for 800ms")
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 1.99s")
}
