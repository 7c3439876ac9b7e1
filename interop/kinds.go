package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// kind is a kind of lock that both sides have, with the forms in which the cases hold and request it.
type kind struct {
	name         string
	held, wanted form
	// red: the lock is on three separate servers.
	red bool
}

// form is a lock in the drivers' protocol.
type form struct {
	// kind is its name.
	kind string
	// members are the kinds of a MultiLock's members; with members, the verb of the request is
	// several.
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
	expirable  = form{kind: "expirable_semaphore"}
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
	{name: "expirable_semaphore", held: expirable, wanted: expirable},
	{name: "latch", held: countLatch, wanted: countLatch},
}

func isRed(k kind) bool { return k.red }

// synchronizes reports whether it is a synchronizer, not a lock.
func (k kind) synchronizes() bool { return k.held.synchronizes() }

// exclusive reports whether the kind is the same on both sides. No such kind is shared.
func exclusive(k kind) bool { return k.held.kind == k.wanted.kind }

// watchdog is the watchdog of drivers where it should have no effect; short if a side may wait for
// a writer, see misses.
func (k kind) watchdog() time.Duration {
	if k.held.writes() || k.wanted.writes() {
		return short
	}
	return long
}

func (f form) synchronizes() bool {
	return slices.Contains([]string{semaphore.kind, expirable.kind, countLatch.kind}, f.kind)
}

// writes reports whether a write lock is a part of it.
func (f form) writes() bool { return f.kind == "write" || slices.Contains(f.members, "write") }

func single(k kind) bool { return k.held.several == "" }

func only(wanted ...form) func(kind) bool {
	return func(k kind) bool {
		return slices.ContainsFunc(wanted, func(f form) bool { return f.kind == k.wanted.kind && exclusive(k) })
	}
}

// part is a lock in one Redis: the lock itself, or a member.
type part struct {
	server int
	kind   string
	name   string
}

// parts are the parts of the lock, in the order in which Redisson acquires them.
func (k kind) parts(name string) (all []part) {
	switch {
	case k.red:
		for i := range k.held.members {
			all = append(all, part{i, "plain", name})
		}
	case k.held.several != "":
		for i, member := range k.held.members {
			all = append(all, part{0, member, fmt.Sprintf("%s-%d", name, i)})
		}
	default:
		all = []part{{0, k.held.kind, name}}
	}
	return all
}

// channel is the channel of the release; for a fair lock, the prefix of its channels.
func (p part) channel() string {
	switch p.kind {
	case "read", "write":
		return prefixed("redisson_rwlock", p.name)
	case semaphore.kind, expirable.kind:
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

// lease is the key whose TTL is the lease of the nth hold of a reader.
func (p part) lease(owner string, n int) string {
	name := p.name
	if !strings.Contains(name, "{") {
		name = "{" + name + "}"
	}
	return fmt.Sprintf("%s:%s:rwlock_timeout:%d", name, owner, n)
}

// holder returns the owner and the hold count in the lock's hash; "" for a free lock.
func (p part) holder(hash map[string]string) (owner, count string) {
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

// request is the word and the values of a driver's request about the lock.
func (f form) request(verb, name string) (word string, values []string) {
	switch {
	case f.synchronizes():
		return f.kind, []string{"op=" + verb, "name=" + name}
	case f.several == "" || verb == "hello" || verb == "halt":
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
