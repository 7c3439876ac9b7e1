package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestOnceRefusesReEntry(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7), once)
	r.wants("again: refused, re-entry")
	r.acquire("b", owner(8), once) // it does not hold the lock, and waits
	r.acquire("b2", owner(8), once)
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "b: handed on x1 until 9.898s", "b2: refused, re-entry")
}

func TestUpgradeIsRefused(t *testing.T) {
	r := reading(t, owner(7))
	r.acquire("up", owner(7))
	r.acquire("up try", owner(7), try)
	r.wants("up: refused, re-entry", "up try: refused, re-entry")
	r.acquire("again", shared, owner(7))
	r.wants("acquire #1 r2 for 10s") // the hold is as good as before
}

func TestUpgradeThatWaitsIsRefusedWithTheReadHold(t *testing.T) {
	r := readWrite(t)
	r.acquire("a", shared, owner(7))
	r.acquire("up", owner(7))
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("a: granted x1 until 9.898s", "up: refused, re-entry")
}

func TestDowngrade(t *testing.T) {
	r := writing(t, owner(7))
	r.acquire("b", shared)
	r.acquire("read", shared, owner(7))
	r.wants("acquire #1 x1 r1 for 10s")
	r.reply(core.Acquire, done)
	r.wants("read: granted x1 until 9.9s")
	r.release("a")
	r.wants("release #1 to r1 for 10s")
	r.acquire("c", shared, try)
	r.wants("c: refused, held, ttl 9.898s") // not before it is certain
	r.reply(core.Release, done)
	r.wants("A: freed x1", "b: handed on x1 until 9.9s")
	r.release("a")
	r.wants("A: not freed, not held")
	r.leave("a")
	r.wants("a: over", "A: freed x0, handed on")
	r.leave("b")
	r.wants("b: over", "release #1")
}

func TestWriterLeavesItsReadHoldFirst(t *testing.T) {
	r := writing(t, owner(7))
	r.acquire("read", shared, owner(7))
	r.reply(core.Acquire, done)
	r.forget()
	r.leave("a")
	r.wants("release #1 to x1 for 10s")
	r.reply(core.Release, done)
	r.wants("A: freed x1")
	r.release("a")
	r.wants("a: over", "release #1")
}

// A writer that has asked to become a reader is one when its next wish is looked at.
func TestUpgradeBehindADowngradeIsRefused(t *testing.T) {
	r := writing(t, owner(7))
	r.acquire("read", shared, owner(7))
	r.reply(core.Acquire, done)
	r.acquire("b", shared)
	r.forget()
	r.release("a")
	r.acquire("up", owner(7))
	r.reply(core.Release, done)
	r.wants("release #1 to r1 for 10s", "A: freed x1", "b: handed on x1 until 9.9s", "up: refused, re-entry")
}

// A command that was given up may still make the lease a writer's again: then it stays
// one, until the hold is over, and its term is used no more.
func TestDowngradeWithALateCommandAbout(t *testing.T) {
	r := readWrite(t)
	r.acquire("a", owner(7))
	r.reply(core.Acquire, timeoutR)
	r.tick(r.wakesWithin(25*ms, 50*ms))
	r.reply(core.Acquire, done)
	r.acquire("read", shared, owner(7))
	r.reply(core.Acquire, done)
	r.acquire("b", shared)
	r.forget()
	r.release("a")
	r.wants("release #1 to x1 r1 for 10s")
	r.reply(core.Release, done)
	r.wants("A: freed x1")
	r.leave("a")
	r.wants("a: over", "release #1")
	r.reply(core.Release, done)
	r.wants("A: freed x0", "acquire #2 r1 for 10s")
}

// A reader's command that was given up may still let others in beside the next writer.
func TestWriterAfterAReadersLateCommand(t *testing.T) {
	r := reading(t, owner(7))
	r.acquire("again", shared, owner(7))
	r.reply(core.Acquire, timeoutR)
	r.cancel("again")
	r.sleep(300 * ms)
	r.reply(core.Release, done)
	r.reply(core.Release, done) // the first had still the old counts
	r.acquire("w")
	r.forget()
	r.leave("a")
	r.wants("a: over", "yield #1") // as a reader's; its tenure is over
	r.reply(core.Yield, kept)
	r.wants("A: freed x0, handed on", "release #1")
	r.reply(core.Release, done)
	r.wants("acquire #2 x1 for 10s")
}

// The same with a downgrade that nobody waits for any more.
func TestTenureEndsWhileADowngradeIsUnderWay(t *testing.T) {
	r := writing(t, owner(7), maxHold(500*ms))
	r.acquire("read", shared, owner(7))
	r.reply(core.Acquire, done)
	r.acquire("w")
	r.release("a")
	r.forget()
	r.tick(502 * ms)
	// To keep the lease would be to keep it as a writer's, or as a reader's: who knows.
	r.wants("a: lost, max hold", "A: not freed, lost", "a: over", "release #1")
}

// When a downgrade may have been made, others may read: the writer has given back its hold
// whatever Redis says, and is a reader from then on.
func TestDowngradeThatMayHaveBeenMade(t *testing.T) {
	r := writing(t, owner(7))
	r.acquire("read", shared, owner(7))
	r.reply(core.Acquire, done)
	r.release("a")
	r.reply(core.Release, timeoutR)
	r.sleep(100 * ms)
	r.forget()
	r.reply(core.Release, denied)
	r.wants("A: not freed, rejected", "release #1 to r1 for 10s")
	r.acquire("b", shared)
	r.wants() // nobody joins before Redis has confirmed that it is a reader
	r.reply(core.Release, done)
	r.wants("b: handed on x1 until 9.998s")
}

func TestNobodyJoinsAWriterThatDied(t *testing.T) {
	r := writing(t, owner(7))
	r.acquire("read", shared, owner(7))
	r.reply(core.Acquire, done)
	r.acquire("b", shared)
	r.release("a")
	r.ownerGone(7)
	r.forget()
	r.reply(core.Release, done)
	r.wants("A: freed x1", "a: over", "b: handed on x1 until 9.9s")
}
