package core_test

import (
	"fmt"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// fair is a rig whose waiters stand in a queue in Redis.
func fair(t *testing.T) *rig {
	t.Helper()
	cfg := rigConfig
	cfg.QueueLimit = 200
	return newRigOf(t, &cfg, core.Kind{Queued: true})
}

// fairHeld is such a rig at 2 ms whose lock was granted to a, on its request at 0.
func fairHeld(t *testing.T, options ...option) *rig {
	t.Helper()
	r := fair(t)
	r.acquire("a", options...)
	r.now = 2 * ms
	r.reply(core.Enrol, took(1))
	r.forget()
	return r
}

// took says that the waiter of that term has got the lock; queued, that somebody else
// has it; unheld, that it is free and a stranger is next. After a release, freed.
func took(term uint64) core.Result { return core.Result{Outcome: core.Done, OwnTerm: term} }

var (
	queued = core.Result{Outcome: core.Refused, TTL: 8 * sec, Holder: "other:1"}
	unheld = core.Result{Outcome: core.Refused, TTL: 4 * sec}
	nobody = core.Result{Outcome: core.Refused}
)

func freed(r core.Result) core.Result {
	r.Freed = true
	return r
}

func TestFairGrantAndRelease(t *testing.T) {
	r := fair(t)
	r.acquire("a")
	r.wants("enrol [#1] of #1 and take")
	r.reply(core.Enrol, took(1))
	r.wants("a: granted x1 until 9.898s")
	r.release("a")
	r.wants("a: over", "enrol [] of #1 after #1")
	r.reply(core.Enrol, freed(nobody))
	r.wants("A: freed x0")
	r.idle()
}

func TestWaitersStandInTheQueue(t *testing.T) {
	r := fairHeld(t)
	r.acquire("b")
	r.wants("enrol [#2] of #2")
	r.acquire("c")
	r.wants() // one at a time
	r.reply(core.Enrol, queued)
	r.wants("enrol [#2, #3] of #3")
	r.reply(core.Enrol, queued)
	r.release("a")
	r.wants("a: over", "enrol [#2, #3] of #3 and take after #1")
	r.reply(core.Enrol, freed(took(2)))
	r.wants("A: freed x0, handed on", "b: granted x1 until 9.9s")
	r.release("b")
	r.wants("b: over", "enrol [#3] of #3 and take after #2")
	r.reply(core.Enrol, freed(took(3)))
	r.wants("B: freed x0, handed on", "c: granted x1 until 9.9s")
}

func TestStrangerIsNext(t *testing.T) {
	for _, c := range []struct {
		name   string
		result core.Result
	}{
		{"and has it", queued},
		{"and was called", unheld},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := fairHeld(t)
			r.acquire("b")
			r.reply(core.Enrol, queued)
			r.release("a")
			r.forget()
			r.reply(core.Enrol, freed(c.result))
			r.wants("A: freed x0", "subscribe #2")
			r.subscribedAs(2)
			r.wants("enrol [#2] of #2 and take")
			r.reply(core.Enrol, c.result)
			r.signal() // called
			r.wants("enrol [#2] of #2 and take")
			r.reply(core.Enrol, took(2))
			r.wants("b: granted x1 until 9.9s", "unsubscribe #2")
		})
	}
}

func TestFairTriesOnce(t *testing.T) {
	r := fair(t)
	r.acquire("a", try)
	r.wants("enrol [#1 try] of #1 and take")
	r.reply(core.Enrol, queued)
	r.wants("a: refused, held, ttl 8s", "enrol [] of #1") // it may stand there all the same
	r.reply(core.Enrol, queued)
	r.idle()
	r.acquire("b", try)
	r.reply(core.Enrol, took(2))
	r.forget()
	r.acquire("c", try)
	r.wants("c: refused, held, ttl 9.898s")
}

// Redis gives a free lock to who waits in the queue before who only tries.
func TestFairTryBesideAWaiter(t *testing.T) {
	r := fair(t)
	r.acquire("early", until(ms))
	r.tick(ms)
	r.acquire("a", try)
	r.acquire("b")
	r.forget()
	r.reply(core.Enrol, took(1)) // for nobody
	r.wants("enrol [#2 try, #3] of #3 and take after #1")
	r.reply(core.Enrol, freed(took(3)))
	r.wants("b: granted x1 until 9.899s", "a: refused, held", "enrol [] of #3")
}

func TestCalledWaiterHasLeft(t *testing.T) {
	r := fair(t)
	r.acquire("a")
	r.acquire("b")
	r.cancel("a")
	r.forget()
	r.reply(core.Enrol, took(1))
	r.wants("enrol [#2] of #2 and take after #1")
	r.cancel("b")
	r.forget()
	r.replyFirst(core.Enrol, freed(took(2)))
	r.wants("enrol [] of #2 after #2")
	r.reply(core.Enrol, freed(nobody))
	r.reply(core.Enrol, nobody)
	r.idle()
}

func TestWaiterThatLeavesTakesItsEntryAlong(t *testing.T) {
	r := fairHeld(t)
	r.acquire("b")
	r.acquire("c")
	r.reply(core.Enrol, queued)
	r.reply(core.Enrol, queued)
	r.forget()
	r.cancel("b")
	r.wants("b: refused, cancelled", "cancel: withdrawn 1", "enrol [#3] of #3")
	r.reply(core.Enrol, queued)
	r.cancel("c")
	r.wants("c: refused, cancelled", "cancel: withdrawn 1", "enrol [] of #3")
	r.reply(core.Enrol, queued)
	r.wakes(3 * sec) // for the renewal, and nothing else
}

func TestFirstWaiterLeavesWhileOthersHold(t *testing.T) {
	r := fair(t)
	r.acquire("a")
	r.acquire("b")
	r.reply(core.Enrol, queued)
	r.subscribedAs(1)
	r.reply(core.Enrol, queued)
	r.reply(core.Enrol, queued)
	r.forget()
	r.cancel("a")
	r.wants("a: refused, cancelled", "cancel: withdrawn 1", "enrol [#2] of #2 and take", "unsubscribe #1", "subscribe #2")
	r.subscribedAs(1) // too late, and of no interest
	r.wants()
}

// The reply about an empty queue comes when the next waiter is already on its way there.
func TestWaiterThatLeavesWhileItIsEnrolled(t *testing.T) {
	r := fairHeld(t)
	r.release("a")
	r.acquire("b")
	r.wants("a: over", "enrol [] of #1 after #1", "enrol [#2] of #2")
	r.replyFirst(core.Enrol, freed(nobody))
	r.wants("A: freed x0", "enrol [#2] of #2 and take")
	r.reply(core.Enrol, queued)
	r.forget()
	r.cancel("b")
	r.reply(core.Enrol, queued)
	r.wants("b: refused, cancelled", "cancel: withdrawn 1", "unsubscribe #2", "enrol [] of #2")
	r.reply(core.Enrol, queued)
	r.idle()
}

func TestClosingWhileAWaiterIsEnrolled(t *testing.T) {
	r := fairHeld(t)
	r.release("a")
	r.acquire("b")
	r.force() // so that b does not try at once
	r.forget()
	r.replyFirst(core.Enrol, freed(nobody))
	r.close()
	r.wants("A: freed x0", "b: refused, closed")
	r.reply(core.Enrol, queued)
	r.wants("enrol [] of #2") // b's entry leaves with it
	r.reply(core.Enrol, queued)
	r.reply(core.ForceRelease, done)
	r.forget()
	r.idle()
}

// replyFirst answers the first command of a kind that is not answered yet.
func (r *rig) replyFirst(kind core.CommandKind, result core.Result) {
	r.t.Helper()
	for i, c := range r.sent {
		if c.Kind == kind {
			r.sent = append(r.sent[:i:i], r.sent[i+1:]...)
			r.do(func(l *core.Lock) { l.Replied(r.now, c.Seq, result) })
			return
		}
	}
	r.t.Fatalf("no such command is under way: %v", r.sent)
}

func TestWaitersAreKeptAlive(t *testing.T) {
	r := fairHeld(t)
	r.acquire("b")
	r.reply(core.Enrol, queued)
	r.forget()
	r.tick(r.wakesWithin(502*ms, 1002*ms))
	r.wants("enrol [#2] of #2")
	r.reply(core.Enrol, loadingR)
	r.sleep(r.now + 50*ms)
	r.wants("enrol [#2] of #2")
}

func TestEnrolmentThatIsNeverAnswered(t *testing.T) {
	r := fairHeld(t, owner(7))
	r.acquire("b")
	r.cancel("b")
	r.release("a")
	for r.now < 30*sec {
		for len(r.sent) > 0 {
			r.reply(r.sent[0].Kind, timeoutR)
		}
		wake, ok := r.lock.NextWake()
		if !ok {
			break
		}
		r.tick(max(wake, r.now))
	}
	r.idle()
}

func TestFairLeaseIsTheWaiters(t *testing.T) {
	r := fairHeld(t)
	r.acquire("b", fixed(2*sec))
	r.reply(core.Enrol, queued)
	r.release("a")
	if e := r.last(core.Enrol).Entries; len(e) != 1 || e[0].Lease != 2*sec {
		t.Fatalf("the waiters are %v", e)
	}
	r.forget()
	r.reply(core.Enrol, freed(took(2)))
	r.wants("A: freed x0, handed on", "b: granted x1 until 1.98s")
	r.wakes(1980 * ms)
}

func TestFairReEntry(t *testing.T) {
	r := fairHeld(t, owner(7))
	r.acquire("again", owner(7))
	r.wants("acquire #1 x2 for 10s")
	r.reply(core.Acquire, done)
	r.release("a")
	r.wants("again: granted x2 until 9.9s", "release #1 to x1 for 10s")
}

func TestMostOfTheQueueStaysHere(t *testing.T) {
	r := fairHeld(t)
	for i := range 150 {
		r.acquire(fmt.Sprint("b", i))
	}
	r.reply(core.Enrol, queued)
	if n := len(r.last(core.Enrol).Entries); n != 100 {
		t.Fatalf("%d waiters stand in the queue", n)
	}
}

// The next waiter listens while another of its process holds the lock. It may be called
// before the reply to the release has come, which then tells of a holder who has gone.
func TestCalledBeforeTheReleaseIsAnswered(t *testing.T) {
	for what, news := range map[string]func(r *rig){
		"called":  func(r *rig) { r.subscribedAs(2); r.forget(); r.release("a"); r.signal() },
		"listens": func(r *rig) { r.release("a"); r.subscribedAs(2) }, // it may have been called before
	} {
		t.Run(what, func(t *testing.T) {
			r := fair(t)
			r.acquire("a")
			r.acquire("b")
			r.reply(core.Enrol, queued)
			r.subscribedAs(1)
			r.reply(core.Enrol, took(1))
			r.forget()
			news(r)
			r.wants("a: over", "enrol [#2] of #2 and take after #1")
			r.reply(core.Enrol, freed(queued))
			r.wants("A: freed x0", "enrol [#2] of #2 and take")
		})
	}
}
