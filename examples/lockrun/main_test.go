//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
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
