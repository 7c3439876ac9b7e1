// Package fleet has tests of singletons in real processes. It is a module of its own, since they need proto.actor's remote,
// and so gRPC.
package fleet
