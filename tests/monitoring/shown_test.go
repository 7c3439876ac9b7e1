package monitoring_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Names, applications and errors of Redis have no hidden characters in the log: JSON does not escape characters that
// are invisible or change the direction of text.
func TestLog_EscapesHiddenCharacters(t *testing.T) {
	const hidden = "\u202eeciovni\u2800"
	var log redistest.Log
	logged := func(t *testing.T, message string) {
		t.Helper()
		redistest.Eventually(t, "the log line "+message, func() bool { return strings.Contains(log.String(), message) })
		for line := range strings.Lines(log.String()) {
			if strings.ContainsAny(line, hidden[:len("\u202e")]+"\u2800") {
				t.Errorf("logged: %q", line)
			}
			if strings.Contains(line, message) && !strings.Contains(line, `\\u202e`) {
				t.Errorf("the name is not in %s", line)
			}
		}
	}
	holder, k := locktest.New(t, lockkeeper.Config{Application: hidden})
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{
		Logger: slog.New(slog.NewJSONHandler(&log, nil)), LongWait: 50 * time.Millisecond, Renewal: 100 * time.Millisecond, Watchdog: locktest.Watchdog,
	})
	name := k.LockName + hidden
	held := locktest.Acquire(t, holder.Lock(name))
	granted := locktest.AcquireSoon(t.Context(), s.Lock(name))
	logged(t, "a request waits for long")
	locktest.Release(t, held)
	hold := locktest.Got(t, granted).Hold
	k.Do(t, "DEL", name)
	locktest.EndedBy(t, hold, messages.Reason_REASON_GONE)
	logged(t, "lease lost")
}
