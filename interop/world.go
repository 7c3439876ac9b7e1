package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// patience is how long anything may take before it counts as failed. It is long
	// because a JVM starts slowly on a busy machine.
	patience = 30 * time.Second
	// soon is how late anything may come because the machine is busy. It is far below what
	// a missed message would cost: a TTL of 30 s, or a poll after a minute.
	soon = 2 * time.Second

	// clockStep is what the clocks, and the TTL in milliseconds, may be off.
	clockStep = 5 * time.Millisecond

	long  = 30 * time.Second // the watchdogs of the drivers: one that does not matter,
	short = 3 * time.Second  // and one that does
)

// side is one of the two that share the locks.
type side struct {
	name string
	// refusal is the class of the error when somebody unlocks what he has lost.
	refusal string
}

var (
	java   = side{name: "Java", refusal: "java.lang.IllegalMonitorStateException"}
	golang = side{name: "Go", refusal: "ErrLost"}
)

// end is when a lease of this side's is over at the earliest: Lockkeeper, which tells the
// holder first, does not trust the last 1 % and 2 ms, and gives the lock back.
func (s side) end(lease time.Duration) time.Duration {
	if s == golang {
		return lease - lease/100 - 2*time.Millisecond
	}
	return lease
}

// world is what all cases share: the Redis servers and the drivers.
type world struct {
	ctx   context.Context
	redis server
	// reds are the servers of the RedLock.
	reds  []server
	jar   string
	quick bool
	// mark is in the name of every key and channel of this run.
	mark string
	out  io.Writer
	// version is that of Redisson.
	version string
	// chosen is the only case to be played, if it is not empty.
	chosen string
	// guarded is the Redis with its Sentinels; nil if there are none.
	guarded *watched

	mu      sync.Mutex // guards what follows
	drivers map[string]*driver
	// all are the drivers that were ever started.
	all []*driver
}

// server is a Redis, with a client of the program's own, which looks into it.
type server struct {
	rueidis.Client
	url string
}

func newWorld(ctx context.Context, redis server, reds []server, jar string, quick bool, out io.Writer) *world {
	return &world{
		ctx: ctx, redis: redis, reds: reds, jar: jar, quick: quick, out: out,
		mark: fmt.Sprintf("interop%08x", rand.Uint32()), drivers: map[string]*driver{},
	}
}

// launch starts a process of a side. A Java process has two Redisson clients; for the
// RedLock both sides have one client for each of its servers.
func (w *world) launch(s side, red bool, watchdog time.Duration, more ...string) *driver {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.start(s, red, watchdog, more...)
}

// shared gives the nth process of a side that has this watchdog, which cases may share.
func (w *world) shared(s side, red bool, watchdog time.Duration, n int) *driver {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(s.name, red, watchdog, n)
	if w.drivers[key] == nil {
		w.drivers[key] = w.start(s, red, watchdog)
	}
	return w.drivers[key]
}

func (w *world) start(s side, red bool, watchdog time.Duration, more ...string) *driver {
	program, args := "java", []string{"-Xmx256m", "-jar", w.jar}
	if s == golang {
		self, err := os.Executable()
		try(err)
		program, args = self, []string{driveVerb}
	}
	urls := []string{w.redis.url}
	switch {
	case red:
		urls = nil
		for _, r := range w.reds {
			urls = append(urls, r.url)
		}
	case s == java:
		urls = append(urls, w.redis.url)
	}
	for _, url := range urls {
		args = append(args, "-redis", url)
	}
	args = append(args, "-watchdog", strconv.FormatInt(watchdog.Milliseconds(), 10))
	d, err := startDriver(exec.Command(program, append(args, more...)...))
	try(err)
	w.all = append(w.all, d)
	return d
}

// close lets all processes end, at the same time.
func (w *world) close() {
	for _, d := range w.all {
		_ = d.stdin.Close()
	}
	for _, d := range w.all {
		d.stop()
	}
}

// restart ends the shared processes after cases that failed: some of their threads may
// still wait for a lock. The next case starts new ones.
func (w *world) restart() {
	for _, d := range w.drivers {
		d.kill()
	}
	clear(w.drivers)
}
