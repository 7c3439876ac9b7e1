package fleet_test

import (
	"flag"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// callers is how many goroutines ask for grains at a time.
const callers = 24

var useDisthash = flag.Bool("fleet.disthash", false, "proto.actor's own lookup finds the grains, for comparison: tests fail then")

// host and caller are the workers of most tests.
func host() settings {
	return settings{Role: "host", Watchdog: lease, Handling: 5 * time.Millisecond, Stopping: 50 * time.Millisecond, Disthash: *useDisthash}
}

func (f *fleet) caller() *process {
	return f.start(settings{Role: "caller", Watchdog: lease, Callers: callers, Grains: 40, Disthash: *useDisthash})
}

// expectGrains ends the caller, and judges the history. At most failed requests may fail.
func (f *fleet) expectGrains(caller *process, failed int) *verdict {
	f.t.Helper()
	caller.terminate()
	v := f.judge()
	if v.failed > failed {
		f.t.Errorf("%d requests have failed, %d may", v.failed, failed)
	}
	return v
}

// Nodes join under load, with slow handlers and fresh lookups, and leave in turn: no request fails.
func TestGrains_ScaleOutAndIn(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t)
	slow := host()
	slow.Handling = 100 * time.Millisecond
	hosts := []*process{f.start(slow)}
	caller := f.caller()
	f.increases("answered", 300)
	hosts = append(hosts, f.start(slow), f.start(slow))
	f.increases("answered", 1500) // each grain has stopped by itself, and has started again
	for i := range 3 {
		hosts[i].terminate()
		hosts = append(hosts, f.start(slow))
		f.increases("answered", 200)
	}
	for _, p := range hosts[:5] {
		if p.count("begins") == 0 {
			t.Errorf("%v has run no grains", p)
		}
	}
	if v := f.expectGrains(caller, 0); v.longest > 4900*time.Millisecond {
		t.Errorf("a request was lost, and sent again after %v", v.longest)
	}
}

// Hosts are killed, and restarted at their address. Only requests under way fail; the grains are there again when the lease has
// ended.
func TestGrains_SurviveKills(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t)
	fixed := host()
	fixed.Port = freePort(t)
	f.start(host())
	p := f.start(fixed)
	caller := f.caller()
	const rounds = 2
	for range rounds {
		f.increases("answered", 1500)
		p.kill()
		p = f.start(fixed)
	}
	f.increases("answered", 1500)
	f.expectGrains(caller, rounds*callers)
}

// A host is paused for longer than its lease, with messages in front of its grains: it begins none of them when it continues,
// and runs grains again soon.
func TestGrains_SurvivePauses(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t)
	f.start(host())
	p := f.start(host())
	caller := f.caller()
	const rounds = 2
	for range rounds {
		f.increases("answered", 1000)
		p.pause()
		<-time.After(2 * lease)
		p.resume()
		begun := p.count("begins")
		redistest.Eventually(t, "the host to run grains again", func() bool { return p.count("begins") > begun+100 })
	}
	f.expectGrains(caller, rounds*callers)
}
