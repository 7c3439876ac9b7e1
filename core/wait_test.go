package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestWaitIsOver(t *testing.T) {
	r := held(t)
	r.acquire("b", until(500*ms))
	r.acquire("c", until(200*ms))
	r.wakes(200 * ms)
	r.tick(200 * ms)
	r.wants("c: refused, timed out, ttl 9.698s")
	r.wakes(500 * ms)
	r.tick(500 * ms)
	r.wants("b: refused, timed out, ttl 9.398s")
	r.wakes(3 * sec)
}

func TestWaitForAnotherProcessIsOver(t *testing.T) {
	r := contending(t, until(300*ms))
	r.wakes(300 * ms)
	r.tick(300 * ms)
	r.wants("a: refused, timed out, ttl 7.704s", "unsubscribe")
	r.idle()
}

func TestWaitForAnAilingRedisIsOver(t *testing.T) {
	r := newRig(t)
	r.acquire("a", until(200*ms))
	r.reply(core.Acquire, loadingR)
	r.forget()
	for r.now < 200*ms {
		wake, _ := r.lock.NextWake()
		r.tick(wake)
		if r.now < 200*ms {
			r.reply(core.Acquire, loadingR)
		}
	}
	if got := r.said[len(r.said)-1]; got != "a: refused, unavailable" {
		t.Fatalf("it says %q at last", r.said)
	}
	r.idle()
}

func TestWaitThatIsOverDuringATry(t *testing.T) {
	r := newRig(t)
	r.acquire("a", until(20*ms))
	r.forget()
	r.tick(20 * ms)
	r.wants("a: refused, unavailable") // nothing is known of the lock
	r.now = 30 * ms
	r.reply(core.Acquire, done)
	r.wants("release #1")
	r.reply(core.Release, done)
	r.idle()
}

func TestReplyAndEndOfTheWaitAtOnce(t *testing.T) {
	r := newRig(t)
	r.acquire("a", until(20*ms))
	r.forget()
	r.now = 20 * ms
	r.reply(core.Acquire, done)
	r.wants("a: refused, unavailable", "release #1")
}

func TestWaitThatIsOverWhenItBegins(t *testing.T) {
	r := held(t)
	r.now = 30 * ms
	r.acquire("b", until(20*ms))
	r.tick(30 * ms)
	r.wants("b: refused, timed out, ttl 9.868s")
}

func TestAilmentThatIsOverIsNoExcuse(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("again", owner(7))
	r.reply(core.Acquire, loadingR)
	r.sleep(100 * ms)
	r.reply(core.Acquire, done)
	r.acquire("b", until(200*ms))
	r.forget()
	r.tick(200 * ms)
	if len(r.said) != 1 || r.said[0][:22] != "b: refused, timed out," {
		t.Fatalf("it says %q", r.said)
	}
}

func TestCancel(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.acquire("c")
	r.cancel("b")
	r.wants("b: refused, cancelled", "cancel: withdrawn 1")
	r.cancel("b")
	r.wants("cancel: withdrawn 0")
	r.cancel("a") // granted: that takes a release
	r.wants("cancel: withdrawn 0")
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "c: handed on x1 until 9.898s")
}

func TestCancelByOwner(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("b", owner(8))
	r.acquire("c", owner(9))
	r.acquire("d", owner(8))
	r.do(func(l *core.Lock) { l.Cancel(r.now, 0, 8, "cancel") })
	r.wants("b: refused, cancelled", "d: refused, cancelled", "cancel: withdrawn 2")
	r.do(func(l *core.Lock) { l.Cancel(r.now, 0, 0, "cancel") })
	r.wants("cancel: withdrawn 0")
}

func TestCancelOfReEntriesInFlightAndBehind(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("second", owner(7))
	r.acquire("third", owner(7))
	r.forget()
	r.do(func(l *core.Lock) { l.Cancel(r.now, 0, 7, "cancel") })
	r.wants("third: refused, cancelled", "second: refused, cancelled", "cancel: withdrawn 2")
	r.reply(core.Acquire, done)
	r.wants("release #1 to x1 for 10s")
}

func TestCancelDuringATry(t *testing.T) {
	for _, c := range []struct {
		name   string
		result core.Result
		want   []string
	}{
		{"granted", done, []string{"release #1"}},
		{"refused", refused(sec), nil},
		{"not now", loadingR, nil},
		{"no answer", timeoutR, []string{"release #1"}},
		{"never", denied, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.acquire("a")
			r.cancel("a")
			r.wants("acquire #1 x1 for 10s", "a: refused, cancelled", "cancel: withdrawn 1")
			r.reply(core.Acquire, c.result)
			r.wants(c.want...)
			if len(c.want) > 0 {
				r.reply(core.Release, done)
			}
			r.forget()
			r.idle()
		})
	}
}

func TestNextWaiterGetsATryThatWasForAnother(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.acquire("b")
	r.cancel("a")
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("b: granted x1 until 9.898s")
}
