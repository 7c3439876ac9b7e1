package main

import (
	"context"
	"strings"

	"github.com/lockkeeper-go/lockkeeper"
)

// kind is a kind of lock that both sides have. To have another one tested, add a row.
type kind struct {
	// name is what the drivers call it.
	name string
	// channel is where its release is told, by the name of the lock.
	channel func(name string) string
	// holder reads from the lock's hash who holds it, and how many times.
	holder func(hash map[string]string) (owner, count string)
	// open gives Lockkeeper's lock.
	open func(*lockkeeper.System, string) lock
}

// lock is what the Go driver asks of Lockkeeper.
type lock interface {
	Acquire(context.Context, ...lockkeeper.Option) (*lockkeeper.Hold, error)
	ForceRelease(context.Context) (bool, error)
	Inspect(context.Context) (lockkeeper.Status, error)
}

var kinds = []kind{{
	name:    "plain",
	channel: func(name string) string { return prefixed("redisson_lock__channel", name) },
	holder:  onlyField,
	open:    func(s *lockkeeper.System, name string) lock { return s.Lock(name) },
}}

// prefixed is how Redisson derives a name from another: both go to the same slot of a cluster.
func prefixed(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// onlyField reads a hash that may have one field only. Of a free lock it gives "".
func onlyField(hash map[string]string) (field, value string) {
	if len(hash) > 1 {
		return "more than one field", ""
	}
	for field, value = range hash {
	}
	return field, value
}
