package fleet_test

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
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
	t       *testing.T
	redis   string // the URL
	binary  string // of the workers; this one if empty
	network *network

	mu      sync.Mutex
	history []event
	counts  map[string]int
	// texts has the words of events once: there are millions of them.
	texts map[string]string
	// instance is the process of the singleton's instance.
	instance *process
	started  int64
}

func newFleet(t *testing.T, redis string) *fleet {
	return &fleet{t: t, redis: redis, network: newNetwork(t), counts: map[string]int{}, texts: map[string]string{}}
}

// process is a worker.
type process struct {
	*fleet
	cmd   *exec.Cmd
	s     settings
	ended chan struct{}
	// counts has the events of this process; the fleet's mutex guards it.
	counts map[string]int
}

// String returns the name of a worker, and its number.
func (p *process) String() string { return fmt.Sprint(cmp.Or(p.s.Name, p.s.Role), "#", p.s.Seq) }

// start starts a worker, and waits until it is ready.
func (f *fleet) start(s settings) *process {
	f.t.Helper()
	p := f.launch(s)
	f.awaitReady(p)
	return p
}

// launch starts a worker.
func (f *fleet) launch(s settings) *process {
	f.t.Helper()
	s.Redis, s.Network = cmp.Or(s.Redis, f.redis), f.network.Addr().String()
	f.mu.Lock()
	f.started++
	s.Seq = f.started
	f.mu.Unlock()
	if s.Name != "" {
		f.network.register(fmt.Sprint("127.0.0.1:", s.Port), s.Name)
	}
	p := &process{fleet: f, s: s, ended: make(chan struct{}), counts: map[string]int{}}
	p.cmd = exec.Command(cmp.Or(f.binary, os.Args[0]))
	p.cmd.Env = s.environment()
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // with the thread that has started it, the process would die
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.adds(readEvent(lines.Text()))
		}
		_ = p.cmd.Wait()
	}()
	if err := <-started; err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { p.kill() })
	return p
}

func (f *fleet) awaitReady(p *process) {
	f.t.Helper()
	hasEnded := func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	}
	if !f.within(40*time.Second, func() bool { return p.count("ready") > 0 || hasEnded() }) || p.count("ready") == 0 {
		f.t.Fatalf("%v is not ready after 40 s, or has ended", p)
	}
}

// within waits until cond is true.
func (f *fleet) within(limit time.Duration, cond func() bool) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		if cond() {
			return true
		}
	}
	return cond()
}

// readEvent reads what a worker reports.
func readEvent(line string) (e event) {
	if _, err := fmt.Sscan(line, &e.at, &e.what, &e.name, &e.token, &e.n); err != nil {
		return event{what: "unreadable: " + line}
	}
	return e
}

// adds adds an event of a worker.
func (p *process) adds(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.of, e.what, e.name = p, p.once(e.what), p.once(e.name)
	p.history = append(p.history, e)
	p.fleet.counts[e.what]++
	p.counts[e.what]++
	p.counts[e.what+" "+kindOf(e.name)]++
	switch e.what {
	case "started":
		if e.name == theSingleton {
			p.instance = p
		}
	case "stopped":
		if e.name == theSingleton && p.instance == p {
			p.instance = nil
		}
	case "killed", "paused":
		if p.instance == p {
			p.instance = nil
		}
	}
}

// kindOf returns what an actor is.
func kindOf(name string) string {
	if name == theSingleton {
		return theSingleton
	}
	return "grain"
}

func (f *fleet) once(text string) string {
	known, ok := f.texts[text]
	if !ok {
		known, f.texts[text] = text, text
	}
	return known
}

// add adds an event that the test has caused.
func (p *process) add(what, name string) {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	p.adds(event{at: now.Nano(), what: what, name: name})
}

func (p *process) awaitEnd(limit time.Duration) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines are worth reading
		<-p.ended
		p.t.Errorf("%v has not ended within %v", p, limit)
	}
}

// terminate ends a worker in good order.
func (p *process) terminate() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.awaitEnd(40 * time.Second)
	if !p.cmd.ProcessState.Success() {
		p.t.Errorf("%v has ended with %v", p, p.cmd.ProcessState)
		p.add("killed", "-")
	}
}

// kill kills a worker, unless it has ended.
func (p *process) kill() {
	select {
	case <-p.ended:
		return
	default:
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.add("killed", "-")
}

// pause pauses a worker until resume.
func (p *process) pause() {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	p.add("paused", "-")
}

func (p *process) resume() {
	p.add("resumed", "-")
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}

// count counts the events of a worker, of a kind or of a kind of actors.
func (p *process) count(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[what]
}

// count counts the events of a kind.
func (f *fleet) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[what]
}

// increases waits until n more events of a kind have happened.
func (f *fleet) increases(what string, n int) {
	f.t.Helper()
	n += f.count(what)
	redistest.Eventually(f.t, fmt.Sprintf("%d events: %s", n, what), func() bool { return f.count(what) >= n })
}

// leader returns the process of the instance of the singleton.
func (f *fleet) leader() (leader *process) {
	f.t.Helper()
	redistest.Eventually(f.t, "an instance", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		leader = f.instance
		return leader != nil
	})
	return leader
}

// judge judges the history, and writes it to a file if the test has failed.
func (f *fleet) judge() *verdict {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	v := judge(f.history, true)
	f.t.Log(v)
	for _, fault := range v.faults[:min(len(v.faults), 20)] {
		f.t.Error(fault)
	}
	if f.t.Failed() || *historyFolder != "" {
		f.t.Logf("%d faults; the history is in %s", len(v.faults), writeHistory(f.t, f.history))
	}
	return v
}

var historyFolder = flag.String("fleet.history", "", "the folder for the histories of all tests; those of tests that fail are always kept")

// writeHistory writes events to a file.
func writeHistory(t *testing.T, history []event) string {
	file, err := os.CreateTemp(*historyFolder, "fleet-*.log")
	if err != nil {
		t.Error(err)
		return ""
	}
	out := bufio.NewWriter(file)
	for _, e := range history {
		fmt.Fprintln(out, e.at, e.of, e.what, e.name, e.token, e.n)
	}
	if err := out.Flush(); err != nil {
		t.Error(err)
	}
	_ = file.Close()
	return file.Name()
}
