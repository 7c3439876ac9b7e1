package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestReleaseIsAnsweredWhenRedisHasConfirmed(t *testing.T) {
	r := held(t)
	r.release("a")
	r.wants("a: over", "release #1")
	r.reply(core.Release, done)
	r.wants("A: freed x0")
	r.idle()
}

func TestReleaseOfAHoldThatIsOver(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.release("a")
	r.forget()
	r.release("a") // b's hold is none of a's business
	r.wants("A: not freed, not held")
	r.do(func(l *core.Lock) { l.Release(r.now, 99, 0, core.Exclusive, "nobody") })
	r.do(func(l *core.Lock) { l.Release(r.now, 0, 0, core.Exclusive, "nobody") })
	r.wants("nobody: not freed, not held", "nobody: not freed, not held")
}

func TestReleaseByOwner(t *testing.T) {
	r := held(t, owner(7))
	r.do(func(l *core.Lock) { l.Release(r.now, 0, 8, core.Exclusive, "eight") })
	r.wants("eight: not freed, not held")
	r.do(func(l *core.Lock) { l.Release(r.now, 0, 7, core.Exclusive, "seven") })
	r.wants("a: over", "release #1")
}

func TestReleaseAgainWhileTheFirstIsUnderWay(t *testing.T) {
	r := held(t)
	r.release("a")
	r.forget()
	r.do(func(l *core.Lock) { l.Release(r.now, 1, 0, core.Exclusive, "twice") })
	r.wants("twice: not freed, not held")
}

func TestReleaseFindsTheLockLost(t *testing.T) {
	r := held(t)
	r.release("a")
	r.forget()
	r.reply(core.Release, gone)
	r.wants("A: not freed, lost")
	r.idle()
}

func TestReleaseIsRepeatedUntilItIsConfirmed(t *testing.T) {
	r := held(t)
	r.release("a")
	r.forget()
	r.reply(core.Release, timeoutR)
	r.wants()
	r.tick(r.wakesWithin(27*ms, 52*ms))
	r.wants("release #1")
	r.reply(core.Release, gone) // the first one has done it
	r.wants("A: freed x0")
}

func TestReleaseThatMayHaveBeenDoneLongAgo(t *testing.T) {
	r := held(t)
	r.release("a")
	r.reply(core.Release, timeoutR)
	r.sleep(60 * ms)
	r.reply(core.Release, loadingR)
	r.sleep(200 * ms)
	r.forget()
	r.reply(core.Release, gone)
	r.wants("A: freed x0")
}

func TestReleaseUnderWayAtTheEndOfTheValidity(t *testing.T) {
	r := held(t, fixed(10*sec))
	r.now = 9800 * ms
	r.release("a")
	r.forget()
	r.tick(9898 * ms)
	r.wants() // its reply may still come
	r.reply(core.Release, done)
	r.wants("A: freed x0")
}

func TestReleaseThatSurelyFailedDidNotFree(t *testing.T) {
	r := held(t)
	r.release("a")
	r.reply(core.Release, loadingR)
	r.forget()
	r.sleep(60 * ms)
	r.wants("release #1")
	r.reply(core.Release, gone) // so somebody else has done it
	r.wants("A: not freed, lost")
}

func TestReleaseIsRejected(t *testing.T) {
	r := held(t)
	r.release("a")
	r.forget()
	r.reply(core.Release, denied)
	r.wants("A: not freed, rejected", "left behind until 10.002s")
	r.idle()
}

// untilUnconfirmed lets every release fail until the lease's validity is over.
func untilUnconfirmed(r *rig, result core.Result) {
	for r.now < 9898*ms {
		wake, ok := r.lock.NextWake()
		if !ok {
			r.t.Fatal("it does not want to wake")
		}
		if r.tick(max(wake, r.now)); len(r.sent) > 0 && r.now < 9898*ms {
			r.reply(core.Release, result)
		}
	}
}

func TestReleaseThatIsNeverConfirmed(t *testing.T) {
	r := held(t)
	r.release("a")
	r.reply(core.Release, loadingR)
	r.forget()
	untilUnconfirmed(r, loadingR)
	if r.now != 9898*ms {
		t.Fatalf("it waits until %v", r.now)
	}
	r.said = r.said[len(r.said)-2:]
	r.wants("A: not freed, unavailable", "release #1") // which goes on in the background
	r.acquire("b")
	r.wants()
	r.reply(core.Release, gone)
	r.wants("acquire #2 x1 for 10s")
}

func TestCleaningUpEnds(t *testing.T) {
	r := held(t)
	r.release("a")
	untilUnconfirmed(r, loadingR)
	r.forget()
	r.sleep(30 * sec)
	if len(r.said) < 5 {
		t.Fatalf("it has tried again %d times only", len(r.said))
	}
	r.idle() // by then the key is gone by itself
}

func TestNewcomerDoesNotWaitForACleaningThatFails(t *testing.T) {
	r := held(t, fixed(2*sec))
	r.tick(1978 * ms)
	r.acquire("b")
	r.forget()
	r.reply(core.Release, loadingR)
	r.wants("acquire #2 x1 for 10s")
}

// The release of a try that may have been carried out is rejected too: its key may be there.
func TestCleanUpIsRejected(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.reply(core.Acquire, timeoutR)
	r.cancel("a")
	r.wants("acquire #1 x1 for 10s", "a: refused, cancelled", "cancel: withdrawn 1", "release #1")
	r.reply(core.Release, denied)
	r.wants("left behind until 10s")
	r.idle()
}
