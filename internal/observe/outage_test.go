package observe

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// An outage is logged when it begins, every minute while it lasts, and when no call has failed for
// a while; how long it was is counted to the first call after it that succeeded. Rejections have lines
// of their own, and do not end an outage.
func TestOutage_IsLoggedEachMinuteUntilItEnds(t *testing.T) {
	calls := []struct {
		at  time.Duration
		how CallEnd
	}{
		{1 * time.Second, Served}, {2 * time.Second, Failed}, {3 * time.Second, Failed}, {4 * time.Second, Served}, {61 * time.Second, Failed},
		{62 * time.Second, Failed}, {63 * time.Second, Failed}, {64 * time.Second, Served}, {65 * time.Second, Served},
		{66 * time.Second, Served}, {67 * time.Second, Served}, {68 * time.Second, Failed}, {69 * time.Second, Rejected},
		{75 * time.Second, Rejected},
		{76 * time.Second, Failed}, {129 * time.Second, Rejected}, {130 * time.Second, Served}, {132 * time.Second, Served},
		{134 * time.Second, Rejected},
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
