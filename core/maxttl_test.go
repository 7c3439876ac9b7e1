package core_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// Whoever goes on with a release must know how long the key may stay: a fixed lease is
// longer than the watchdog's, also one of an acquire that nobody has answered.
func TestReleaseKnowsHowLongItsKeyMayStay(t *testing.T) {
	lasts := func(c core.Command, want time.Duration) {
		t.Helper()
		if c.MaxTTL < want {
			t.Errorf("%s is of use for %v only, want %v", commandSentence(c), c.MaxTTL, want)
		}
	}
	r := held(t, fixed(time.Hour))
	lasts(r.lock.Farewell(r.now)[0], time.Hour)
	r.release("a")
	lasts(r.sent[len(r.sent)-1], time.Hour)

	r = newRig(t)
	r.acquire("a", fixed(time.Hour))
	lasts(r.lock.Farewell(r.now)[0], time.Hour)
	r.reply(core.Acquire, timeoutR)
	r.cancel("a")
	lasts(r.sent[len(r.sent)-1], time.Hour)
	lasts(r.lock.Farewell(r.now)[0], time.Hour)
}
