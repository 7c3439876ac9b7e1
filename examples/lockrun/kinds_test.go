//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// showTokens prints what the command knows of fencing tokens.
const showTokens = `echo "[$LOCK_TOKEN] [$LOCK_TOKENS]"`

func TestToken(t *testing.T) {
	server, lock := redistest.Shared(t), redistest.Name(t)
	for token := range 3 {
		p := lockrun(t, server.URL(), "-kind", "fenced", "-lock", lock, "--", "sh", "-c", showTokens)
		p.expectLine(fmt.Sprintf("[%d] [%d]", token+1, token+1))
		p.expectExit(0)
	}
	if keys := server.Keys(t, "*"+lock+"*"); !slices.Equal(keys, []string{"redisson_lock_token:{" + lock + "}"}) {
		t.Errorf("left in Redis: %q", keys)
	}
}

// The tokens of several locks come in the order in which the locks were named, which is
// not the one in which they are taken.
func TestTokens(t *testing.T) {
	server, lock := redistest.Shared(t), redistest.Name(t)
	a, b, c := lock+"a", lock+"b", lock+"c"
	for name, last := range map[string]string{a: "10", b: "20", c: "30"} {
		server.Do(t, "SET", "redisson_lock_token:{"+name+"}", last)
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(path, "-redis", server.URL(), "-kind", "fenced", "-lock", c, "-lock", a, "-lock", b, "--", "sh", "-c", showTokens)
	command.Env = append(os.Environ(), "LOCK_TOKEN=7", "LOCK_TOKENS=7") // another lock's
	p := start(t, command)
	p.expectLine("[] [31 11 21]")
	p.expectExit(0)
}

// Other kinds have no token, and leave one of a lock around them alone.
func TestNoToken(t *testing.T) {
	server := redistest.Shared(t)
	for kind := range kinds {
		if kind == fencedKind {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			lock := redistest.Name(t)
			path, err := program()
			if err != nil {
				t.Fatal(err)
			}
			outer := lockrun(t, server.URL(), "-kind", "fenced", "-lock", lock+"outer", "--",
				path, "-redis", server.URL(), "-kind", kind, "-lock", lock, "sh", "-c", showTokens)
			outer.expectLine("[1] [1]")
			outer.expectExit(0)
			if keys := server.Keys(t, lock); len(keys) > 0 {
				t.Errorf("left in Redis: %q", keys)
			}
		})
	}
}

// Readers run beside each other, a writer beside nobody.
func TestReadersAndWriters(t *testing.T) {
	server, lock := redistest.Shared(t), redistest.Name(t)
	refused := func(kind string) {
		t.Helper()
		lockrun(t, server.URL(), "-kind", kind, "-lock", lock, "-wait", "0", "--", "echo", "ran").expectExit(exitHeld, "lock is held")
	}
	patiently := func(kind string) *running {
		t.Helper()
		p := lockrun(t, server.URL(), "-kind", kind, "-lock", lock, "--", "sh", "-c", patient)
		p.expectLine("ready")
		return p
	}
	first, second := patiently("read"), patiently("read")
	refused("write")
	first.stdin.Close()
	first.expectExit(0)
	refused("write")
	second.stdin.Close()
	second.expectExit(0)

	writer := patiently("write")
	refused("write")
	refused("read")
	writer.stdin.Close()
	writer.expectExit(0)
	if keys := server.Keys(t, "*"+lock+"*"); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
}

// Those who wait for a fair lock get it in the order in which they came.
func TestFairOrder(t *testing.T) {
	server, lock := redistest.Shared(t), redistest.Name(t)
	file := filepath.Join(t.TempDir(), "order")
	holder := lockrun(t, server.URL(), "-kind", "fair", "-lock", lock, "--", "sh", "-c", patient)
	holder.expectLine("ready")
	const waiters = 4
	var all []*running
	want := ""
	for i := range waiters {
		all = append(all, lockrun(t, server.URL(), "-kind", "fair", "-lock", lock, "--", "sh", "-c", `echo $0 >>"$1"`, fmt.Sprint(i), file))
		want += fmt.Sprintln(i)
		redistest.Eventually(t, "it stands in the queue", func() bool {
			n, err := server.Do(t, "LLEN", "redisson_lock_queue:{"+lock+"}").AsInt64()
			return err == nil && n == int64(i+1)
		})
	}
	holder.stdin.Close()
	for _, p := range append(all, holder) {
		p.expectExit(0)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("the order was %q, want %q; %v", got, want, err)
	}
	if keys := server.Keys(t, "*"+lock+"*"); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
}

func TestSeveralLocks(t *testing.T) {
	server := redistest.Shared(t)
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			a := redistest.Name(t)
			b := a + "b"
			p := lockrun(t, server.URL(), "-v", "-kind", kind, "-lock", b, "-lock", a, "--", "sh", "-c", patient)
			p.expectLine("ready")
			for _, name := range []string{a, b} {
				if len(server.Keys(t, name)) != 1 {
					t.Errorf("%s is not held", name)
				}
			}
			p.stdin.Close()
			p.expectExit(0, fmt.Sprintf("has the lock %q", a+" + "+b), "has given the lock")
			keys := slices.DeleteFunc(server.Keys(t, "*"+a+"*"), func(key string) bool { return strings.HasPrefix(key, "redisson_lock_token:") })
			if len(keys) > 0 {
				t.Errorf("left in Redis: %q", keys)
			}
		})
	}
}

// While one of the locks is waited for, nobody is kept out of the others; and nothing
// runs that does not have all of them.
func TestSeveralLocksOneOfThemHeld(t *testing.T) {
	server, a, b := redistest.Shared(t), redistest.Name(t), redistest.Name(t)
	hold(t, server, b)
	p := lockrun(t, server.URL(), "-lock", a, "-lock", b, "-wait", "0", "--", "echo", "ran")
	p.expectExit(exitHeld, "lock is held", "held by stranger:1")
	if len(p.lines) > 0 {
		t.Error("the command ran")
	}
	p = lockrun(t, server.URL(), "-lock", a, "-lock", b, "--", "echo", "ran")
	redistest.Eventually(t, "it waits", func() bool { return listeners(t, server, b) == 1 })
	lockrun(t, server.URL(), "-lock", a, "--", "true").expectExit(0)
	server.Do(t, "DEL", b)
	server.Do(t, "PUBLISH", "redisson_lock__channel:{"+b+"}", "0")
	p.expectLine("ran")
	p.expectExit(0)
	expectFree(t, server, a)
	expectFree(t, server, b)
}

// The loss of one lock ends the command, and gives the others back.
func TestOneOfSeveralLocksIsLost(t *testing.T) {
	server, a, b := redistest.Shared(t), redistest.Name(t), redistest.Name(t)
	p := lockrun(t, server.URL(), "-lock", a, "-lock", b, "-watchdog", "1s", "--", "sh", "-c", patient)
	p.expectLine("ready")
	server.Do(t, "DEL", b)
	p.expectExit(exitLost, "lock was lost")
	expectFree(t, server, a)
	expectFree(t, server, b)
}
