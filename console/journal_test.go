package console

import (
	"log/slog"
	"testing"
	"time"
)

// An event names the process that holds the lock: a UUID tells a person nothing.
func TestEvents_NameTheProcess(t *testing.T) {
	owner := slog.String("owner", "7ddec8b3-0459-476d-84e3-caf1b0142cf5:7")
	for want, attributes := range map[string][]slog.Attr{
		"lost: gone (held by this process, term 7, age 2s)": {slog.String("reason", "gone"), owner, slog.Int("term", 7), slog.Duration("age", 2*time.Second)},
		"lost (held by billing on web-3, pid 17, overdue true)": {
			owner, slog.String("application", "billing"), slog.String("host", "web-3"), slog.Int("pid", 17),
			slog.Bool("overdue", true),
		},
		"lost (owner 7ddec8b3-0459-476d-84e3-caf1b0142cf5:7, kind plain)": {slog.String("kind", "plain"), owner},
		"lost": nil,
	} {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "lost", 0)
		r.AddAttrs(attributes...)
		if got := eventOf(r).Text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
