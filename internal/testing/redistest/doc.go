// Package redistest is package rig for tests: it starts real redis-servers, connects clients, and injects faults into
// the network between them and their clients.
//
// [Start] runs a redis-server for one test; [Shared] runs one for a whole test package, which [Main] stops. Both need
// redis-server on PATH: without it the test fails, it is never skipped.
//
//	server := redistest.Start(t)
//	proxy := redistest.NewProxy(t, server.Addr())
//	client := redistest.Connect(t, proxy.URL())
//	lost := proxy.DropRepliesTo(redistest.Command("GET"), 1) // then the client sends a GET
//	lost.Wait(t)
//
// The helpers that take a testing.TB end the test when something fails, so they must be called from the test's own
// goroutine.
package redistest

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

const (
	host = rig.Host

	// SigPause pauses a process, and SigResume continues it.
	SigPause  = rig.SigPause
	SigResume = rig.SigResume
)

// Log collects what a process, or a logger, writes.
type Log = rig.Log

// check fails the test if a helper's own step failed.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
}
