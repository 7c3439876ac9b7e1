package actors

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// An outage is logged when it begins, every minute while it lasts, and when no call has failed for
// a while; how long it was is counted to the first call after it that succeeded. Rejections have lines
// of their own, and do not end an outage.
func TestWhenAnOutageIsLogged(t *testing.T) {
	calls := []struct {
		at  time.Duration
		how callEnd
	}{
		{1 * time.Second, served}, {2 * time.Second, failed}, {3 * time.Second, failed}, {4 * time.Second, served}, {61 * time.Second, failed},
		{62 * time.Second, failed}, {63 * time.Second, failed}, {64 * time.Second, served}, {65 * time.Second, served},
		{66 * time.Second, served}, {67 * time.Second, served}, {68 * time.Second, failed}, {69 * time.Second, rejected}, {75 * time.Second, rejected},
		{76 * time.Second, failed}, {129 * time.Second, rejected}, {130 * time.Second, served}, {132 * time.Second, served}, {134 * time.Second, rejected},
	}
	var o outage
	var got []string
	for _, call := range calls {
		next, what := o.after(call.at, call.how)
		switch what {
		case outageBegins:
			got = append(got, fmt.Sprint(call.at, " begins, ", call.how))
		case outageLasts:
			got = append(got, fmt.Sprint(call.at, " lasts, ", call.how, ", failed ", next.calls))
		case outageEnds:
			got = append(got, fmt.Sprint(call.at, " ends after ", next.back-next.began))
			next = outage{}
		}
		o = next
	}
	if want := []string{
		"2s begins, 1", "1m2s lasts, 1, failed 4", "1m6s ends after 1m2s", "1m8s begins, 1", "1m9s begins, 2", "2m9s lasts, 2, failed 5",
		"2m12s ends after 1m2s", "2m14s begins, 2",
	}; !slices.Equal(got, want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// What lasts long is logged at the limit, and then whenever it has doubled; the next one not before.
func TestWhenALongTimeIsLogged(t *testing.T) {
	var l long
	const limit = time.Minute
	told := func(since, want time.Duration) {
		t.Helper()
		at := l.due(since, limit)
		if at != want {
			t.Errorf("since %v it is logged at %v, want %v", since, at, want)
		}
		l = l.told(at, since)
	}
	told(10*time.Second, 70*time.Second)
	told(10*time.Second, 130*time.Second)
	told(30*time.Second, 250*time.Second)
	told(800*time.Second, 860*time.Second)
}
