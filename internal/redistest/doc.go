// Package redistest starts real redis-servers for the project's tests, and injects
// faults into the network between them and their clients.
//
// [Start] runs a redis-server for one test; [Shared] runs one for a whole test
// package, which [Main] stops. Both need redis-server on PATH: without it the test
// fails, it is never skipped.
//
// A [Proxy] sits between clients and a server. It reads the Redis protocol in
// both directions, so that it can lose the reply to one chosen command or hold
// one chosen command back, besides cutting, freezing and delaying connections.
//
// The helpers that take a testing.TB end the test when something fails, so they
// must be called from the test's own goroutine.
package redistest
