// Package redistest is what the project's tests use to speak to a real
// redis-server, and to take the network to it apart.
//
// [Start] runs a redis-server of the test's own; [Shared] one for a whole test
// package, stopped by [Main]. Both need redis-server on PATH:
// a test that asks for one without it fails, it is never skipped.
//
// A [Proxy] stands between clients and a server. It reads the Redis protocol in
// both directions, so that it can lose the reply to one chosen command or hold
// one chosen command back, besides cutting, freezing and delaying connections.
//
// The helpers that take a testing.TB end the test when something fails, so they
// must be called from the test's own goroutine.
package redistest
