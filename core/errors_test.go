package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestPermanentErrorRefusesEveryone(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.acquire("b", until(5*sec))
	r.forget()
	r.reply(core.Acquire, denied)
	r.wants("a: refused, rejected", "b: refused, rejected")
	r.idle()
	r.acquire("c")
	r.wants("acquire #2 x1 for 10s")
}

func TestTransientErrorIsRetriedWithBackOff(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	for _, pause := range []core.Instant{50, 100, 200, 400, 800, 1000, 1000} {
		r.forget()
		r.reply(core.Acquire, loadingR)
		r.wants()
		r.tick(r.wakesWithin(r.now+pause*ms/2, r.now+pause*ms))
		r.wants("acquire #1 x1 for 10s")
	}
	r.reply(core.Acquire, refused(8*sec)) // Redis is back
	r.signal()
	r.reply(core.Acquire, loadingR)
	r.wakesWithin(r.now+25*ms, r.now+50*ms)
}

// At first; while Redis goes on refusing, the pauses grow as for any lease.
func TestShortLeaseIsRetriedSooner(t *testing.T) {
	r := newRig(t)
	r.acquire("a", fixed(60*ms))
	for _, pause := range []core.Instant{3, 6, 12, 24, 48, 96} {
		r.reply(core.Acquire, loadingR)
		r.tick(r.wakesWithin(r.now+pause*ms/2, r.now+pause*ms))
	}
}

func TestLostReplyIsRepairedByTheSameTermAgain(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.reply(core.Acquire, timeoutR)
	r.tick(40 * ms)
	r.tick(60 * ms)
	r.wants("acquire #1 x1 for 10s", "acquire #1 x1 for 10s")
	second := r.last(core.Acquire).Deadline - sec
	r.reply(core.Acquire, done)
	if u := r.lock.Snapshot().Until; u != second+9898*ms {
		t.Fatalf("the lease is good until %v", u)
	}
}

func TestErrorsAreToldInRedisOwnWords(t *testing.T) {
	cfg := rigConfig
	l := core.New(&cfg, &core.Kind{})
	l.Refill(1)
	l.Acquire(0, core.Ticket{ID: 1, Ref: "a"})
	e, _ := l.Effects()
	l.Replied(0, e.Command.Seq, denied)
	if e, _ = l.Effects(); e.Answer.Detail != "NOPERM" {
		t.Fatalf("the detail is %q", e.Answer.Detail)
	}
}
