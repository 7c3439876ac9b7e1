package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// overdueTenure is a rig at 150 ms, after the end of a's tenure (at 102 ms), with b and c waiting.
func overdueTenure(t *testing.T) *rig {
	t.Helper()
	r := held(t)
	r.acquire("b")
	r.acquire("c")
	r.now = 150 * ms
	r.release("a")
	r.wants("a: over", "yield #1")
	return r
}

func TestTenureThatNobodyMindsBeginsAnew(t *testing.T) {
	r := overdueTenure(t)
	r.now = 152 * ms
	r.reply(core.Yield, kept)
	r.wants("A: freed x0, handed on", "b: granted x1 until 10.048s")
	r.now = 251 * ms // within the tenure that began at 152 ms
	r.release("b")
	r.wants("b: over", "B: freed x0, handed on", "c: handed on x1 until 10.048s")
	r.now = 252 * ms
	r.acquire("d")
	r.release("c")
	r.wants("c: over", "yield #1")
}

func TestLastHolderDoesNotYield(t *testing.T) {
	r := held(t)
	r.now = 150 * ms
	r.release("a")
	r.wants("a: over", "release #1")
}

func TestTenureThatOthersWaitFor(t *testing.T) {
	r := overdueTenure(t)
	r.now = 152 * ms
	r.reply(core.Yield, yielded(2))
	r.wants("A: freed x0", "subscribe")
	r.signal() // our own, heard since the channel is still subscribed from before
	r.now = 154 * ms
	r.subscribed()
	r.wants()
	r.wakes(352 * ms) // a tenure for each of the others
	r.signal()
	r.wants() // one of them has had its go
	r.signal()
	r.wants("acquire #2 x1 for 10s")
	r.now = 156 * ms
	r.reply(core.Acquire, done)
	r.wants("b: granted x1 until 10.052s")
}

func TestOthersHaveTheirTimeOnly(t *testing.T) {
	r := overdueTenure(t)
	r.now = 152 * ms
	r.reply(core.Yield, yielded(1))
	r.forget()
	r.tick(252 * ms)
	r.wants("acquire #2 x1 for 10s")
	r.reply(core.Acquire, refused(8*sec))
	r.wants("subscribe") // the first request for it was not confirmed
	r.wakesWithin(752*ms, 1252*ms)
}

func TestNewcomerDoesNotDisturbTheOthersGo(t *testing.T) {
	r := overdueTenure(t)
	r.now = 152 * ms
	r.reply(core.Yield, yielded(1))
	r.forget()
	r.acquire("d")
	r.wants()
	r.wakes(252 * ms)
}

func TestOwnMessageIsNotAnothersGo(t *testing.T) {
	r := contending(t)
	r.signal()
	r.now = 6 * ms
	r.reply(core.Acquire, done)
	r.acquire("b")
	r.forget() // b came too late to keep the subscription: it ended with a's grant
	r.now = 200 * ms
	r.release("a")
	r.wants("a: over", "yield #1")

	r = contending(t)
	r.acquire("b")
	r.signal()
	r.now = 6 * ms
	r.reply(core.Acquire, done)
	r.forget() // b keeps it
	r.now = 200 * ms
	r.release("a")
	r.wants("a: over", "yield #1 subscribed")
	r.now = 202 * ms
	r.reply(core.Yield, yielded(1))
	r.wants("A: freed x0")
	r.signal() // our own
	r.wants()
	r.signal() // the other's
	r.wants("acquire #2 x1 for 10s")
}

func TestLockIsOpenedNowAndThenForThoseWhoDoNotSubscribe(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.now = 1002 * ms
	r.release("a")
	r.wants("a: over", "yield #1 open")
	r.now = 1004 * ms
	r.reply(core.Yield, yielded(0))
	r.wants("A: freed x0", "subscribe")
	r.subscribed()
	r.signal() // our own; others would not be seen either
	r.signal()
	r.wants()
	r.wakes(1104 * ms)
	r.tick(1104 * ms)
	r.wants("acquire #2 x1 for 10s")
}

func TestTermKeepsItsOpeningThroughItsTenures(t *testing.T) {
	r := overdueTenure(t)
	r.reply(core.Yield, kept)
	r.forget()
	r.now = 1001 * ms
	r.release("b")
	r.wants("b: over", "yield #1")
	r.reply(core.Yield, kept)
	r.forget()
	r.acquire("d")
	r.now = 1200 * ms
	r.release("c")
	r.wants("c: over", "yield #1 open")
}

func TestYieldFindsTheLockLost(t *testing.T) {
	r := overdueTenure(t)
	r.reply(core.Yield, gone)
	r.wants("A: not freed, lost", "acquire #2 x1 for 10s")
}

func TestYieldFails(t *testing.T) {
	r := overdueTenure(t)
	r.reply(core.Yield, timeoutR)
	r.wants()
	r.tick(r.wakesWithin(175*ms, 200*ms))
	r.wants("release #1") // it may have been released: make that certain
	r.reply(core.Release, gone)
	r.wants("A: freed x0", "acquire #2 x1 for 10s")
}

func TestWaitersMayLeaveWhileOthersHaveTheirGo(t *testing.T) {
	r := overdueTenure(t)
	r.reply(core.Yield, yielded(1))
	r.forget()
	r.cancel("b")
	r.cancel("c")
	r.wants("b: refused, cancelled", "cancel: withdrawn 1", "c: refused, cancelled", "cancel: withdrawn 1", "unsubscribe")
	r.idle()
}
