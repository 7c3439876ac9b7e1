//go:build unix

package main

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

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
