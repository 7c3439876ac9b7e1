package actors

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// start brings up a system on the shared server.
func start(t *testing.T, idle time.Duration) *Runtime {
	t.Helper()
	client, err := redisio.Connect(redistest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	r := Start(system, client, Config{
		Config: lock.Config{
			Watchdog: 30 * time.Second, Renewal: 10 * time.Second, HandOffLimit: 5 * time.Millisecond, ForcedYield: time.Second, Poll: time.Second,
			CallTimeout: 2 * time.Second, QueueLimit: 100,
		},
		WaiterTimeout: 5 * time.Second, Idle: idle, Logger: logger,
	})
	t.Cleanup(func() {
		r.Close(nil)
		client.Close()
	})
	return r
}

// use takes and gives back a lock.
func (r *Runtime) use(t *testing.T, name string) {
	t.Helper()
	acquire := &Call{Op: OpAcquire, Name: name}
	granted, _ := r.Do(context.Background(), acquire)
	if granted.Kind != lock.Granted {
		t.Fatalf("%s: %+v", name, granted)
	}
	if freed, _ := r.Do(context.Background(), acquire.about(OpRelease, granted.HoldID)); freed.Kind != lock.Freed {
		t.Fatalf("%s: %+v", name, freed)
	}
}

// proto.actor's list of the guardian's children keeps the PIDs of those that have gone, in
// the part of its array that it does not use. They must not keep anything alive.
func TestRetiredLocksAreCollected(t *testing.T) {
	r := start(t, 200*time.Millisecond)
	const locks = 300
	var collected atomic.Int64
	for i := range locks {
		name := fmt.Sprint("lock ", i)
		r.use(t, name)
		s := r.table.get(lockKey{name: name})
		runtime.AddCleanup(s, func(int) { collected.Add(1) }, 0)
	}
	redistest.Eventually(t, "the lock actors to be collected", func() bool {
		runtime.GC()
		return collected.Load() == locks
	})
	r.use(t, "lock 0") // and a new one takes the place of the old one
}
