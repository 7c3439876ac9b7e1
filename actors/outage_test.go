package actors

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// An outage is logged when it begins, every minute while it lasts, and when no call has failed for
// a while; how long it was is counted to the first call after it that succeeded.
func TestWhenAnOutageIsLogged(t *testing.T) {
	const fails, succeeds = true, false
	calls := []struct {
		at     time.Duration
		failed bool
	}{
		{1 * time.Second, succeeds}, {2 * time.Second, fails}, {3 * time.Second, fails}, {4 * time.Second, succeeds}, {61 * time.Second, fails},
		{62 * time.Second, fails}, {63 * time.Second, fails}, {64 * time.Second, succeeds}, {65 * time.Second, succeeds},
		{66 * time.Second, succeeds}, {67 * time.Second, succeeds}, {68 * time.Second, fails},
	}
	var o outage
	var got []string
	for _, call := range calls {
		next, what := o.after(call.at, call.failed)
		switch what {
		case outageBegins:
			got = append(got, fmt.Sprint(call.at, " begins"))
		case outageLasts:
			got = append(got, fmt.Sprint(call.at, " lasts, failed ", next.calls))
		case outageEnds:
			got = append(got, fmt.Sprint(call.at, " ends after ", next.back-next.began))
			next = outage{}
		}
		o = next
	}
	if want := []string{"2s begins", "1m2s lasts, failed 4", "1m6s ends after 1m2s", "1m8s begins"}; !slices.Equal(got, want) {
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
