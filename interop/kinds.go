package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// kind is a kind of lock that both sides have, and how it is held and wanted in the cases.
type kind struct {
	name         string
	held, wanted form
	// red: the lock lies on three servers of its own.
	red bool
}

// form is what the drivers are asked for.
type form struct {
	// kind is what they call it.
	kind string
	// members are the kinds of a MultiLock's members; if there are any, the drivers are
	// asked with the verb several.
	members []string
	several string
}

var (
	plain  = form{kind: "plain"}
	fenced = form{kind: "fenced"}
	fair   = form{kind: "fair"}
	read   = form{kind: "read"}
	write  = form{kind: "write"}
	multi  = form{kind: "multi", several: "multilock", members: []string{"plain", "fenced", "write"}}
	red    = form{kind: "red", several: "redlock", members: []string{"plain", "plain", "plain"}}

	semaphore  = form{kind: "semaphore"}
	permits    = form{kind: "permits"}
	countLatch = form{kind: "latch"}
)

var plainKind = kind{name: "plain", held: plain, wanted: plain}

var kinds = []kind{
	plainKind,
	{name: "fenced", held: fenced, wanted: fenced},
	{name: "fair", held: fair, wanted: fair},
	{name: "write", held: write, wanted: write},
	{name: "read, write", held: read, wanted: write},
	{name: "write, read", held: write, wanted: read},
	{name: "MultiLock", held: multi, wanted: multi},
	{name: "RedLock", held: red, wanted: red, red: true},
	{name: "semaphore", held: semaphore, wanted: semaphore},
	{name: "permits", held: permits, wanted: permits},
	{name: "latch", held: countLatch, wanted: countLatch},
}

func isRed(k kind) bool { return k.red }

// synchronizes reports whether it is a synchronizer, and no lock.
func (k kind) synchronizes() bool { return k.held.synchronizes() }

// exclusive kinds are the same on both sides, and nobody shares them.
func exclusive(k kind) bool { return k.held.kind == k.wanted.kind }

// watchdog is that of the drivers where it should not matter, as it does if one waits for
// a writer; see misses.
func (k kind) watchdog() time.Duration {
	if k.held.writes() || k.wanted.writes() {
		return short
	}
	return long
}

func (f form) synchronizes() bool {
	return slices.Contains([]string{semaphore.kind, permits.kind, countLatch.kind}, f.kind)
}

// writes reports whether a write lock is a part of it.
func (f form) writes() bool { return f.kind == "write" || slices.Contains(f.members, "write") }

func single(k kind) bool { return k.held.several == "" }

func only(wanted ...form) func(kind) bool {
	return func(k kind) bool {
		return slices.ContainsFunc(wanted, func(f form) bool { return f.kind == k.wanted.kind && exclusive(k) })
	}
}

// place is a lock in one Redis, as a whole or as a part of the lock.
type place struct {
	server int
	kind   string
	name   string
}

// places are where the lock lies, in the order in which Redisson takes its parts.
func (k kind) places(name string) (all []place) {
	switch {
	case k.red:
		for i := range k.held.members {
			all = append(all, place{i, "plain", name})
		}
	case k.held.several != "":
		for i, member := range k.held.members {
			all = append(all, place{0, member, fmt.Sprintf("%s-%d", name, i)})
		}
	default:
		all = []place{{0, k.held.kind, name}}
	}
	return all
}

// channel is where the release is told; of a fair lock, how those channels begin.
func (p place) channel() string {
	switch p.kind {
	case "read", "write":
		return prefixed("redisson_rwlock", p.name)
	case semaphore.kind, permits.kind:
		return prefixed("redisson_sc", p.name)
	case countLatch.kind:
		return "redisson_countdownlatch__channel__{" + p.name + "}"
	}
	return prefixed("redisson_lock__channel", p.name)
}

// prefixed is how Redisson derives a name from another: both go to the same slot of a cluster.
func prefixed(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// lease is the key that lives as long as the nth hold of a reader.
func (p place) lease(owner string, n int) string {
	name := p.name
	if !strings.Contains(name, "{") {
		name = "{" + name + "}"
	}
	return fmt.Sprintf("%s:%s:rwlock_timeout:%d", name, owner, n)
}

// holder reads from the lock's hash who holds it, and how many times; of a free lock "".
func (p place) holder(hash map[string]string) (owner, count string) {
	mode := hash["mode"]
	delete(hash, "mode")
	if len(hash) > 1 {
		return "more than one field", ""
	}
	for owner, count = range hash {
	}
	owner, writes := strings.CutSuffix(owner, ":write")
	shared := p.kind == "read" || p.kind == "write"
	if shared && owner != "" && mode != map[bool]string{true: "write", false: "read"}[writes] || !shared && (writes || mode != "") {
		return fmt.Sprintf("%s in mode %q", owner, mode), count
	}
	return owner, count
}

// request is how a driver is asked for something about the lock.
func (f form) request(verb, name string) (word string, values []string) {
	switch {
	case f.synchronizes():
		return f.kind, []string{"op=" + verb, "name=" + name}
	case f.several == "" || verb == "hello" || verb == "halt" || verb == "bench":
		return verb, []string{"kind=" + f.kind, "name=" + name}
	case f.several == red.several:
		return f.several, []string{"op=" + verb, "names=" + strings.Join(slices.Repeat([]string{name}, len(f.members)), ",")}
	}
	var names []string
	for i := range f.members {
		names = append(names, fmt.Sprintf("%s-%d", name, i))
	}
	return f.several, []string{"op=" + verb, "names=" + strings.Join(names, ","), "kinds=" + strings.Join(f.members, ",")}
}
