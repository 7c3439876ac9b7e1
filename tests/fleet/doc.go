// Package fleet has tests of singletons and grains in real processes. It is a module of its own, since they need
// proto.actor's remote, and so gRPC.
package fleet
