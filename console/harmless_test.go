package console_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

// Looking up a name, also on a page that stays open, does not keep it from being used as another kind.
func TestLookUpClaimsNoName(t *testing.T) {
	t.Parallel()
	s, k := locktest.Alone(t, patient(""))
	base := web(t, console.Handler(s.System, console.WithInterval(time.Hour)))
	for _, kind := range []string{"plain", "fenced", "fair", "read_write"} {
		name := k.LockName + kind
		stream(t, base+"events?name="+url.QueryEscape(name)+"&kind="+kind).next(t)
		if _, err := s.Semaphore(name).TrySetPermits(locktest.Within(t), 1, 0); err != nil {
			t.Errorf("a semaphore after a look-up as %s: %v", kind, err)
		}
	}
}

// A carriage return in a name, an application or a search does not end the event.
func TestCarriageReturnInAnEvent(t *testing.T) {
	t.Parallel()
	const name = "a\r\rdata: b\rc"
	s, _ := locktest.Alone(t, patient("app\r\rdata: x\r\n\r\n"))
	locktest.Acquire(t, s.Lock(name))
	base := web(t, console.Handler(s.System, quick))
	for _, page := range []string{"events", "events?q=" + url.QueryEscape("a\r")} {
		if event := stream(t, base+page).next(t); strings.Contains(event, "\r") || !strings.Contains(event, "b\nc") {
			t.Errorf("%s: %q", page, event)
		}
	}
}
