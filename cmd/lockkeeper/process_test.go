//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// The test binary is the program itself if this variable is set.
const programEnv = "LOCKKEEPER_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		main()
	}
	for _, s := range passedOn {
		if signal.Ignored(s) { // as in the background of a shell; the program would continue to ignore it
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	locktest.Main(m)
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// process is a program that a test has started.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string // of its standard output; closed when it has ended
	stderr string      // a file
}

// program returns the command that runs the program.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(must(os.Executable()), args...)
	cmd.Env = append(os.Environ(), programEnv+"=1", "GORACE=atexit_sleep_ms=0",
		"LOCK_TOKEN=99", "LOCK_TOKENS=99") // as if under another lock
	return cmd
}

// under starts `lockkeeper run` with these arguments, on the server.
func under(t *testing.T, server *redistest.Server, args ...string) *process {
	t.Helper()
	cmd := program(t, append([]string{"run"}, args...)...)
	cmd.Env = append(cmd.Env, "REDIS_URL="+server.URL())
	return start(t, cmd)
}

func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, lines: make(chan string, 100), stderr: filepath.Join(t.TempDir(), "stderr")}
	stderr, err := os.Create(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	if cmd.Stderr == nil {
		cmd.Stderr = stderr
	}
	p.stdin, _ = cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for out := bufio.NewScanner(stdout); out.Scan(); {
			p.lines <- out.Text()
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // lockkeeper passes it on to its command
		for more := true; more; {
			_, more = p.line()
		}
	})
	return p
}

// stderrText returns the standard error so far.
func (p *process) stderrText() string {
	text, err := os.ReadFile(p.stderr)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// line waits for the next line of output, and reports whether there was one before the end.
func (p *process) line() (line string, more bool) {
	p.t.Helper()
	select {
	case line, more = <-p.lines:
	case <-time.After(redistest.Limit):
		_ = p.cmd.Process.Kill()
		p.t.Fatalf("neither prints nor ends; stderr: %s", p.stderrText())
	}
	return line, more
}

func (p *process) expectLine(want string) {
	p.t.Helper()
	if got, more := p.line(); got != want || !more {
		p.t.Fatalf("printed %q, want %q; stderr: %s", got, want, p.stderrText())
	}
}

// expectExit waits for the end, and checks that nothing more is printed, the exit code, and
// that stderr contains texts.
func (p *process) expectExit(code int, texts ...string) {
	p.t.Helper()
	if line, more := p.line(); more {
		p.t.Fatalf("printed %q; stderr: %s", line, p.stderrText())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d; stderr: %s", got, code, p.stderrText())
	}
	for _, text := range texts {
		if !strings.Contains(p.stderrText(), text) {
			p.t.Errorf("stderr has no %q: %s", text, p.stderrText())
		}
	}
}

func (p *process) signal(name string) {
	check(exec.Command("sh", "-c", fmt.Sprintf("kill -s %s %d", name, p.cmd.Process.Pid)).Run())
}

// expectNothingLeft checks that locks whose names contain lock have left no keys, and that the lock has no waiters.
func expectNothingLeft(t *testing.T, server *redistest.Server, lock string) {
	t.Helper()
	counters := func(key string) bool { return strings.HasPrefix(key, "redisson_lock_token:") }
	if keys := slices.DeleteFunc(server.Keys(t, "*"+lock+"*"), counters); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
	server.AwaitSubscribers(t, "redisson_lock__channel:{"+lock+"}", 0)
}
