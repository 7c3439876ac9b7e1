// Package fleet_test tests singletons and grains in real processes, which proto.actor's remote connects: they hand over, and
// are killed, paused and disconnected. The remote has data races of its own, so the processes run without the race detector.
package fleet_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) {
	if text := os.Getenv("FLEET_WORKER"); text != "" {
		work(readSettings(text))
		return
	}
	redistest.Main(m)
}

// fleet has the processes of a test, and their history.
type fleet struct {
	t     *testing.T
	redis *redistest.Server

	mu      sync.Mutex
	history []event
}

func newFleet(t *testing.T) *fleet { return &fleet{t: t, redis: redistest.Start(t)} }

// process is a worker.
type process struct {
	*fleet
	cmd   *exec.Cmd
	s     settings
	ended chan struct{}
}

// start starts a worker, and waits until it is ready.
func (f *fleet) start(s settings) *process {
	f.t.Helper()
	if s.redis == "" {
		s.redis = f.redis.URL()
	}
	p := &process{fleet: f, s: s, ended: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = s.environment()
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	ready, started := make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // with the thread that has started it, the process would die
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		events(bufio.NewScanner(out), func(e event) {
			e.of = p
			f.mu.Lock()
			f.history = append(f.history, e)
			f.mu.Unlock()
			if e.what == "ready" {
				close(ready)
			}
		})
		_ = p.cmd.Wait()
	}()
	if err := <-started; err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { p.kill() })
	f.await("the start of a worker", ready)
	return p
}

func (f *fleet) await(what string, from <-chan struct{}) {
	f.t.Helper()
	select {
	case <-from:
	case <-time.After(40 * time.Second):
		f.t.Fatalf("not within 40 s: %s", what)
	}
}

// add adds an event that the test has caused.
func (p *process) add(what string) {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history = append(p.history, event{at: now.Nano(), what: what, of: p})
}

// terminate ends a worker in good order.
func (p *process) terminate() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.await("the end of a worker", p.ended)
	if !p.cmd.ProcessState.Success() {
		p.t.Errorf("a worker has ended with %v", p.cmd.ProcessState)
	}
}

// kill kills a worker, unless it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.await("the end of a killed worker", p.ended)
}

// leader returns the process of the instance.
func (f *fleet) leader() *process {
	f.t.Helper()
	var leader *process
	redistest.Eventually(f.t, "an instance", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range f.history {
			switch e.what {
			case "started":
				leader = e.of
			case "stopped", "killed", "paused":
				if leader == e.of {
					leader = nil
				}
			}
		}
		return leader != nil
	})
	return leader
}

// begins waits until n more messages are begun, and until what was sent by then is begun or refused. An answer may be lost.
func (f *fleet) begins(n int) {
	f.t.Helper()
	begun := f.count("begins-") + n
	redistest.Eventually(f.t, fmt.Sprintf("%d more beginnings", n), func() bool { return f.count("begins-") >= begun })
	sent := f.count("sent")
	redistest.Eventually(f.t, "the beginning of each message", func() bool { return f.count("begins-")+f.count("refused") >= sent })
}

// count counts the events of a kind.
func (f *fleet) count(kind string) (count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.history {
		if strings.HasPrefix(e.what, kind) {
			count++
		}
	}
	return count
}

// expect ends a sender, and judges the history. At most refused messages may be refused for each fault.
func (f *fleet) expect(sender *process, faults, refused int) {
	f.t.Helper()
	sender.terminate()
	f.mu.Lock()
	defer f.mu.Unlock()
	v := judge(f.history)
	f.t.Logf("%d faults: %v", faults, v)
	for _, fault := range v.faults {
		f.t.Error(fault)
	}
	if v.refused > faults*refused {
		f.t.Errorf("%d messages are refused, %d may be", v.refused, faults*refused)
	}
}

const lease = 2 * time.Second

// Nodes are stopped in turn, as by a rolling update: nothing is lost, begun twice or refused.
func TestFleet_HandsOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	candidate := settings{role: "candidate", watchdog: lease}
	f.start(candidate)
	f.start(candidate)
	sender := f.start(settings{role: "sender", watchdog: lease, rate: 500, burst: 1})
	const rounds = 15
	for range rounds {
		f.begins(100)
		f.leader().terminate()
		f.start(candidate)
	}
	f.begins(100)
	f.expect(sender, rounds, 0)
}

// A slow instance is stopped while messages are queued in front of it.
func TestFleet_HandsOverASlowInstance(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	candidate := settings{role: "candidate", watchdog: lease, handling: 20 * time.Millisecond, stopping: 200 * time.Millisecond}
	f.start(candidate)
	f.start(candidate)
	sender := f.start(settings{role: "sender", watchdog: lease, rate: 4, burst: 10})
	const rounds = 5
	for range rounds {
		f.begins(20)
		f.leader().terminate()
		f.start(candidate)
	}
	f.begins(20)
	f.expect(sender, rounds, 0)
}

// Processes are killed: another instance starts when the lease has ended, and at most one window is refused.
func TestFleet_SurvivesKills(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	candidate := settings{role: "candidate", watchdog: lease}
	f.start(candidate)
	f.start(candidate)
	sender := f.start(settings{role: "sender", watchdog: lease, rate: 250, burst: 1})
	const rounds = 4
	for range rounds {
		f.begins(100)
		leader := f.leader()
		leader.kill()
		leader.add("killed")
		f.start(candidate)
	}
	f.begins(100)
	f.expect(sender, rounds, 64)
}

// Processes are paused for longer than their lease, with messages queued in front of the instance: when they continue,
// they handle none of them.
func TestFleet_SurvivesPauses(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	candidate := settings{role: "candidate", watchdog: lease, handling: 5 * time.Millisecond}
	f.start(candidate)
	f.start(candidate)
	sender := f.start(settings{role: "sender", watchdog: lease, rate: 8, burst: 10})
	const rounds = 3
	for range rounds {
		f.begins(100)
		leader := f.leader()
		_ = leader.cmd.Process.Signal(syscall.SIGSTOP)
		leader.add("paused")
		f.leader() // another one
		f.begins(100)
		_ = leader.cmd.Process.Signal(syscall.SIGCONT)
	}
	f.begins(200)
	f.expect(sender, rounds, 64)
}

// The connection between sender and instance breaks again and again: what was lost on the way is sent again.
func TestFleet_SurvivesBrokenConnections(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	link := newLink(t)
	f.start(settings{role: "candidate", watchdog: lease, port: link.port(), advertise: link.address()})
	sender := f.start(settings{role: "sender", watchdog: lease, rate: 500, burst: 1})
	const rounds = 6
	for range rounds {
		f.begins(200)
		link.cut()
	}
	f.begins(200)
	f.expect(sender, rounds, 0)
}

// The only candidate is restarted at its address, in good order: all messages wait for it. So do those that come after a
// kill.
func TestFleet_RestartsAtTheSameAddress(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	candidate := settings{role: "candidate", watchdog: lease, port: freePort(t)}
	p := f.start(candidate)
	sender := f.start(settings{role: "sender", watchdog: lease, rate: 100, burst: 1})
	const rounds = 3
	for range rounds {
		f.begins(50)
		p.terminate()
		p = f.start(candidate)
	}
	f.begins(50)
	refused := f.count("refused")
	p.kill()
	p.add("killed")
	f.start(candidate)
	f.begins(50)
	f.expect(sender, 1, 64)
	if refused > 0 {
		t.Errorf("%d messages are refused after restarts in good order", refused)
	}
}

// The network swallows everything between sender and instance for longer than a lease, and breaks no connection.
func TestFleet_SurvivesABlackHole(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	link := newLink(t)
	f.start(settings{role: "candidate", watchdog: lease, port: link.port(), advertise: link.address()})
	sender := f.start(settings{role: "sender", watchdog: lease, rate: 100, burst: 1})
	const rounds = 2
	for range rounds {
		f.begins(100)
		link.hole.Lock()
		<-time.After(3 * time.Second)
		link.hole.Unlock()
	}
	f.begins(100)
	f.expect(sender, rounds, 0)
}

// Redis does not answer for longer than a lease: the instance stops in time, and there is one again when Redis is back.
func TestFleet_SurvivesOutagesOfRedis(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	candidate := settings{role: "candidate", watchdog: lease}
	f.start(candidate)
	f.start(candidate)
	sender := f.start(settings{role: "sender", watchdog: lease, rate: 100, burst: 1})
	const rounds = 2
	for range rounds {
		f.begins(100)
		stopped := f.count("stopped")
		f.redis.Pause(t)
		redistest.Eventually(t, "the stop of the instance", func() bool { return f.count("stopped") > stopped })
		<-time.After(time.Second)
		f.redis.Resume(t)
	}
	f.begins(100)
	f.expect(sender, rounds, 64)
}
