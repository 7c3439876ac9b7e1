package fleet_test

import (
	"fmt"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// callers is how many goroutines ask for grains at a time.
const callers = 24

// host and caller are the workers of most tests.
func host() settings {
	return settings{role: "host", watchdog: lease, handling: 5 * time.Millisecond, stopping: 50 * time.Millisecond}
}

func (f *fleet) caller() *process {
	return f.start(settings{role: "caller", watchdog: lease, rate: callers, burst: 40})
}

// answers waits until n more requests are answered.
func (f *fleet) answers(n int) {
	f.t.Helper()
	n += f.count("answered")
	redistest.Eventually(f.t, fmt.Sprintf("%d more answers", n), func() bool { return f.count("answered") >= n })
}

// expectGrains ends the caller, and judges the history. At most failed requests may fail.
func (f *fleet) expectGrains(caller *process, failed int) grainVerdict {
	f.t.Helper()
	caller.terminate()
	f.mu.Lock()
	defer f.mu.Unlock()
	v := judgeGrains(f.history)
	f.t.Log(v)
	for i, fault := range v.faults {
		if f.t.Error(fault); i > 20 {
			break
		}
	}
	if v.failed > failed {
		f.t.Errorf("%d requests have failed, %d may", v.failed, failed)
	}
	return v
}

// Nodes join under load, with slow handlers and fresh lookups, and leave in turn: no request fails.
func TestGrains_ScaleOutAndIn(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	slow := host()
	slow.handling = 100 * time.Millisecond
	hosts := []*process{f.start(slow)}
	caller := f.caller()
	f.answers(300)
	hosts = append(hosts, f.start(slow), f.start(slow))
	f.answers(1000) // new grains come up every thousand
	for range 3 {
		hosts[0].terminate()
		hosts = append(hosts[1:], f.start(slow))
		f.answers(200)
	}
	v := f.expectGrains(caller, 0)
	if len(v.hosts) < 5 {
		t.Errorf("%d hosts have run grains", len(v.hosts))
	}
	if v.longest > 4900 {
		t.Errorf("a request was lost, and sent again after %d ms", v.longest)
	}
}

// Hosts are killed, and restarted at their address. Only requests under way fail; the grains are there again when the lease has
// ended.
func TestGrains_SurviveKills(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	fixed := host()
	fixed.port = freePort(t)
	f.start(host())
	p := f.start(fixed)
	caller := f.caller()
	const rounds = 2
	for range rounds {
		f.answers(1500)
		p.kill()
		p.add("killed")
		p = f.start(fixed)
	}
	f.answers(1500)
	f.expectGrains(caller, rounds*callers)
}

// A host is paused for longer than its lease, with messages in front of its grains: it begins none of them when it continues,
// and runs grains again soon.
func TestGrains_SurvivePauses(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start(host())
	p := f.start(host())
	caller := f.caller()
	const rounds = 2
	for range rounds {
		f.answers(1000)
		_ = p.cmd.Process.Signal(syscall.SIGSTOP)
		p.add("paused")
		<-time.After(2 * lease)
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		p.add("resumed")
		begun := f.begunBy(p)
		redistest.Eventually(t, "the host to run grains again", func() bool { return f.begunBy(p) > begun+100 })
	}
	f.expectGrains(caller, rounds*callers)
}

// begunBy returns how many messages a process has begun.
func (f *fleet) begunBy(p *process) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.history {
		if e.of == p && len(e.what) > 7 && e.what[:7] == "begins/" {
			n++
		}
	}
	return n
}

// A host is cut off from Redis: its grains stop before its lease ends, and run elsewhere after that.
func TestGrains_SurviveACutFromRedis(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	address, err := url.Parse(f.redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	link := newLinkTo(t, address.Host)
	f.start(host())
	cut := host()
	cut.redis = "redis://" + link.address()
	p := f.start(cut)
	caller := f.caller()
	const rounds = 2
	for range rounds {
		f.answers(1000)
		link.hole.Lock()
		<-time.After(2 * lease)
		link.hole.Unlock()
		link.cut()
		begun := f.begunBy(p)
		redistest.Eventually(t, "the host to run grains again", func() bool { return f.begunBy(p) > begun+100 })
	}
	f.expectGrains(caller, 0)
}

// Redis does not answer for longer than a lease: all grains stop, and return with it.
func TestGrains_SurviveOutagesOfRedis(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.start(host())
	f.start(host())
	caller := f.caller()
	f.answers(1000)
	f.redis.Pause(t)
	<-time.After(2 * lease)
	f.redis.Resume(t)
	f.answers(1000)
	failed := f.count("failed")
	f.answers(1000)
	if now := f.count("failed"); now != failed {
		t.Errorf("%d requests have failed afterwards", now-failed)
	}
	f.expectGrains(caller, 4*callers)
}
