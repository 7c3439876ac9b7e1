package actors_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// A request may name an owner of a hold that is over by the time it arrives. If the lock
// actor has left meanwhile, that number must fit nobody in its successor's life.
func TestOwnerOfAnEarlierLockActorReentersNobody(t *testing.T) {
	client, err := redisio.Connect(redistest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	r := actors.Start(system, client, actors.Config{
		Config: lock.Config{
			Watchdog: 10 * time.Second, Renewal: 3 * time.Second, HandOffLimit: 5 * time.Millisecond, ForcedYield: time.Second,
			Poll: time.Second, CallTimeout: time.Second, QueueLimit: 10,
		},
		WaiterTimeout: 5 * time.Second, Idle: 10 * time.Millisecond, Logger: system.Logger(),
	})
	defer r.Close(t.Context().Done())
	name := redistest.Name(t)
	do := func(call *actors.Call) actors.Outcome {
		call.Name = name
		out, _ := r.Do(t.Context(), call)
		return out
	}
	processes := func() (n int) {
		for _, shard := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
			n += shard.Count()
		}
		return n
	}
	atRest := processes()
	first := do(&actors.Call{Op: actors.OpAcquire})
	do(&actors.Call{Op: actors.OpRelease, HoldID: first.HoldID})
	redistest.Eventually(t, "the lock actor to leave", func() bool { return processes() <= atRest })

	stranger := do(&actors.Call{Op: actors.OpAcquire})
	if late := do(&actors.Call{Op: actors.OpAcquire, Owner: first.Owner, Try: true}); late.Kind != lock.NotGranted || late.Reason != lock.Held {
		t.Fatalf("it is answered %+v", late)
	}
	do(&actors.Call{Op: actors.OpRelease, HoldID: stranger.HoldID})
}
