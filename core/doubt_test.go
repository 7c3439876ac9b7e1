package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// A command that was given up may still arrive, and set the TTL that it names. So a
// term for which a shorter one may be on its way is not used for a longer lease.

func TestTermOfAnUnsureTryIsNotUsedForALongerLease(t *testing.T) {
	r := newRig(t)
	r.acquire("a", fixed(sec))
	r.reply(core.Acquire, timeoutR)
	r.acquire("b")
	r.cancel("a")
	r.forget()
	r.sleep(60 * ms)
	r.wants("release #1")
	r.reply(core.Release, done)
	r.wants("acquire #2 x1 for 10s")
	r.reply(core.Acquire, done)
	r.forget()
	r.release("b")
	r.wants("b: over", "release #2")
}

func TestTermOfAnUnsureTryIsUsedForAShorterLease(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.reply(core.Acquire, timeoutR)
	r.acquire("b", fixed(sec))
	r.cancel("a")
	r.forget()
	r.sleep(60 * ms)
	r.wants("acquire #1 x1 for 1s")
}

func TestLeaseThatALateTryMayCutShortIsNotHandedOn(t *testing.T) {
	r := newRig(t)
	r.acquire("a", fixed(sec))
	r.reply(core.Acquire, timeoutR)
	r.sleep(60 * ms)
	r.reply(core.Acquire, done)
	r.acquire("b")
	r.forget()
	r.release("a")
	r.wants("a: over", "release #1")
	r.reply(core.Release, done)
	r.wants("A: freed x0", "acquire #2 x1 for 10s")
}

func TestRenewalUnderWayMayCutShortALongerLease(t *testing.T) {
	r := longTenure(t)
	r.acquire("b", fixed(20*sec))
	r.acquire("c")
	r.tick(3 * sec)
	r.release("a")
	r.wants("renew #1", "a: over", "release #1")
	r.reply(core.Release, done)
	r.wants("A: freed x0", "acquire #2 x1 for 20s")
}

func TestReEntryThatWasGivenUpMayCutShortTheNextLease(t *testing.T) {
	r := held(t, owner(7), fixed(2*sec))
	r.acquire("again", owner(7), try)
	r.reply(core.Acquire, timeoutR)
	r.reply(core.Release, done) // the count is set right
	r.acquire("b")
	r.forget()
	r.release("a")
	r.wants("a: over", "release #1")
}

func TestReEntryThatWasGivenUpMayCutShortALongerOne(t *testing.T) {
	r := held(t, owner(7), fixed(2*sec))
	r.now = sec
	r.acquire("again", owner(7), try)
	r.reply(core.Acquire, timeoutR)
	r.reply(core.Release, done)
	r.forget()
	r.acquire("longer", owner(7), fixed(5*sec))
	r.wants("longer: refused, unavailable")
}
