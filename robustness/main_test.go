package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/controls"
	"github.com/lockkeeper-go/lockkeeper/robustness/faults"
	"github.com/lockkeeper-go/lockkeeper/robustness/report"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// The client processes of the tests are this program again.
func TestMain(m *testing.M) {
	if text := os.Getenv(faults.SpecVariable); text != "" {
		exit(client(text))
	}
	os.Exit(m.Run())
}

func shortRun(t *testing.T, which string) *run {
	t.Helper()
	chosen, err := faults.Named(which)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	plan := one()
	return &run{
		binary: self, plan: plan, faults: chosen, pause: traffic.Range{From: 100 * time.Millisecond, To: 500 * time.Millisecond},
		clients: 2, seed: 1, length: 8 * time.Second, limits: limitsFor(plan, turnsPromised), dir: t.TempDir(), keep: true,
	}
}

// Every kind of lock is used and every fault happens, without a violation.
func TestShortRun(t *testing.T) {
	r, into := shortRun(t, "all"), report.New(1, 2)
	if err := r.whole(r.length, false, into); err != nil {
		t.Fatal(err)
	}
	if !into.OK() {
		var text strings.Builder
		into.Print(&text)
		t.Error(text.String())
	}
	for _, lock := range []string{"plain", "reentrant", "fenced", "fair", "readwrite", "multi-a", "multi-b", "multi-c", "actor", "apis", "apis-beside", "expirable", "expirable: add", "expirable: resize", "semaphore", "semaphore: add", "latch", "latch: close", "latch: down"} {
		if into.Grants[lock] == 0 {
			t.Errorf("the lock %q was never granted", lock)
		}
	}
	if len(into.Faults) == 0 {
		t.Error("no fault has happened")
	}
}

// Redis refuses even a PING while it cannot save, or while a script does not end; a
// client that unsubscribes at that moment keeps working.
func TestClientsSurviveRefusingRedis(t *testing.T) {
	r := shortRun(t, "disk full,BUSY")
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	r.plan.Styles = []traffic.Style{{
		Kind: traffic.Plain, Workers: 3, Hold: traffic.Range{From: ms(5), To: ms(30)}, Think: traffic.Range{To: ms(10)},
		GiveUpShare: 0.7, GiveUpAfter: traffic.Range{To: ms(30)},
	}}
	into := report.New(1, 2)
	if err := r.whole(r.length, false, into); err != nil || !into.OK() {
		t.Fatal(err, into.Violations)
	}
}

// A fault that is hidden from the judge causes a violation.
func TestJudge_DetectsConcealedFault(t *testing.T) {
	r := shortRun(t, "DEL plain")
	w, err := faults.New(r.binary, r.plan, r.clients, r.seed)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Kill()
	w.Conceal()
	v, _, err := r.round(w, 1)
	if err != nil {
		t.Fatal(err)
	}
	if v.OK() {
		t.Error("locks were deleted without the judge's knowledge, and no check failed")
	}
}

// The overlay covers Go and Lua.
func TestControlIsCaught(t *testing.T) {
	for _, name := range []string{"reader beside a writer"} {
		chosen, err := controls.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := control(chosen[0], t.TempDir(), 2, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Caught) == 0 {
			t.Errorf("%q: not caught within %d operations", name, got.After)
		}
	}
}
