package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestEnsureWithEnoughLeft(t *testing.T) {
	r := held(t)
	r.ensure("a", 9*sec)
	r.wants("ensure: ensured until 9.898s")
}

func TestEnsureRenews(t *testing.T) {
	r := held(t)
	r.now = 2 * sec
	r.ensure("a", 9*sec)
	r.wants("renew #1 now")
	r.reply(core.Renew, done)
	r.wants("ensure: ensured until 11.898s")
}

func TestEnsureOfAllThatARenewalGives(t *testing.T) {
	r := held(t)
	r.now = 2 * sec
	r.ensure("a", 9898*ms)
	r.wants("renew #1 now")
	r.now = 2500 * ms
	r.reply(core.Renew, done)
	r.wants("ensure: ensured until 11.898s")
}

func TestEnsureOfMoreThanARenewalGives(t *testing.T) {
	r := held(t)
	r.ensure("a", 9899*ms)
	r.wants("ensure: not done, invalid")
}

func TestEnsureWaitsForTheRenewalUnderWay(t *testing.T) {
	r := held(t)
	r.tick(3 * sec)
	r.ensure("a", 8*sec)
	r.wants("renew #1")
	r.reply(core.Renew, done)
	r.wants("ensure: ensured until 12.898s")
}

func TestEnsureHastensARenewalThatIsToBeRepeated(t *testing.T) {
	r := held(t)
	r.tick(3 * sec)
	r.reply(core.Renew, loadingR)
	r.forget()
	r.ensure("a", 8*sec)
	r.wants("renew #1 now")
	r.reply(core.Renew, loadingR)
	r.wants("ensure: not done, unavailable")
}

func TestEnsureThatARenewalUnderWayIsTooOldFor(t *testing.T) {
	r := held(t)
	r.tick(3 * sec)
	r.now = 3500 * ms
	r.ensure("a", 9800*ms)
	r.wants("renew #1")
	r.reply(core.Renew, done) // good until 12.898 s, but 13.3 s are asked for
	r.wants("renew #1 now")
	r.reply(core.Renew, done)
	r.wants("ensure: ensured until 13.398s")
}

func TestEnsureOfWhatIsNotRenewed(t *testing.T) {
	r := held(t, fixed(2*sec))
	r.ensure("a", sec)
	r.ensure("a", 3*sec)
	r.wants("ensure: ensured until 1.978s", "ensure: not done, invalid")

	r = held(t, maxHold(4*sec))
	r.ensure("a", sec)
	r.ensure("a", 5*sec)
	r.wants("ensure: ensured until 4.002s", "ensure: not done, invalid")
}

func TestEnsureOfAHoldThatIsOver(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.release("a")
	r.forget()
	r.ensure("a", sec)
	r.do(func(l *core.Lock) { l.Ensure(r.now, 0, sec, "nobody") })
	r.wants("ensure: not done, not held", "nobody: not done, not held")
}

func TestEnsureOfAHoldThatWasLost(t *testing.T) {
	r := held(t)
	r.tick(3 * sec)
	r.ensure("a", 8*sec)
	r.forget()
	r.reply(core.Renew, gone)
	r.wants("a: lost, gone", "ensure: not done, lost", "a: over")
	r.ensure("a", sec)
	r.wants("ensure: not done, lost")
}

func TestEnsureDuringARelease(t *testing.T) {
	r := held(t)
	r.now = 2 * sec
	r.ensure("a", 9*sec)
	r.release("a")
	r.wants("renew #1 now", "a: over", "ensure: not done, not held", "release #1")
	r.reply(core.Renew, done)
	r.wants()
}
