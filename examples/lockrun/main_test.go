//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		os.Exit(worker())
	}
	for _, s := range passedOn {
		if signal.Ignored(s) { // as in the background of a shell; lockrun would leave it so
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	redistest.Main(m,
		// rueidis sleeps out a second after a connect that failed.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.Cleanup(func(code int) {
			os.RemoveAll(binDir)
			os.Exit(code)
		}))
}

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

func TestExitCodeIsTheCommands(t *testing.T) {
	server := redistest.Shared(t)
	for _, c := range []struct {
		name    string
		command []string
		code    int
	}{
		{"success", []string{"true"}, 0},
		{"failure", []string{"sh", "-c", "exit 42"}, 42},
		{"killed", []string{"sh", "-c", "kill -KILL $$"}, 128 + 9},
		{"terminated", []string{"sh", "-c", "kill $$"}, 128 + 15},
	} {
		t.Run(c.name, func(t *testing.T) {
			lock := redistest.Name(t)
			p := lockrun(t, server.URL(), append([]string{"-lock", lock, "--"}, c.command...)...)
			p.expectExit(c.code)
			if said := p.said.String(); said != "" {
				t.Errorf("said %q", said)
			}
			expectFree(t, server, lock)
		})
	}
}

func TestHoldsTheLockWhileTheCommandRuns(t *testing.T) {
	server, lock := redistest.Shared(t), redistest.Name(t)
	p := lockrun(t, server.URL(), "-v", "-lock", lock, "-watchdog", "20s", "--", "sh", "-c", `echo "$0 $1"; cat; echo bye >&2`, "a b", "$c")
	p.expectLine("a b $c")
	held, err := server.Do(t, "HGETALL", lock).AsStrMap()
	if err != nil || len(held) != 1 {
		t.Fatalf("in Redis: %v, %v", held, err)
	}
	for owner, count := range held {
		if id, term, ok := strings.Cut(owner, ":"); !ok || len(id) != 36 || term == "" || count != "1" {
			t.Errorf("owner %q, count %q", owner, count)
		}
	}
	if ttl, err := server.Do(t, "PTTL", lock).AsInt64(); err != nil || ttl <= 0 || ttl > 20_000 {
		t.Errorf("the TTL is %d ms, %v", ttl, err)
	}
	fmt.Fprintln(p.stdin, "hello")
	p.expectLine("hello")
	p.stdin.Close()
	p.expectExit(0, "has the lock", "bye\n", "has given the lock")
	expectFree(t, server, lock)
}

func TestRedisURLFromTheEnvironment(t *testing.T) {
	server, lock := redistest.Shared(t), redistest.Name(t)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "-lock", lock, "sh", "-c", patient)
	command.Env = append(os.Environ(), "REDIS_URL=nonsense://", "REDIS_URL="+server.URL())
	p := start(t, command)
	p.expectLine("ready")
	if keys := server.Keys(t, lock); len(keys) != 1 {
		t.Error("does not hold the lock there")
	}
	p.stdin.Close()
	p.expectExit(0)
}

func TestWait(t *testing.T) {
	server := redistest.Shared(t)
	t.Run("over", func(t *testing.T) {
		lock := redistest.Name(t)
		hold(t, server, lock)
		began := time.Now()
		lockrun(t, server.URL(), "-lock", lock, "-wait", "300ms", "echo", "ran").expectExit(exitHeld, "wait timed out", "held by stranger:1")
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("waited for %v only", took)
		}
		expectNoListener(t, server, lock)
	})
	t.Run("none", func(t *testing.T) {
		lock := redistest.Name(t)
		hold(t, server, lock)
		p := lockrun(t, server.URL(), "-lock", lock, "-wait", "0", "echo", "ran")
		p.expectExit(exitHeld, "lock is held", "held by stranger:1")
		if len(p.lines) > 0 {
			t.Error("the command ran")
		}
	})
	for name, wait := range map[string][]string{"without limit": nil, "long": {"-wait", "10m"}} {
		t.Run(name, func(t *testing.T) {
			lock := redistest.Name(t)
			hold(t, server, lock)
			p := lockrun(t, server.URL(), append(wait, "-lock", lock, "echo", "ran")...)
			redistest.Eventually(t, "it waits", func() bool { return listeners(t, server, lock) == 1 })
			server.Do(t, "DEL", lock)
			server.Do(t, "PUBLISH", "redisson_lock__channel:{"+lock+"}", "0")
			p.expectLine("ran")
			p.expectExit(0)
			expectFree(t, server, lock)
		})
	}
}

func TestBadUsage(t *testing.T) {
	url := redistest.Shared(t).URL()
	for _, c := range []struct {
		args []string
		code int
		said string
	}{
		{[]string{"-lock", "x"}, exitUsage, "the command is missing"},
		{[]string{"true"}, exitUsage, "-lock is missing"},
		{[]string{"-lock", "", "true"}, exitUsage, "flag -lock: a name is expected"},
		{[]string{"-lock", "x", "-lock", "y", "-lock", "x", "true"}, exitUsage, `"x" for flag -lock: it is named twice`},
		{[]string{"-lock", "x", "-kind", "exclusive", "true"}, exitUsage, "the kinds are fair, fenced, read, reentrant, write"},
		{[]string{"-lock", "x", "-kind", "", "true"}, exitUsage, "flag -kind: the kinds are"},
		{[]string{"-lock", "x", "-lock", strings.Repeat("y", 513), "true"}, exitUsage, "513 bytes"},
		{append(manyLocks(65), "true"), exitUsage, "a MultiLock of 65 locks: it has 1 to 64"},
		{[]string{"-lock", "x", "-wait", "5", "true"}, exitUsage, "a duration is expected"},
		{[]string{"-lock", "x", "-wait", "-1s", "true"}, exitUsage, "must not be negative"},
		{[]string{"-lock", "x", "-lease", "0", "true"}, exitUsage, "a lease"},
		{[]string{"-lock", "x", "-lease", "1ms", "true"}, exitUsage, "the lease is 1ms"},
		{[]string{"-lock", "x", "-watchdog", "1ms", "true"}, exitUsage, "Watchdog is 1ms"},
		{[]string{"-lock", "x", "-watchdog", "0", "true"}, exitUsage, "-watchdog must not be 0"},
		{[]string{"-lock", "x", "-grace", "-1s", "true"}, exitUsage, "-grace must not be negative"},
		{[]string{"-lock", "x", "-nonsense", "true"}, exitUsage, "-nonsense"},
		{[]string{"-lock", strings.Repeat("x", 513), "true"}, exitUsage, "513 bytes"},
		{[]string{"-lock", "x", "-redis", "nonsense://x", "true"}, exitUsage, "nonsense"},
		{[]string{"-lock", "x", "no-such-command"}, exitNotFound, "no-such-command"},
		{[]string{"-lock", "x", "/no/such/command"}, exitNotFound, "/no/such/command"},
		{[]string{"-lock", "x", "/dev/null"}, exitNotRun, "/dev/null"},
	} {
		t.Run(c.said, func(t *testing.T) {
			var stdout, stderr output
			code := run(append([]string{"-redis", url}, c.args...), os.Environ(), nil, &stdout, &stderr)
			if code != c.code || !strings.Contains(stderr.String(), c.said) || stdout.String() != "" {
				t.Errorf("%q: exit code %d, said: %s", c.args, code, stderr.String())
			}
		})
	}
}

func manyLocks(n int) (args []string) {
	for i := range n {
		args = append(args, "-lock", strconv.Itoa(i))
	}
	return args
}

func TestHelp(t *testing.T) {
	var stdout, stderr output
	if code := run([]string{"-h"}, nil, nil, &stdout, &stderr); code != 0 || stderr.String() != "" || stdout.String() != help {
		t.Errorf("exit code %d: %s%s", code, stdout.String(), stderr.String())
	}
}

func TestUnavailable(t *testing.T) {
	gone := redistest.Start(t)
	gone.Kill(t)
	closed := redistest.Start(t, "--requirepass", "s3cr3t-right")
	other, lock := redistest.Shared(t), redistest.Name(t)
	other.Do(t, "SET", lock, "not a lock")
	withPassword := func(password string) string {
		return strings.Replace(closed.URL(), "redis://", "redis://:"+password+"@", 1)
	}
	for _, c := range []struct {
		name, url string
		code      int
		said      string
	}{
		{"no server", gone.URL(), exitUnavailable, "refused"},
		{"no password", closed.URL(), exitUnavailable, "NOAUTH"},
		{"wrong password", withPassword("s3cr3t-wrong"), exitUnavailable, "WRONGPASS"},
		{"password that is not encoded", withPassword("s3cr3t/slash"), exitUsage, "redis URL"},
		{"password that is badly encoded", withPassword("s3cr3t%zz"), exitUsage, "redis URL"},
		{"password, and no such database", withPassword("s3cr3t-right") + "/s3cr3t", exitUsage, "redis URL"},
		{"right password", withPassword("s3cr3t-right"), 0, "has the lock"},
		{"another type", other.URL(), exitUnavailable, "WRONGTYPE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr output
			code := run([]string{"-v", "-redis", c.url, "-lock", lock, "true"}, os.Environ(), nil, &stdout, &stderr)
			if code != c.code || !strings.Contains(stderr.String(), c.said) {
				t.Errorf("exit code %d, said: %s", code, stderr.String())
			}
			if strings.Contains(stdout.String()+stderr.String(), "s3cr3t") {
				t.Errorf("gives a password away: %s", stderr.String())
			}
		})
	}
}

func TestLoss(t *testing.T) {
	server := redistest.Shared(t)
	t.Run("of the key", func(t *testing.T) {
		lock := redistest.Name(t)
		p := lockrun(t, server.URL(), "-lock", lock, "-watchdog", "1s", "--", "sh", "-c", `trap "echo told; exit 3" TERM; echo ready; while :; do sleep 0.01; done`)
		p.expectLine("ready")
		server.Do(t, "DEL", lock)
		p.expectLine("told")
		p.expectExit(exitLost, "lock was lost", "the key is gone")
		if strings.Count(p.said.String(), "lost") != 1 {
			t.Errorf("said more than once: %s", p.said.String())
		}
		expectFree(t, server, lock)
	})
	t.Run("to somebody else", func(t *testing.T) {
		lock := redistest.Name(t)
		p := lockrun(t, server.URL(), "-lock", lock, "-watchdog", "1s", "--", "sh", "-c", patient)
		p.expectLine("ready")
		server.Do(t, "DEL", lock)
		hold(t, server, lock)
		p.expectExit(exitLost, "somebody else")
		if n, err := server.Do(t, "HLEN", lock).AsInt64(); n != 1 || err != nil {
			t.Errorf("the other's lock: %d fields, %v", n, err)
		}
	})
	t.Run("of a fixed lease", func(t *testing.T) {
		lock := redistest.Name(t)
		began := time.Now()
		p := lockrun(t, server.URL(), "-lock", lock, "-lease", "400ms", "--", "sleep", "600")
		p.expectExit(exitLost, "its fixed lease of 400ms is over")
		if took := time.Since(began); took < 300*time.Millisecond {
			t.Errorf("lost after %v", took)
		}
		expectFree(t, server, lock)
	})
	t.Run("of Redis", func(t *testing.T) {
		server, lock := redistest.Start(t), redistest.Name(t)
		p := lockrun(t, server.URL(), "-lock", lock, "-watchdog", "1s", "--", "sh", "-c", patient)
		p.expectLine("ready")
		server.Kill(t)
		p.expectExit(exitLost, "cannot be renewed at present", "no renewal succeeded in time")
	})
	t.Run("noticed at the end", func(t *testing.T) {
		lock := redistest.Name(t)
		p := lockrun(t, server.URL(), "-lock", lock, "--", "sh", "-c", patient)
		p.expectLine("ready")
		server.Do(t, "DEL", lock)
		p.stdin.Close()
		p.expectExit(exitLost, "lock was lost")
	})
	t.Run("with a command that ignores it", func(t *testing.T) {
		lock := redistest.Name(t)
		p := lockrun(t, server.URL(), "-lock", lock, "-watchdog", "1s", "-grace", "200ms", "--",
			"sh", "-c", `trap "" TERM; echo ready; sleep 600`)
		p.expectLine("ready")
		server.Do(t, "DEL", lock)
		p.expectExit(exitLost, "is killed")
	})
	t.Run("with a command that has children", func(t *testing.T) {
		lock := redistest.Name(t)
		// The child ignores the signal, its parent does not. The test's pipe stays open
		// for as long as the child lives.
		p := lockrun(t, server.URL(), "-lock", lock, "-watchdog", "1s", "-grace", "10m", "--",
			"sh", "-c", `sh -c 'trap "" TERM; echo ready; sleep 600' & wait`)
		p.expectLine("ready")
		server.Do(t, "DEL", lock)
		p.expectExit(exitLost)
	})
}

func TestSignalsArePassedOn(t *testing.T) {
	server := redistest.Shared(t)
	lock := redistest.Name(t)
	p := lockrun(t, server.URL(), "-lock", lock, "--", "sh", "-c", `
		for s in HUP INT QUIT TERM USR1 USR2; do trap "echo $s" $s; done
		trap "exit 9" ALRM
		echo ready $$
		while :; do sleep 0.01; done`)
	var pid int
	select {
	case line := <-p.lines:
		var err error
		if pid, err = strconv.Atoi(strings.TrimPrefix(line, "ready ")); err != nil {
			t.Fatal(err)
		}
	case <-time.After(redistest.Limit):
		t.Fatal(p.said.String())
	}
	for s, name := range map[syscall.Signal]string{
		syscall.SIGHUP: "HUP", syscall.SIGINT: "INT", syscall.SIGQUIT: "QUIT",
		syscall.SIGTERM: "TERM", syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2",
	} {
		p.signal(s)
		p.expectLine(name)
	}
	p.signal(syscall.SIGTSTP)
	redistest.Eventually(t, "it refuses to be suspended", func() bool { return strings.Contains(p.said.String(), "cannot be suspended") })
	if len(server.Keys(t, lock)) != 1 {
		t.Error("the lock is not held any more")
	}
	if err := syscall.Kill(pid, syscall.SIGALRM); err != nil {
		t.Fatal(err)
	}
	p.expectExit(9)
	expectFree(t, server, lock)
}

func TestSignalEndsTheCommand(t *testing.T) {
	server, lock := redistest.Shared(t), redistest.Name(t)
	p := lockrun(t, server.URL(), "-lock", lock, "--", "sh", "-c", patient)
	p.expectLine("ready")
	p.signal(syscall.SIGTERM)
	p.expectExit(128 + int(syscall.SIGTERM))
	expectFree(t, server, lock)
}

func TestSignalEndsACommandThatIsStopped(t *testing.T) {
	server, lock := redistest.Shared(t), redistest.Name(t)
	p := lockrun(t, server.URL(), "-lock", lock, "--", "sh", "-c", `echo ready; kill -STOP $$`)
	p.expectLine("ready")
	p.signal(syscall.SIGINT)
	p.expectExit(128 + int(syscall.SIGINT))
	expectFree(t, server, lock)
}

func TestSignalEndsTheWait(t *testing.T) {
	server := redistest.Shared(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1} {
		t.Run(s.String(), func(t *testing.T) {
			lock := redistest.Name(t)
			hold(t, server, lock)
			p := lockrun(t, server.URL(), "-lock", lock, "echo", "ran")
			redistest.Eventually(t, "it waits", func() bool { return listeners(t, server, lock) == 1 })
			p.signal(s)
			p.expectExit(128+int(s), s.String())
			if len(p.lines) > 0 {
				t.Error("the command ran")
			}
			expectNoListener(t, server, lock)
		})
	}
}

// Ignored signals stay so, as nohup wants it.
func TestIgnoredSignal(t *testing.T) {
	server, lock := redistest.Shared(t), redistest.Name(t)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, exec.Command("sh", "-c", `trap "" HUP; exec "$@"`, "sh", path, "-redis", server.URL(), "-lock", lock, "--", "sh", "-c", patient))
	p.expectLine("ready")
	p.signal(syscall.SIGHUP)
	p.stdin.Close()
	p.expectExit(0)
}

// Commands of several lockruns never run at the same time.
func TestExclusion(t *testing.T) {
	const runs, processes = 20, 4
	server, lock := redistest.Shared(t), redistest.Name(t)
	file := filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	var all []*running
	for range processes {
		all = append(all, start(t, exec.Command("sh", "-c", `for i in $(seq `+strconv.Itoa(runs)+`); do "$@" || exit; done`, "sh",
			path, "-redis", server.URL(), "-lock", lock, "--", "sh", "-c", `n=$(cat "$0"); echo $((n + 1)) >"$0"`, file)))
	}
	for _, p := range all {
		p.expectExit(0)
	}
	if n, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(n)) != strconv.Itoa(runs*processes) {
		t.Errorf("%d times %d runs counted to %s, %v", processes, runs, n, err)
	}
	expectFree(t, server, lock)
}
