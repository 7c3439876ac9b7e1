package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// replyAgain answers a command that the lock does not wait for any more.
func (r *rig) replyAgain(c core.Command, result core.Result) {
	r.t.Helper()
	r.do(func(l *core.Lock) { l.Replied(r.now, c.Seq, result) })
}

func TestReplyTwice(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	c := r.last(core.Acquire)
	r.reply(core.Acquire, done)
	r.forget()
	r.replyAgain(c, done)
	r.replyAgain(c, refused(sec))
	r.wants()
}

func TestReplyToATryThatWasGivenUp(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	first := r.last(core.Acquire)
	r.tick(1250 * ms)
	r.tick(r.wakesWithin(1275*ms, 1300*ms))
	r.wants("acquire #1 x1 for 10s", "acquire #1 x1 for 10s") // the same term again
	r.replyAgain(first, done)
	r.wants() // trusting it would be no mistake, but the second tells more
	second := r.last(core.Acquire)
	r.reply(core.Acquire, done)
	if u := r.lock.Snapshot().Until; u != second.Deadline-sec+9898*ms {
		t.Fatalf("the lease is good until %v", u)
	}
}

func TestReplyFromAnEarlierTerm(t *testing.T) {
	r := held(t)
	r.tick(3 * sec)
	renewal := r.last(core.Renew)
	r.release("a")
	r.reply(core.Release, done)
	r.acquire("b")
	r.reply(core.Acquire, done)
	r.forget()
	r.replyAgain(renewal, gone)
	r.wants()
	if s := r.lock.Snapshot(); !s.HeldHere || s.Until != 12898*ms {
		t.Fatalf("it is seen as %+v", s)
	}
}

func TestGhostOfAnEarlierTermIsCleanedUp(t *testing.T) {
	r := held(t)
	r.release("a")
	r.reply(core.Release, done)
	r.acquire("b")
	r.forget()
	ghost := refused(9 * sec)
	ghost.OwnTerm = 1
	r.reply(core.Acquire, ghost)
	r.wants("release #1", "subscribe")
	r.reply(core.Release, done)
	r.wants("acquire #2 x1 for 10s")
}

func TestTermThatMayHaveBeenTakenIsCleanedUp(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.reply(core.Acquire, timeoutR)
	r.forget()
	r.cancel("a")
	r.wants("a: refused, cancelled", "cancel: withdrawn 1", "release #1")
	r.acquire("b")
	r.wants() // its own term, but not before the old one is known to be gone
	r.reply(core.Release, done)
	r.wants("acquire #2 x1 for 10s")
}

func TestTermThatWasSurelyNotTakenNeedsNoCleaning(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.reply(core.Acquire, loadingR)
	r.forget()
	r.cancel("a")
	r.wants("a: refused, cancelled", "cancel: withdrawn 1")
	r.idle()
}

func TestEveryTermHasANumberOfItsOwn(t *testing.T) {
	r := newRig(t)
	seen := map[uint64]bool{}
	for range 5 {
		r.acquire("a")
		c := r.last(core.Acquire)
		if seen[c.Term] {
			t.Fatalf("term %d comes again", c.Term)
		}
		seen[c.Term] = true
		r.reply(core.Acquire, done)
		r.release("a")
		r.reply(core.Release, done)
	}
}

func TestClockNeverGoesBack(t *testing.T) {
	r := held(t, fixed(sec))
	r.tick(500 * ms)
	r.tick(100 * ms)
	r.acquire("b", until(400*ms))
	r.tick(100 * ms)
	if r.said[0] != "b: refused, timed out, ttl 488ms" {
		t.Fatalf("it says %q", r.said)
	}
}
