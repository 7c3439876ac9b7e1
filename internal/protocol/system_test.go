package protocol

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// A record that cannot be shown hides only itself.
func TestRecord_BadOneHidesOnlyItself(t *testing.T) {
	t.Parallel()
	const good = `{"client":"c","since":"2026-01-02T03:04:05Z"}`
	bad := []string{
		"", "x", "[]", `{"since":"9999-12-31T23:59:59-01:00"}`, `{"since":"0000-01-01T00:00:00+01:00"}`,
		`{"application":"` + strings.Repeat("x", MaxRecord) + `"}`,
	}
	lines := "1000 " + good
	for _, text := range bad {
		lines += "\n1000 " + text
		if r := Inspected("other", redisclient.Reply{N: [3]int64{1000}, S: [2]string{text}}); r.Client != "other" || !r.Since.IsZero() {
			t.Errorf("%.60s: %+v", text, r)
		}
	}
	lines += "\n1000 " + good
	if all, _, _ := Listed(redisclient.Reply{S: [2]string{lines}}); len(all) != 2 {
		t.Errorf("%d records are listed: %+v", len(all), all)
	}
}
