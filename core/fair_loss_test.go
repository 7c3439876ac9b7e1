package core_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestFairReplyIsLost(t *testing.T) {
	r := fair(t)
	r.acquire("a")
	r.reply(core.Enrol, timeoutR)
	r.forget()
	r.tick(r.wakesWithin(25*ms, 50*ms))
	r.wants("enrol [#1] of #1 and take")
	r.reply(core.Enrol, took(1)) // then or now: it is trusted from when this was sent
	if s := r.lock.Snapshot(); !s.HeldHere || s.Until != r.now+9898*ms {
		t.Fatalf("it is seen as %+v", s)
	}
}

func TestReplyToAPassIsLost(t *testing.T) {
	r := fairHeld(t)
	r.acquire("b")
	r.reply(core.Enrol, queued)
	r.release("a")
	r.forget()
	r.reply(core.Enrol, timeoutR)
	r.sleep(60 * ms)
	r.wants("enrol [#2] of #2 after #1") // the old term is certainly to end
	r.reply(core.Enrol, took(2))         // b has it since the first time
	r.wants("A: freed x0", "enrol [#2] of #2 and take")
	r.reply(core.Enrol, took(2))
	r.wants("b: granted x1 until 9.958s")
}

func TestReleaseIsLostWhileAWaiterLeaves(t *testing.T) {
	r := fairHeld(t)
	r.acquire("b")
	r.reply(core.Enrol, queued)
	r.release("a")
	r.reply(core.Enrol, timeoutR)
	r.cancel("b")
	r.forget()
	r.sleep(60 * ms)
	r.wants("enrol [] of #2 after #1")
	r.reply(core.Enrol, core.Result{Outcome: core.Refused, TTL: 9 * sec, Holder: "us:2", OwnTerm: 2})
	r.wants("release #2", "A: freed x0") // the pass had given it to b
	r.reply(core.Release, done)
	r.reply(core.Enrol, nobody)
	r.idle()
}

func TestLateTakeForNobodyIsGivenBack(t *testing.T) {
	r := fairHeld(t)
	r.acquire("b")
	r.reply(core.Enrol, queued)
	r.cancel("b")
	r.forget()
	r.reply(core.Enrol, core.Result{Outcome: core.Refused, TTL: 9 * sec, Holder: "us:2", OwnTerm: 2})
	r.wants("release #2")
}

func TestAnotherTermOfOursHasIt(t *testing.T) {
	r := fair(t)
	r.acquire("a")
	r.forget()
	r.reply(core.Enrol, core.Result{Outcome: core.Refused, TTL: 9 * sec, Holder: "us:9", OwnTerm: 9})
	r.wants("release #9", "subscribe #1")
	r.reply(core.Release, done)
	r.wants("enrol [#1] of #1 and take")
}

func TestFairHoldIsLost(t *testing.T) {
	r := fairHeld(t)
	r.acquire("b")
	r.reply(core.Enrol, queued)
	r.tick(3 * sec)
	r.forget()
	r.reply(core.Renew, taken)
	r.wants("a: lost, taken", "a: over", "enrol [#2] of #2 and take")
}

func TestFairHoldIsLostBeforeItsRelease(t *testing.T) {
	r := fairHeld(t)
	r.acquire("b")
	r.reply(core.Enrol, queued)
	r.release("a")
	r.forget()
	r.reply(core.Enrol, took(2))
	r.wants("A: not freed, lost", "b: granted x1 until 9.9s")
}

func TestFairWaitersAreRefusedForGood(t *testing.T) {
	r := fair(t)
	r.acquire("a")
	r.acquire("b")
	r.forget()
	r.reply(core.Enrol, denied)
	r.wants("a: refused, rejected", "b: refused, rejected", "enrol [] of #2")
	r.reply(core.Enrol, denied)
	r.idle()
}

// A lock that is given up while a waiter may have got it must see that released too.
func TestFairFarewell(t *testing.T) {
	r := fair(t)
	farewell := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range r.lock.Farewell(r.now) {
			got = append(got, commandSentence(c))
		}
		r.said = got
		r.wants(want...)
	}
	r.acquire("a")
	r.acquire("b")
	r.cancel("a")
	farewell("release #1", "enrol [] of #2") // a was on its way
	r.reply(core.Enrol, timeoutR)
	farewell("release #2", "enrol [] of #2") // and b is, now that the queue has changed
	r.reply(core.Enrol, took(2))
	farewell("release #2")
	r.acquire("c")
	farewell("release #2", "enrol [] of #3")
}

func TestGivenUpEnrolmentForgetsNoWaiter(t *testing.T) {
	cfg := rigConfig
	r := newRigOf(t, &cfg, core.Kind{Queued: true})
	r.acquire("a")
	r.reply(core.Enrol, refused(20*sec))
	r.cancel("a") // Redis is told, and does not answer
	r.sleep(9 * sec)
	r.acquire("b")
	r.reply(core.Enrol, refused(11*sec))
	for r.now < 11*sec { // b's tries are answered, but not what a's leaving is about
		r.sleep(r.now + 20*ms)
		if c := r.sent[len(r.sent)-1]; c.Take {
			r.reply(core.Enrol, refused(20*sec-r.now))
		}
		leaving := *r
		leaving.sent, leaving.said = slices.Clone(r.sent), nil
		leaving.cancel("b")
		leaving.sleep(r.now + 3*sec)
		if !slices.ContainsFunc(leaving.said, func(s string) bool { return strings.HasPrefix(s, "enrol []") }) {
			t.Fatalf("at %v nobody takes b out of the queue in Redis: %q", r.now, leaving.said)
		}
	}
}

func TestLeavingTheQueueIsTriedAgainAfterAPause(t *testing.T) {
	r := fairHeld(t)
	r.acquire("b")
	r.reply(core.Enrol, queued)
	r.cancel("b")
	r.forget()
	r.now = 20 * sec // longer than any lease, and nothing was heard of the command
	r.reply(core.Enrol, timeoutR)
	r.forget()
	r.sleep(r.now + sec)
	if !slices.ContainsFunc(r.said, func(s string) bool { return strings.HasPrefix(s, "enrol [] of #2") }) {
		t.Fatalf("b's place is given up without another try: %q", r.said)
	}
}
