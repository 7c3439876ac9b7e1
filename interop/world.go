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
	// timeout bounds each step. It is long because a JVM starts slowly on a busy machine.
	timeout = 30 * time.Second
	// soon is the tolerance for a busy machine. It is far below the delay by a missed message:
	// a TTL of 30 s, or a poll after a minute.
	soon = 2 * time.Second

	// clockStep is the tolerance for clocks, and for the TTL in milliseconds.
	clockStep = 5 * time.Millisecond

	long  = 30 * time.Second // the watchdogs of the drivers: one that has no effect,
	short = 3 * time.Second  // and one that does
)

// side is one of the two that share the locks.
type side struct {
	name string
	// refusal is the class of the error of unlocking a lost lock.
	refusal string
}

var (
	java   = side{name: "Java", refusal: "java.lang.IllegalMonitorStateException"}
	golang = side{name: "Go", refusal: "ErrLost"}
)

// end is when a lease of this side is over at the earliest: Lockkeeper notifies the holder, and
// releases the lock, 1 % and 2 ms before the end.
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
	// runID is in the name of every key and channel of this run.
	runID string
	out   io.Writer
	// version is the version of Redisson.
	version string
	// chosen is the only case to run, if it is not empty.
	chosen string
	// sentinels is the Redis with its Sentinels; nil if there are none.
	sentinels *sentinelSetup

	mu      sync.Mutex // guards what follows
	drivers map[string]*driver
	// all are all drivers started so far.
	all []*driver
}

// server is a Redis, with a client that reads its state.
type server struct {
	rueidis.Client
	url string
}

func newWorld(ctx context.Context, redis server, reds []server, jar string, quick bool, out io.Writer) *world {
	return &world{
		ctx: ctx, redis: redis, reds: reds, jar: jar, quick: quick, out: out,
		runID: fmt.Sprintf("interop%08x", rand.Uint32()), drivers: map[string]*driver{},
	}
}

// launch starts a process of a side. A Java process has two Redisson clients; for the
// RedLock both sides have one client for each of its servers.
func (w *world) launch(s side, red bool, watchdog time.Duration, more ...string) *driver {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.start(s, red, watchdog, more...)
}

// shared returns the nth process of a side with this watchdog, which cases may share.
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

// close ends all processes, at the same time.
func (w *world) close() {
	for _, d := range w.all {
		_ = d.stdin.Close()
	}
	for _, d := range w.all {
		d.stop()
	}
}

// restart kills the shared processes, some of whose threads may still wait for a lock after
// failed cases. The next case starts new ones.
func (w *world) restart() {
	for _, d := range w.drivers {
		d.kill()
	}
	clear(w.drivers)
}
