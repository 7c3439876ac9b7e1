package console_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Semaphores and latches can be looked up, whether this System uses them or not, and their changes are in their stories.
func TestSynchronizers_HaveStories(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	here, there := locktest.Open(t, server.URL(), patient("shop")), locktest.Open(t, server.URL(), patient("billing"))
	base := web(t, console.Handler(here.System, quick, console.WithForceRelease(), console.WithFleet(server.Client(t), "")))
	ctx := locktest.Within(t)
	permits, slots, gate := there.ExpirableSemaphore("permits"), there.Semaphore("slots"), there.Latch("gate")
	follow := func(kind, name string) *streaming {
		return stream(t, base+"events?"+url.Values{"name": {name}, "kind": {kind}}.Encode())
	}
	ofPermits, ofSlots, ofGate := follow("expirable_semaphore", "permits"), follow("semaphore", "slots"), follow("latch", "gate")
	ofPermits.awaits(t, "<dd>has no number of permits")
	ofSlots.awaits(t, "<dd>has no number of permits")
	ofGate.awaits(t, "<dd>is open")

	locktest.Must(permits.TrySetPermits(ctx, 2))(t)
	ofPermits.awaits(t, "<dd>has 2 free permits, and 0 taken")
	locktest.Must(permits.Acquire(ctx))(t)
	ofPermits.awaits(t, "(?s)<dd>has 1 free permit, and 1 taken.*<span>has 2 free permits, and 0 taken.*<span>has no number of permits")
	ofPermits.awaits(t, "<dt>Taken</dt><dd>1 by billing on .*, pid [0-9]+, up since ")
	locktest.Must(slots.TrySetPermits(ctx, 3, 0))(t)
	ofSlots.awaits(t, "(?s)<dd>has 3 free permits.*<span>has 3 free permits.*<span>has no number")
	locktest.Must(gate.TrySetCount(ctx, 2))(t)
	ofGate.awaits(t, "(?s)<dd>is closed, with a count of 2.*<span>is closed, with a count of 2.*<span>is open")

	page := get(t, base+"lock?kind=latch&name=gate")
	if strings.Contains(page, "Force-release") || strings.Contains(page, "unknown number") ||
		!strings.Contains(page, "<option>latch</option>") {
		t.Errorf("the page of a latch: %s", page)
	}
}
