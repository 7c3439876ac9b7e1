// Package lockkeepertest helps to test programs that use Lockkeeper: it has an embedded Redis,
// Systems on it that are closed when the test ends, and faults: a lock that is lost, a Redis
// that fails, a machine that is suspended.
//
//	func TestShipping(t *testing.T) {
//		locks := lockkeepertest.Open(t, lockkeeper.Config{})
//		…
//		lockkeepertest.Lose(t, locks.Lock("orders")) // what does the program do now?
//	}
//
// The package is a module of its own, so that the embedded Redis (miniredis) is not a dependency of a program that uses
// the package in its tests.
//
// The embedded Redis has neither clusters nor ACL rules. Tests that depend on them, or on the
// speed of Redis, need a real server.
package lockkeepertest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
)

// limit bounds the waits of this package.
const limit = 30 * time.Second

// Redis is an embedded Redis. Its methods may be called from any goroutine, but Open and OpenIn only from the test's.
type Redis struct {
	server *miniredis.Miniredis

	mu     sync.Mutex // guards the fields below, and the order of ticks
	clocks []*boottime.Suspendable
}

// Start starts an embedded Redis, and stops it when the test ends.
func Start(t testing.TB) *Redis {
	t.Helper()
	redis := miniredis.NewMiniRedis()
	redis.ClockTTL(true) // leases end by themselves
	if err := redis.Start(); err != nil {
		t.Fatalf("lockkeepertest: the embedded Redis does not start: %v", err)
	}
	t.Cleanup(redis.Close)
	r := &Redis{server: redis}
	r.Recover()
	return r
}

// URL is the address of the Redis, for further clients of the test; "" for a nil or zero Redis.
func (r *Redis) URL() string {
	if !r.started() {
		return ""
	}
	return "redis://" + r.server.Addr() + "?protocol=2"
}

// started reports whether the Redis was made by Start.
func (r *Redis) started() bool { return r != nil && r.server != nil }

// Open starts a System on a new embedded Redis, and closes both when the test ends. Without a
// config.Logger nothing is logged.
func Open(t testing.TB, config lockkeeper.Config) *lockkeeper.System {
	t.Helper()
	return Start(t).Open(t, config)
}

// Open starts a System on this Redis, in a new actor system, like a process of an application.
// It is closed when the test ends.
func (r *Redis) Open(t testing.TB, config lockkeeper.Config) *lockkeeper.System {
	t.Helper()
	logger := config.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	actors := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond)) // the throttle keeps a goroutine for that long
	t.Cleanup(actors.Shutdown)
	return r.OpenIn(t, actors, config)
}

// OpenIn is Open in the test's own actor system, for programs whose actors acquire locks. Without a config.Logger the
// System uses the logger of the actor system.
func (r *Redis) OpenIn(t testing.TB, actors *actor.ActorSystem, config lockkeeper.Config) *lockkeeper.System {
	t.Helper()
	switch {
	case !r.started():
		t.Fatal("lockkeepertest: there is no Redis: use that of Start")
	case actors == nil:
		t.Fatal("lockkeepertest: the actor system is nil")
	}
	// Connect would mistake the server for a cluster, since it supports CLUSTER SLOTS.
	client, err := lockkeeper.ConnectLater(r.URL())
	if err != nil {
		t.Fatalf("lockkeepertest: %v", err)
	}
	t.Cleanup(client.Close)
	r.mu.Lock()
	r.clocks = append(r.clocks, boottime.Install(actors))
	r.mu.Unlock()
	sys, err := lockkeeper.New(actors, client, config)
	if err != nil {
		t.Fatalf("lockkeepertest: %v", err)
	}
	t.Cleanup(func() {
		r.Recover()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := sys.Close(ctx); err != nil {
			t.Errorf("lockkeepertest: %v", err)
		}
	})
	return sys
}

// Lose waits until the System of this lock holds it, and releases the lock by force. When Lose returns, the holder has
// been notified: its hold has ended with ErrLost. After `lockkeeper release --force`, in another process, a holder
// notices the loss only at its next renewal. The test fails if the System does not hold the lock within 30 s. The test
// may have opened the System on a real Redis. A test that interrupts the work under the lock first waits for a signal
// from the work, which may begin later than the hold.
//
// To lose a permit of an expirable semaphore, call ReleaseID with its ID; to lose the permit of a Do, [Redis.Forget].
func Lose(t testing.TB, lock *lockkeeper.Lock) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		status, err := lock.Inspect(ctx)
		if status.HeldHere { // before that, a forced release could overtake the grant
			var was bool
			if was, err = lock.ForceRelease(ctx); was {
				return
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("lockkeepertest: the System has not acquired the lock %q within %v", lock.Name(), limit)
		}
		if err != nil {
			t.Fatalf("lockkeepertest: the System does not hold the lock %q: %v", lock.Name(), err)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done(): // the next Inspect returns the error
		}
	}
}

// Fail makes Redis refuse every command, like a Redis that is still starting, until Recover or the end of the test. A
// holder is warned that its lease is at risk (WithAtRisk), and loses the lock when the lease is over, which is soon
// with a short Config.Watchdog. A request with a wait fails with ErrUnavailable when the wait ends. For a Redis that
// does not answer at all, stop a real server (SIGSTOP).
func (r *Redis) Fail() { r.fail("LOADING the Redis of this test fails on demand") }

// Recover ends a Fail.
func (r *Redis) Recover() { r.fail("") }

// ids are the ids that a Redis has in INFO, and miniredis does not.
const ids = "run_id:embedded\r\nmaster_replid:embedded\r\n"

// fail makes Redis refuse every command with that text, if it has one.
func (r *Redis) fail(text string) {
	if !r.started() {
		return
	}
	r.server.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		r.tick(cmd)
		switch {
		case text != "":
			c.WriteError(text)
		case cmd == "INFO" && len(args) == 1:
			c.WriteBulk(ids)
		default:
			return false
		}
		return true
	})
}

// tick sets the clock of Redis before a command that no script sends. While a script runs, the clock stands still, as
// in a real Redis: otherwise a key could expire between two commands of one script.
func (r *Redis) tick(cmd string) {
	if cmd != "EVAL" && cmd != "EVALSHA" { // a script cannot send these
		if !r.server.TryLock() { // a script runs, and may have sent this command
			return
		}
		r.server.Unlock()
	}
	r.mu.Lock() // the clock does not go back
	defer r.mu.Unlock()
	r.server.SetTime(time.Now())
}

// Forget makes Redis lose all its data, like a Redis that restarts empty after a crash. Holders of locks and of
// expirable permits are notified with the next renewal, after Config.Renewal at the latest; a hold with a fixed lease
// stays valid until its end. Semaphores then have no number of permits: requests fail with ErrNoPermits until the
// number is set again; requests of an ExpirableSemaphore.WithTotal set it after Config.Watchdog.
func (r *Redis) Forget() {
	if r.started() {
		r.server.FlushAll()
	}
}

// Advance lets d pass as if the machine of every System had been suspended while Redis kept running: keys whose TTL is
// over expire, and holders whose lease is over lose their locks. Longer leases continue. Timers of package time do not
// fire sooner. The clock by which Redis measures the waiters of a fair lock (Config.WaiterTimeout) and expirable
// permits does not move, so a lost permit stays taken.
func (r *Redis) Advance(d time.Duration) {
	if !r.started() {
		return
	}
	r.server.FastForward(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, clock := range r.clocks {
		clock.Suspend(d)
	}
}
