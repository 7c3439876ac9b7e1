package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestHandOffNeedsNoCommand(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.acquire("c")
	r.wants()
	r.now = 10 * ms
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "b: handed on x1 until 9.898s")
	r.release("b")
	r.wants("b: over", "B: freed x0, handed on", "c: handed on x1 until 9.898s")
	r.release("c")
	r.wants("c: over", "release #1")
	r.reply(core.Release, done)
	r.wants("C: freed x0")
	r.idle()
}

// longTenure keeps a tenure from ending in the tables below.
func longTenure(t *testing.T, options ...option) *rig {
	t.Helper()
	cfg := rigConfig
	cfg.Tenure, cfg.Opening = 1000*sec, 1000*sec
	r := newRigWith(t, &cfg)
	r.acquire("a", options...)
	r.now = 2 * ms
	r.reply(core.Acquire, done)
	r.forget()
	return r
}

func TestHandOffWithLittleLeaseLeftRefreshesItFirst(t *testing.T) {
	r := longTenure(t)
	r.acquire("b")
	r.tick(3 * sec) // its renewal is never answered
	r.forget()
	r.now = 6600 * ms // not more than a third of 10 s is left until 9.898 s
	r.release("a")
	r.wants("a: at risk until 9.898s", "a: over", "acquire #1 x1 for 10s")
	r.now += 2 * ms
	r.reply(core.Acquire, done)
	r.wants("A: freed x0, handed on", "b: granted x1 until 16.498s")
}

func TestNextWaiterWithALeaseOfItsOwn(t *testing.T) {
	r := held(t)
	r.acquire("b", fixed(2*sec))
	r.acquire("c")
	r.now = 10 * ms
	r.release("a")
	r.wants("a: over", "acquire #1 x1 for 2s")
	if r.lock.Snapshot().HeldHere {
		t.Fatal("somebody holds the lock while its lease is being prepared")
	}
	r.now = 12 * ms
	r.reply(core.Acquire, done)
	r.wants("A: freed x0, handed on", "b: granted x1 until 1.988s")
	r.release("b")
	r.wants("b: over", "acquire #1 x1 for 10s") // c needs the watchdog's lease
	r.now = 14 * ms
	r.reply(core.Acquire, done)
	r.wants("B: freed x0, handed on", "c: granted x1 until 9.91s")
}

func TestPreparedLeaseGoesToWhoeverIsNextByThen(t *testing.T) {
	r := held(t)
	r.acquire("b", fixed(2*sec))
	r.acquire("c")
	r.release("a")
	r.cancel("b")
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("A: freed x0, handed on", "acquire #1 x1 for 10s")
	r.reply(core.Acquire, done)
	r.wants("c: granted x1 until 9.9s")
}

func TestPreparedLeaseForNobodyIsReleased(t *testing.T) {
	r := held(t)
	r.acquire("b", fixed(2*sec))
	r.release("a")
	r.cancel("b")
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("A: freed x0, handed on", "release #1")
	r.reply(core.Release, done)
	r.idle()
}

func TestPreparingFindsTheLockTaken(t *testing.T) {
	r := held(t)
	r.acquire("b", fixed(2*sec))
	r.release("a")
	r.forget()
	r.reply(core.Acquire, refused(3*sec))
	if len(r.said) != 2 || r.said[1] != "subscribe" {
		t.Fatalf("it says %q", r.said)
	}
	r.forget()
	r.subscribed()
	r.wants("acquire #2 x1 for 2s") // a term that was lost is over
}

func TestPreparingFails(t *testing.T) {
	r := held(t)
	r.acquire("b", fixed(2*sec))
	r.release("a")
	r.forget()
	r.now = 10 * ms
	r.reply(core.Acquire, timeoutR)
	r.wants()
	// The term may or may not be good for the other lease: it is given up.
	r.tick(r.wakesWithin(35*ms, 60*ms))
	r.wants("release #1")
	r.reply(core.Release, gone) // the first try may have done it
	r.wants("A: freed x0", "acquire #2 x1 for 2s")
}

func TestGrantsAreInOrderOfArrival(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.acquire("c", until(20*ms))
	r.acquire("d")
	r.cancel("b")
	r.forget()
	r.tick(20 * ms)
	r.wants("c: refused, timed out, ttl 9.878s")
	r.acquire("e")
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "d: handed on x1 until 9.898s")
	r.release("d")
	r.wants("d: over", "D: freed x0, handed on", "e: handed on x1 until 9.898s")
}

func TestRenewalUnderWayServesTheNextHolder(t *testing.T) {
	r := longTenure(t)
	r.acquire("b")
	r.tick(3 * sec)
	r.wants("renew #1")
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "b: handed on x1 until 9.898s")
	r.reply(core.Renew, done)
	r.wants()
	if u := r.lock.Snapshot().Until; u != 12898*ms {
		t.Fatalf("the lease is good until %v", u)
	}
}

func TestLossFoundWhileTheNextGrantIsPreparedIsToldToTheReleaser(t *testing.T) {
	r := held(t)
	r.acquire("b", fixed(sec))
	r.forget()
	r.release("a")
	r.forget()
	r.reply(core.Acquire, refused(5*sec))
	r.wants("A: not freed, lost", "subscribe")
}
