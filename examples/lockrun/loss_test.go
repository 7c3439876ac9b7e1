//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

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
