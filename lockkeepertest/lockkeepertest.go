// Package lockkeepertest is for the tests of programs that use Lockkeeper: an embedded Redis,
// Systems on it that are closed when the test ends, and the bad days: a lock that is lost, a
// Redis that fails, a machine that sleeps.
//
//	func TestShipping(t *testing.T) {
//		locks := lockkeepertest.Open(t, lockkeeper.Config{})
//		…
//		lockkeepertest.Lose(t, locks.Lock("orders")) // what does the program do now?
//	}
//
// The package is a module of its own: a program that uses it in its tests does not get the
// embedded Redis (miniredis) among the dependencies of the program itself.
//
// The embedded Redis knows neither clusters nor ACL rules. What depends on them, or on how fast
// Redis is, needs a real server.
package lockkeepertest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
)

// limit bounds what this package waits for.
const limit = 30 * time.Second

// Redis is an embedded Redis. Its methods may be called from any goroutine.
type Redis struct {
	server *miniredis.Miniredis

	mu     sync.Mutex // guards what follows
	clocks []*boottime.Suspendable
}

// Start starts an embedded Redis, and stops it when the test ends.
func Start(t testing.TB) *Redis {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases end by themselves
	if err := server.Start(); err != nil {
		t.Fatalf("lockkeepertest: the embedded Redis does not start: %v", err)
	}
	t.Cleanup(server.Close)
	return &Redis{server: server}
}

// URL is the address of the Redis, for clients of the test's own.
func (r *Redis) URL() string {
	if !r.started() {
		return ""
	}
	return "redis://" + r.server.Addr() + "?protocol=2"
}

// started reports whether the Redis has come from Start.
func (r *Redis) started() bool { return r != nil && r.server != nil }

// Open starts a System on an embedded Redis of its own, and closes both when the test ends.
// Nothing is logged without a config.Logger.
func Open(t testing.TB, config lockkeeper.Config) *lockkeeper.System {
	t.Helper()
	return Start(t).Open(t, config)
}

// Open starts a System on this Redis, in an actor system of its own, as each process of an
// application has one. It is closed when the test ends.
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

// OpenIn is Open in an actor system of the test's, for programs whose actors take locks.
func (r *Redis) OpenIn(t testing.TB, actors *actor.ActorSystem, config lockkeeper.Config) *lockkeeper.System {
	t.Helper()
	switch {
	case !r.started():
		t.Fatal("lockkeepertest: there is no Redis: use that of Start")
	case actors == nil:
		t.Fatal("lockkeepertest: the actor system is nil")
	}
	client, err := lockkeeper.ConnectLater(r.URL()) // Connect would take the server for a cluster, since it knows CLUSTER SLOTS
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
		r.server.SetError("")
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := sys.Close(ctx); err != nil {
			t.Errorf("lockkeepertest: %v", err)
		}
	})
	return sys
}

// Lose waits until the System of this lock holds it, and takes it away, as
// `lockkeeper release --force` does. The holder has been told when Lose returns: its hold has
// ended with ErrLost. The test fails if the System does not hold the lock within 30 s.
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
		if err != nil {
			t.Fatalf("lockkeepertest: the System does not hold the lock %q: %v", lock.Name(), err)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done(): // which Inspect will say
		}
	}
}

// Fail makes Redis refuse every command, as one does that is still starting, until Recover or the
// end of the test. A holder is told that its lease is at risk (WithAtRisk), and loses it when the
// lease is over; a Config with a short Watchdog makes that soon.
func (r *Redis) Fail() { r.fail("LOADING the Redis of this test was told to fail") }

// Recover ends a Fail.
func (r *Redis) Recover() { r.fail("") }

func (r *Redis) fail(text string) {
	if r.started() {
		r.server.SetError(text)
	}
}

// Forget has Redis lose all its data, as one does that comes back empty after a crash. Holders of locks and of
// permits that expire are told with the next renewal, after a third of Config.Watchdog at the latest; a
// hold with a fixed lease is trusted until its end. Semaphores have no number of permits then:
// requests fail with ErrNoPermits until it is set again.
func (r *Redis) Forget() {
	if r.started() {
		r.server.FlushAll()
	}
}

// Advance lets d pass as if the machine of every System had slept for so long, while Redis went on:
// keys whose TTL is over are gone, and holders whose lease is over lose it. A lease that lasts for
// longer goes on. What timers of package time wait for does not come sooner, and the
// clock by which Redis measures the waiters of a fair lock (Config.WaiterTimeout) does not move.
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
