package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestReEntryIsGrantedWhenRedisKnows(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("b", owner(8))
	r.now = 10 * ms
	r.acquire("again", owner(7))
	r.wants("acquire #1 x2 for 10s")
	if n := r.lock.Snapshot().Count; n != 1 {
		t.Fatalf("it is held %d times before Redis has confirmed", n)
	}
	r.now = 12 * ms
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 9.908s")
	r.release("a")
	r.wants("release #1 to x1 for 10s")
	r.reply(core.Release, done)
	r.wants("A: freed x1")
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "b: handed on x1 until 9.91s")
}

func TestNobodyInParticularNeverReEnters(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.wants()
	if n := r.lock.Snapshot().Waiters; n != 1 {
		t.Fatalf("%d wait", n)
	}
}

func TestReEntryFindsTheLockLost(t *testing.T) {
	for _, c := range []struct {
		name   string
		result core.Result
		want   string
	}{
		{"gone", gone, "a: lost, gone"},
		{"taken", refused(3 * sec), "a: lost, taken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := held(t, owner(7))
			r.acquire("again", owner(7))
			r.forget()
			r.reply(core.Acquire, c.result)
			r.wants(c.want, "again: refused, lost", "a: over")
			r.idle()
		})
	}
}

func TestChangesAreMadeOneAfterAnother(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("second", owner(7))
	r.acquire("third", owner(7))
	r.release("a")
	r.wants("acquire #1 x2 for 10s")
	r.reply(core.Acquire, done)
	r.wants("second: granted x2 until 9.9s", "acquire #1 x3 for 10s")
	r.reply(core.Acquire, done)
	r.wants("third: granted x3 until 9.9s", "release #1 to x2 for 10s")
	r.reply(core.Release, done)
	r.wants("A: freed x2")
}

func TestRequestsOfAnOwnerThatGetsTheLockAreReEntries(t *testing.T) {
	r := newRig(t)
	r.acquire("a", owner(7))
	r.acquire("b", owner(8))
	r.acquire("again", owner(7)) // waiting for itself would be a deadlock
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("a: granted x1 until 9.898s", "acquire #1 x2 for 10s")
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 9.898s")
}

func TestOwnerAfterOwnerMayHaveAskedTwice(t *testing.T) {
	cfg := rigConfig
	cfg.QueueLimit = 9
	r := newRigWith(t, &cfg)
	r.acquire("a", owner(7))
	r.acquire("b", owner(8))
	r.acquire("a2", owner(7))
	r.acquire("b2", owner(8))
	r.reply(core.Acquire, done)
	r.reply(core.Acquire, done) // a2
	r.release("a")
	r.reply(core.Release, done)
	r.forget()
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "b: handed on x1 until 9.898s", "acquire #1 x2 for 10s")
	r.reply(core.Acquire, done)
	r.wants("b2: granted x2 until 9.898s")
}

func TestReEntryThatComesTooLateWaitsInItsTurn(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("b", owner(8))
	r.acquire("second", owner(7))
	r.release("a")
	r.release("a")
	r.acquire("third", owner(7)) // asked for after the last release
	r.acquire("c", owner(9))
	r.forget()
	r.reply(core.Acquire, done)
	r.reply(core.Release, done)
	// The count is 1 again, so b gets the lock as it is, and the third waits behind b.
	r.wants("second: granted x2 until 9.9s", "release #1 to x1 for 10s", "A: freed x1",
		"a: over", "A: freed x0, handed on", "b: handed on x1 until 9.9s")
	r.release("b")
	r.wants("b: over", "B: freed x0, handed on", "third: handed on x1 until 9.9s")
}

func TestUnansweredReEntryIsSentAgain(t *testing.T) {
	r := held(t, owner(7))
	r.now = 10 * ms
	r.acquire("again", owner(7))
	r.forget()
	r.tick(1260 * ms)
	r.wants()
	r.tick(r.wakesWithin(1285*ms, 1310*ms))
	r.wants("acquire #1 x2 for 10s")
	r.reply(core.Acquire, done)
	if got := r.lock.Snapshot(); got.Count != 2 || got.Until != r.now+9898*ms {
		t.Fatalf("it is seen as %+v at %v", got, r.now)
	}
}

func TestReEntryWithdrawnInFlightIsUndone(t *testing.T) {
	for _, c := range []struct {
		name   string
		result core.Result
	}{
		{"carried out", done},
		{"perhaps carried out", timeoutR},
		{"not carried out", loadingR},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := held(t, owner(7))
			r.acquire("again", owner(7))
			r.cancel("again")
			r.wants("acquire #1 x2 for 10s", "again: refused, cancelled", "cancel: withdrawn 1")
			r.reply(core.Acquire, c.result)
			r.sleep(200 * ms)
			r.wants("release #1 to x1 for 10s")
			r.reply(core.Release, done)
			r.wants()
			r.wakesWithin(3*sec, 3300*ms)
		})
	}
}

func TestReEntryThatOnlyTries(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7), try)
	r.wants("acquire #1 x2 for 10s")
	r.reply(core.Acquire, timeoutR)
	// It is refused, and what it may have done is set right.
	r.wants("again: refused, unavailable", "release #1 to x1 for 10s")
}

func TestReEntryThatOnlyTriesDoesNotWaitBehindAFailingOne(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("second", owner(7))
	r.acquire("third", owner(7), try)
	r.forget()
	r.reply(core.Acquire, loadingR)
	r.wants("third: refused, unavailable")
}

func TestReEntryHasItsWaitToo(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("second", owner(7), until(300*ms))
	r.acquire("third", owner(7), until(200*ms))
	r.forget()
	r.wakes(200 * ms)
	r.tick(200 * ms)
	r.wants("third: refused, timed out, ttl 9.698s")
	r.tick(300 * ms)
	r.wants("second: refused, timed out, ttl 9.598s")
	r.reply(core.Acquire, done)
	r.wants("release #1 to x1 for 10s")
}

func TestCountIsNotFreedBeforeAReleaseIsConfirmed(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7))
	r.reply(core.Acquire, done)
	r.release("a")
	r.forget()
	r.reply(core.Release, timeoutR)
	r.wants()
	r.sleep(200 * ms)
	r.wants("release #1 to x1 for 10s")
	r.reply(core.Release, done)
	r.wants("A: freed x1")
}

func TestChangeOfTheCountIsRejected(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7))
	r.forget()
	r.reply(core.Acquire, denied)
	r.wants("again: refused, rejected")
	r.acquire("again", owner(7))
	r.reply(core.Acquire, done)
	r.release("a")
	r.forget()
	r.reply(core.Release, denied)
	// It was given back all the same: the count in Redis is to follow.
	r.wants("A: not freed, rejected", "release #1 to x1 for 10s")
	if n := r.lock.Snapshot().Count; n != 1 {
		t.Fatalf("it is held %d times", n)
	}
	r.reply(core.Release, denied)
	r.release("a")
	r.wants("a: over", "release #1")
}
