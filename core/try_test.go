package core_test

import (
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestTryIsGranted(t *testing.T) {
	r := newRig(t)
	r.acquire("a", try)
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("a: granted x1 until 9.898s")
}

func TestTryWhileHeldHereIsRefusedAtOnce(t *testing.T) {
	r := held(t)
	r.now = 98 * ms
	r.acquire("b", try)
	r.wants("b: refused, held, ttl 9.8s")
}

func TestTryWhileHeldElsewhere(t *testing.T) {
	r := newRig(t)
	r.acquire("a", try)
	r.forget()
	r.now = 5 * ms
	r.reply(core.Acquire, refused(3*sec))
	r.wants("a: refused, held, ttl 3s")
	r.idle()
}

func TestTryWhileOthersWaitIsRefusedAtOnce(t *testing.T) {
	r := contending(t) // 8 s were left at 4 ms
	r.now = 304 * ms
	r.acquire("b", try)
	r.wants("b: refused, held, ttl 7.7s")
}

func TestTryOnAnAilingRedisIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		result core.Result
		want   []string
	}{
		{"not now", loadingR, []string{"a: refused, unavailable"}},
		{"no answer", timeoutR, []string{"a: refused, unavailable", "release #1"}},
		{"never", denied, []string{"a: refused, rejected"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.acquire("a", try)
			r.forget()
			r.reply(core.Acquire, c.result)
			r.wants(c.want...)
			if c.result.Unsure {
				r.reply(core.Release, gone)
			}
			r.idle()
		})
	}
}

func TestTryWithoutAnyReply(t *testing.T) {
	r := newRig(t)
	r.acquire("a", try)
	r.forget()
	r.wakes(1250 * ms)
	r.tick(1250 * ms)
	r.wants("a: refused, unavailable", "release #1")
}

func TestTryDuringAReleaseWaitsForItOnly(t *testing.T) {
	r := held(t)
	r.release("a")
	r.acquire("b", try)
	r.wants("a: over", "release #1")
	r.reply(core.Release, done)
	r.wants("A: freed x0", "acquire #2 x1 for 10s")

	r = held(t)
	r.release("a")
	r.acquire("b", try)
	r.forget()
	r.reply(core.Release, loadingR)
	r.wants("b: refused, unavailable")
}

func TestTryToReEnterAHoldThatEnds(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("second", owner(7))
	r.release("a")
	r.release("a")
	r.acquire("third", owner(7), try)
	r.acquire("b")
	r.forget()
	r.reply(core.Acquire, done)
	r.reply(core.Release, done)
	r.wants("second: granted x2 until 9.9s", "release #1 to x1 for 10s", "A: freed x1",
		"a: over", "third: refused, held", "A: freed x0, handed on", "b: handed on x1 until 9.9s")
}

// A try that comes while an earlier term is being released waits for Redis once, and not
// for each of the two commands.
func TestTryEndsThoughRedisDoesNotAnswer(t *testing.T) {
	r := newRig(t)
	r.acquire("a", try)
	r.reply(core.Acquire, timeoutR) // it may have been carried out: the term is released
	asked := 10 * ms
	r.now = asked
	r.acquire("b", try)
	r.forget()
	for r.now <= asked+rigConfig.TryTime() && !slices.Contains(r.said, "b: refused, unavailable") {
		at, ok := r.lock.NextWake()
		if !ok {
			t.Fatal("it waits for nothing")
		}
		r.tick(at)
	}
	if took := r.now - asked; took > rigConfig.TryTime() {
		t.Errorf("b is not answered after %v; it was to be after %v: %q", took, rigConfig.TryTime(), r.said)
	}
}
