//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// binDir holds the program, which is built once for all tests.
var binDir string

var program = sync.OnceValues(func() (string, error) {
	var err error
	if binDir, err = os.MkdirTemp("", "lockrun"); err != nil {
		return "", err
	}
	path := filepath.Join(binDir, "lockrun")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// running is a program that a test has started.
type running struct {
	t       *testing.T
	command *exec.Cmd
	stdin   io.WriteCloser
	lines   chan string // of its standard output
	said    output      // its standard error
	ended   chan struct{}
}

// output may be read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// lockrun starts lockrun on a Redis.
func lockrun(t *testing.T, url string, args ...string) *running {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, exec.Command(path, append([]string{"-redis", url}, args...)...))
}

func start(t *testing.T, command *exec.Cmd) *running {
	t.Helper()
	p := &running{t: t, command: command, lines: make(chan string, 10_000), ended: make(chan struct{})}
	command.Stderr = &p.said
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		for out := bufio.NewScanner(stdout); out.Scan(); {
			p.lines <- out.Text()
		}
		_ = command.Wait()
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // which takes a command along
		select {
		case <-p.ended:
		case <-time.After(redistest.Limit):
			_ = command.Process.Kill()
			t.Errorf("did not end; it said: %s", p.said.String())
		}
	})
	return p
}

// expectLine waits for the next line of output.
func (p *running) expectLine(want string) {
	p.t.Helper()
	select {
	case got := <-p.lines:
		if got != want {
			p.t.Fatalf("printed %q, want %q", got, want)
		}
	case <-p.ended:
		p.t.Fatalf("ended, and %q was expected; it said: %s", want, p.said.String())
	case <-time.After(redistest.Limit):
		p.t.Fatalf("%q was expected; it said: %s", want, p.said.String())
	}
}

// expectExit waits for the end, and checks the exit code and what was said.
func (p *running) expectExit(code int, said ...string) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(redistest.Limit):
		p.t.Fatalf("did not end; it said: %s", p.said.String())
	}
	if got := p.command.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d (%v)", got, code, p.command.ProcessState)
	}
	for _, s := range said {
		if !strings.Contains(p.said.String(), s) {
			p.t.Errorf("did not say %q", s)
		}
	}
	if p.t.Failed() {
		p.t.Logf("it said: %s", p.said.String())
	}
}

func (p *running) signal(s os.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// hold has a stranger hold a lock.
func hold(t *testing.T, server *redistest.Server, lock string) {
	t.Helper()
	server.Do(t, "HSET", lock, "stranger:1", "1")
	server.Do(t, "PEXPIRE", lock, "600000")
}

// expectFree checks that nobody has the lock, or waits for it.
func expectFree(t *testing.T, server *redistest.Server, lock string) {
	t.Helper()
	if keys := server.Keys(t, "*"+lock+"*"); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
	expectNoListener(t, server, lock)
}

func expectNoListener(t *testing.T, server *redistest.Server, lock string) {
	t.Helper()
	redistest.Eventually(t, "nobody listens", func() bool { return listeners(t, server, lock) == 0 })
}

func listeners(t *testing.T, server *redistest.Server, lock string) int64 {
	t.Helper()
	return server.Subscribers(t, "redisson_lock__channel:{"+lock+"}")
}

// patient prints "ready" and waits until it is told to end: by the end of its input.
const patient = `echo ready; cat >/dev/null`
