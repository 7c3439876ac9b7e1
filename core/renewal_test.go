package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestRenewalSchedule(t *testing.T) {
	r := held(t)
	for at := 3 * sec; at <= 30*sec; at += 3 * sec {
		r.wakes(at)
		r.tick(at)
		r.wants("renew #1")
		r.now = at + 40*ms
		r.reply(core.Renew, done)
		r.wants()
		// From when it was sent, not from when the reply came.
		if u := r.lock.Snapshot().Until; u != at+9898*ms {
			t.Fatalf("renewed at %v it is good until %v", at, u)
		}
	}
}

func TestFailedRenewalIsRepeatedInAHurry(t *testing.T) {
	r := held(t)
	r.tick(3 * sec)
	r.forget()
	r.reply(core.Renew, loadingR)
	r.wants("a: at risk until 9.898s")
	first := r.wakesWithin(3025*ms, 3050*ms)
	r.tick(first)
	r.wants("renew #1 now")
	r.reply(core.Renew, loadingR)
	r.wants() // the holder is warned once
	r.tick(r.wakesWithin(first+50*ms, first+100*ms))
	r.forget()
	r.reply(core.Renew, done)
	r.wants()
}

func TestHolderIsWarnedOnceInEachEpisode(t *testing.T) {
	r := held(t)
	r.tick(3 * sec)
	r.reply(core.Renew, loadingR)
	r.forget()
	r.tick(3100 * ms)
	r.reply(core.Renew, done)
	r.tick(6100 * ms)
	r.wants("renew #1 now", "renew #1")
	r.reply(core.Renew, timeoutR)
	r.wants("a: at risk until 12.998s")
}

func TestNextHolderIsWarnedToo(t *testing.T) {
	r := longTenure(t)
	r.acquire("b")
	r.tick(3 * sec)
	r.reply(core.Renew, loadingR)
	r.release("a")
	r.wants("renew #1", "a: at risk until 9.898s", "a: over", "A: freed x0, handed on", "b: handed on x1 until 9.898s")
	r.tick(3100 * ms)
	r.reply(core.Renew, loadingR)
	r.wants("renew #1 now", "b: at risk until 9.898s")
}

func TestUnansweredRenewalIsRepeated(t *testing.T) {
	r := held(t)
	r.tick(3 * sec)
	r.forget()
	r.wakes(4250 * ms) // its time-out, and a grace for the reply on its way
	r.tick(4250 * ms)
	r.wants("a: at risk until 9.898s")
	r.tick(r.wakesWithin(4275*ms, 4300*ms))
	r.wants("renew #1 now")
}

func TestLeaseIsLostAtTheEndOfItsValidity(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.sleep(9897 * ms)
	r.forget()
	for r.now < 9898*ms {
		wake, _ := r.lock.NextWake()
		r.tick(wake)
	}
	if r.now != 9898*ms {
		t.Fatalf("it sleeps until %v", r.now)
	}
	r.said = r.said[len(r.said)-3:]
	r.wants("a: lost, expired", "a: over", "release #1")
	r.release("a")
	r.wants("A: not freed, lost")
	r.reply(core.Release, gone)
	r.wants("acquire #2 x1 for 10s")
}

func TestRenewalThatComesTooLate(t *testing.T) {
	r := held(t)
	r.tick(3 * sec)
	r.forget()
	r.now = 9898 * ms // the process was stopped meanwhile
	r.reply(core.Renew, done)
	r.wants("a: lost, expired", "a: over", "release #1")
}

func TestRenewalFindsTheLockLost(t *testing.T) {
	for _, c := range []struct {
		name   string
		result core.Result
		want   string
	}{
		{"gone", gone, "a: lost, gone"},
		{"taken", taken, "a: lost, taken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := held(t)
			r.acquire("b")
			r.tick(3 * sec)
			r.forget()
			r.reply(core.Renew, c.result)
			r.wants(c.want, "a: over", "acquire #2 x1 for 10s")
			r.release("a")
			r.wants("A: not freed, lost")
		})
	}
}

func TestRenewalGoesOnWhileTheCountIsBeingSet(t *testing.T) {
	r := held(t, owner(7))
	r.now = 2900 * ms
	r.acquire("again", owner(7))
	r.wants("acquire #1 x2 for 10s")
	r.wakes(3 * sec)
	r.tick(3 * sec)
	r.wants("renew #1")
	r.wakes(4150 * ms)
	r.reply(core.Renew, done)
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 12.898s")
}

func TestMaxHoldEndsWhatTheWatchdogKeepsAlive(t *testing.T) {
	r := newRig(t)
	r.acquire("a", maxHold(4*sec))
	r.acquire("b")
	r.now = 2 * ms
	r.reply(core.Acquire, done)
	r.wants("acquire #1 x1 for 10s", "a: granted x1 until 4.002s")
	r.tick(3 * sec)
	r.reply(core.Renew, done)
	r.forget()
	r.wakes(4002 * ms)
	r.tick(4002 * ms)
	r.wants("a: lost, max hold", "a: over", "yield #1 open")
	r.release("a")
	r.wants("A: not freed, lost")
}

func TestMaxHoldWithinTheTenureHandsOn(t *testing.T) {
	r := held(t, maxHold(50*ms))
	r.acquire("b", maxHold(30*ms))
	r.tick(52 * ms)
	r.wants("a: lost, max hold", "a: over", "b: handed on x1 until 82ms")
	r.tick(82 * ms)
	r.wants("b: lost, max hold", "b: over", "release #1")
}

func TestMaxHoldIsOfNoConcernToAFixedLease(t *testing.T) {
	r := newRig(t)
	r.acquire("a", fixed(2*sec), maxHold(50*ms))
	r.now = 2 * ms
	r.reply(core.Acquire, done)
	r.wants("acquire #1 x1 for 2s", "a: granted x1 until 1.978s")
}
