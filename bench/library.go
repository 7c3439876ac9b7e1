package main

import (
	"fmt"
	"slices"
	"time"
)

// A library is one way to lock, configured as its README recommends for one Redis
// server; see README.md.
type library interface {
	// acquire waits for the lock without limit, and returns its release.
	acquire(name string) (release func() error, err error)
	// hold acquires a free lock, and keeps it for good.
	hold(name string) error
}

// A reader is a library with read/write locks, whose acquire is for writers.
type reader interface {
	read(name string) (release func() error, err error)
}

// A candidate is a measurable library.
type candidate struct {
	name string
	// sends are the commands that the library itself sends to Redis, unlike those called by
	// its scripts. INFO counts both.
	sends []string
	// open connects to Redis. Every lock has the lease.
	open func(addr string, lease time.Duration, s scenario) (library, error)
}

// Lockkeeper, and the bare scripts, which are the lower limit of commands for each grant. All
// others are peers.
const (
	ours          = "lockkeeper"
	oursByMessage = "lockkeeper-actors"
	oursMetered   = "lockkeeper-metered"
	limit         = "raw"
	limitQueue    = "raw-queue"
)

var candidates = []candidate{
	{ours, []string{"evalsha", "eval", "subscribe", "unsubscribe", "ping"}, openLockkeeper},
	{oursMetered, []string{"evalsha", "eval", "subscribe", "unsubscribe", "ping"}, openMetered},
	{oursByMessage, []string{"evalsha", "eval", "subscribe", "unsubscribe", "ping"}, openActors},
	{limit, []string{"evalsha", "eval", "ping"}, openRaw},
	{limitQueue, []string{"evalsha", "eval", "ping"}, openRawQueue},
	{"rueidislock", []string{"evalsha", "eval", "ping"}, openRueidislock},
	{"redsync", []string{"set", "evalsha", "eval", "ping"}, openRedsync},
	{"redislock", []string{"evalsha", "eval", "ping"}, openRedislock},
	{"go-zero", []string{"evalsha", "eval", "ping"}, openGoZero},
	{"recipe-set", []string{"evalsha", "eval", "zrem", "ping"}, openSetSemaphore},
	{"recipe-list", []string{"blpop", "lpush", "ping"}, openListSemaphore},
}

func find(name string) (candidate, error) {
	i := slices.IndexFunc(candidates, func(c candidate) bool { return c.name == name })
	if i < 0 {
		return candidate{}, fmt.Errorf("unknown library %q", name)
	}
	return candidates[i], nil
}

func isPeer(lib string) bool {
	return !slices.Contains([]string{ours, oursByMessage, oursMetered, limit, limitQueue}, lib)
}

// retryDelay is how long the libraries that poll wait between two tries.
const retryDelay = 5 * time.Millisecond

// keep calls renew three times a lease on a goroutine, for good, as users of a library
// without a watchdog must do.
func keep(lease time.Duration, renew func() error) {
	go func() {
		for range time.Tick(lease / 3) {
			if err := renew(); err != nil {
				fail(err)
			}
		}
	}()
}
