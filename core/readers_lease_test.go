package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestFixedLeaseAmongReadersEndsOneHoldOnly(t *testing.T) {
	r := reading(t)
	r.acquire("b", shared, fixed(2*sec))
	r.acquire("c", shared, maxHold(sec))
	r.wants("b: handed on x1 until 1.98s", "c: handed on x1 until 1.002s")
	r.wakes(1002 * ms)
	r.tick(1002 * ms)
	r.wants("c: lost, max hold", "c: over")
	r.leave("c")
	r.wants("C: not freed, lost")
	r.tick(1980 * ms)
	r.wants("b: lost, expired", "b: over")
	r.tick(3 * sec)
	r.wants("renew #1") // for a, as ever
	r.reply(core.Renew, done)
	if s := r.lock.Snapshot(); s.Until != 12898*ms {
		t.Fatalf("it lasts until %v", s.Until)
	}
}

func TestReaderJoinsAFixedLease(t *testing.T) {
	r := reading(t, fixed(2*sec))
	r.now = 10 * ms
	r.acquire("b", shared)
	r.wants("acquire #1 r1 for 10s") // renewed from now on, for b's sake
	r.now = 20 * ms
	r.reply(core.Acquire, done)
	r.wants("b: granted x1 until 9.908s")
	r.wakes(1978 * ms)
	r.tick(1978 * ms)
	r.wants("a: lost, expired", "a: over") // at its time, and nobody else's is moved
	r.tick(3010 * ms)
	r.wants("renew #1")
}

// A fixed lease that is longer than the watchdog's is not cut short by who joins.
func TestReaderJoinsALongFixedLease(t *testing.T) {
	r := calmly(t, fixed(30*sec))
	r.now = 2 * sec
	r.acquire("b", shared)
	r.wants("acquire #1 r1 for 28s")
	r.reply(core.Acquire, done)
	r.wants("b: granted x1 until 29.718s")
	r.tick(5 * sec)
	r.wants("renew #1")
	if c := r.last(core.Renew); c.Lease < 24718*ms {
		t.Fatalf("what is trusted until 29.7s is renewed for %v at %v", c.Lease, r.now)
	}
}

// A join that was withdrawn on its way does not prolong the lease of whoever was there.
func TestWithdrawnJoinProlongsNothing(t *testing.T) {
	r := reading(t, fixed(2*sec))
	r.acquire("b", shared)
	r.cancel("b")
	r.forget()
	r.reply(core.Acquire, done)
	r.wants()
	if s := r.lock.Snapshot(); s.Until != 1978*ms {
		t.Fatalf("it lasts until %v", s.Until)
	}
	r.wakes(1978 * ms)
}

func TestJoinThatFails(t *testing.T) {
	r := reading(t, fixed(2*sec))
	r.acquire("b", shared)
	r.forget()
	r.reply(core.Acquire, timeoutR)
	r.wants()
	r.sleep(200 * ms)
	r.wants("acquire #1 r1 for 10s")
	r.reply(core.Acquire, denied)
	r.wants("b: refused, rejected", "release #1 to r1 for 1.8s")
	r.acquire("c", shared, try) // it cannot join before the counts are known again
	r.wants("c: refused, held, ttl 1.778s")
}

func TestLeaseEndsWhileAReaderJoins(t *testing.T) {
	r := reading(t, fixed(2*sec))
	r.now = 1900 * ms
	r.acquire("b", shared)
	r.forget()
	r.tick(1978 * ms)
	r.wants("a: lost, expired", "a: over", "release #1")
	r.reply(core.Release, done)
	r.wants("acquire #2 r1 for 10s")
	r.reply(core.Acquire, done)
	r.wants("b: granted x1 until 11.876s")
}

func TestLeaseIsLostWhileAReaderJoins(t *testing.T) {
	r := reading(t, fixed(2*sec))
	r.acquire("b", shared)
	r.forget()
	r.reply(core.Acquire, gone)
	r.wants("a: lost, gone", "a: over", "acquire #2 r1 for 10s") // b has had no share yet
}

func TestCloseWhileAReaderJoins(t *testing.T) {
	r := reading(t, fixed(2*sec))
	r.acquire("b", shared)
	r.forget()
	r.close()
	r.wants("a: lost, closed", "a: over", "b: refused, closed", "release #1")
	r.reply(core.Release, done)
	r.idle()
}

// A renewal of what is left of a fixed lease must not come after the command that makes
// it a longer one.
func TestReaderJoinsAfterTheRenewalUnderWay(t *testing.T) {
	r := calmly(t, fixed(20*sec))
	r.tick(3 * sec)
	r.wants("renew #1")
	r.acquire("b", shared)
	r.wants()
	r.reply(core.Renew, done)
	r.wants("acquire #1 r1 for 17s")
	r.reply(core.Acquire, done)
	r.wants("b: granted x1 until 19.828s")
}

func TestReaderDoesNotJoinWithALateRenewalAbout(t *testing.T) {
	r := calmly(t, fixed(7*sec))
	r.tick(3 * sec)
	r.reply(core.Renew, timeoutR)
	r.sleep(3200 * ms)
	r.reply(core.Renew, done)
	r.forget()
	r.acquire("b", shared)
	r.acquire("c", shared, try)
	r.wants("c: refused, held, ttl 3.728s")
	r.leave("a")
	r.wants("a: over", "release #1") // nor is the term used for another lease
}

// A renewal of what is left of a fixed lease must not come after a yield that keeps the
// lock, for a longer lease.
func TestNoYieldBesideTheRenewalOfAFixedLease(t *testing.T) {
	r := reading(t, fixed(7*sec))
	r.tick(3 * sec)
	r.wants("renew #1")
	r.acquire("b")
	r.leave("a")
	r.wants("a: over", "release #1")
}

func TestClosingReadersAreAllRemembered(t *testing.T) {
	r := reading(t)
	r.acquire("b", shared)
	r.close()
	r.forget()
	r.leave("a")
	r.leave("b")
	r.wants("A: not freed, lost", "B: not freed, lost")
}

// Who only tries to join does not wait for a Redis that does not answer.
func TestTryBehindAFailingCommandOfReaders(t *testing.T) {
	r := reading(t, fixed(2*sec))
	r.acquire("b", shared)
	r.acquire("c", shared, try)
	r.forget()
	r.reply(core.Acquire, loadingR)
	r.wants("c: refused, unavailable")

	r = calmly(t)
	r.tick(3 * sec)
	r.reply(core.Renew, timeoutR)
	r.now = 7 * sec
	r.forget()
	r.acquire("b", shared, try)
	r.wants("renew #1 now")
	r.reply(core.Renew, loadingR)
	r.wants("b: refused, unavailable") // a has been warned before
}
