package main

import (
	"syscall"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A command must not go on when there is nobody left to renew its lock.
func TestKilledLockrunTakesTheCommandAlong(t *testing.T) {
	server, lock := redistest.Shared(t), redistest.Name(t)
	p := lockrun(t, server.URL(), "-lock", lock, "-watchdog", "1s", "--",
		"sh", "-c", `trap "echo told; exit" TERM; echo ready; while :; do sleep 0.01; done`)
	p.expectLine("ready")
	p.signal(syscall.SIGKILL)
	p.expectLine("told")
	redistest.Eventually(t, "the lock has expired", func() bool { return len(server.Keys(t, lock)) == 0 })
}
