package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
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
		next, what := o.after(call.at, call.how, quietPeriod)
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

// One server of a cluster does not answer; a candidate tries every few seconds, and the other servers answer.
func TestOutage_LastsWhileOneServerOfAClusterIsAway(t *testing.T) {
	var now machine.Instant
	o := New(Config{
		Host: host.New(nil, slog.New(slog.DiscardHandler)), Cluster: true,
		Now: func() machine.Instant { return now }, Load: func(context.Context) (int64, int, bool) { return 0, 0, false },
	})
	for range 12 {
		o.Reached("acquire", Failed, errors.New("no answer"))
		for range 10 {
			now += time.Second
			o.Reached("renew", Served, nil)
		}
	}
	if o.outages.calls != 12 {
		t.Errorf("the outage that is under way has %d failed calls, want 12", o.outages.calls)
	}
}
