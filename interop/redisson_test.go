package main

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == driveVerb { // the test binary is the Go driver, too
		os.Exit(drive(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	// rueidis sleeps out a second after a connect that failed.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// TestInterop runs the program with -quick, for the plain lock and the synchronizers, with the
// Redisson of java/pom.xml. build/interop.sh runs the other kinds, and more rounds.
func TestInterop(t *testing.T) {
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Log("NOTHING IS TESTED AGAINST REDISSON HERE")
			t.Skipf("the tests against Redisson need a JDK (17 or later) and Maven (3.8 or later) on PATH: %v", err)
		}
	}
	server := redistest.Start(t) // unlike the program's own, it ends with the test
	var reds []string
	for range 3 {
		reds = append(reds, redistest.Start(t).URL())
	}
	var stdout, stderr bytes.Buffer
	code := run(
		[]string{
			"-quick", "-kind", "plain", "-kind", "semaphore", "-kind", "expirable_semaphore", "-kind", "latch",
			"-redis", server.URL(), "-red", strings.Join(reds, ","),
		},
		&stdout, &stderr,
	)
	t.Logf("\n%s%s", &stderr, &stdout)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	want := 1 + 2 // the leftovers, and the killed holders
	count := func(cases []testcase, k kind) {
		for _, a := range cases {
			if a.applies == nil || a.applies(k) {
				if want++; !a.bothSides {
					want++
				}
			}
		}
	}
	count(slices.Concat(sequential, parallel), plainKind)
	for _, k := range kinds {
		if k.synchronizes() {
			count(synchronizerCases, k)
		}
	}
	if rows := strings.Count(stdout.String(), " ok "); rows != want {
		t.Errorf("%d rows are ok, want %d", rows, want)
	}
	for _, key := range server.Keys(t, "*") {
		if !strings.HasPrefix(key, "lockkeeper_calls:") { // which expire
			t.Errorf("left in Redis: %q", key)
		}
	}
}

// judge detects overlapping holds and falling tokens.
func TestJudge_DetectsOverlapsAndFallingTokens(t *testing.T) {
	promotion := time.Now()
	hold := func(s side, lock string, granted, left int, token int64) trusted {
		return trusted{s, promotion.Add(milliseconds(granted)), promotion.Add(milliseconds(left)), lock, token}
	}
	other := []trusted{hold(java, "b", -30, 30, 9), hold(golang, "b", 40, 45, 10)}
	for want, holds := range map[string][]trusted{
		"":                     {hold(golang, "a", -10, -5, 1), hold(java, "a", -5, 5, 2), hold(golang, "a", 10, 20, 3), hold(java, "a", 20, 25, 4)},
		"1 holds overlap":      {hold(golang, "a", -10, 20, 1), hold(java, "a", 19, 25, 2)},
		"1 tokens have fallen": {hold(java, "a", -10, 5, 5), hold(golang, "a", 10, 20, 4), hold(java, "a", 30, 40, 6)},
		"2 tokens have fallen": {hold(java, "a", -10, 5, 5), hold(golang, "a", 10, 20, 5), hold(java, "a", 30, 40, 5)},
	} {
		s, c := &env{}, &contention{holds: append(holds, other...)}
		err := s.run(func(s *env) { c.judge(s, promotion, promotion) })
		if err == nil && want != "" || err != nil && (want == "" || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
