package actors

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// wiretap copies the replies that a lockState gets.
type wiretap struct {
	*lockState
	replies chan<- backend.Reply
}

func (w wiretap) Replied(seq uint64, r backend.Reply) {
	w.replies <- r
	w.lockState.Replied(seq, r)
}

func (wiretap) Lend(lock.CommandKind, redisio.Call) bool { return false }

// An acquire that is under way when its lock actor is given up may be carried out behind
// the last release: its reply has what it took released again.
func TestAcquireThatIsLaterThanTheLastRelease(t *testing.T) {
	for what, giveUp := range map[string]func(r *Runtime, s *lockState){
		"given up": func(r *Runtime, s *lockState) { r.deliver(s.pid, abandon{}) },
		"stopped":  func(r *Runtime, s *lockState) { _ = r.root.StopFuture(s.pid).Wait() },
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.Shared(t)
			client, err := redisio.Connect(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
				actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
			r := Start(system, client, Config{
				Config: lock.Config{
					Watchdog: time.Minute, Renewal: 20 * time.Second, HandOffLimit: 5 * time.Millisecond, ForcedYield: time.Second,
					Poll: time.Second, CallTimeout: time.Second, QueueLimit: 10,
				},
				WaiterTimeout: 5 * time.Second, Idle: time.Minute, Logger: system.Logger(),
			})
			defer r.Close(t.Context().Done())
			call := &Call{Op: OpAcquire, Name: redistest.Name(t)}
			if out, _ := r.Do(t.Context(), call); out.Kind != lock.Granted {
				t.Fatalf("%+v", out)
			}
			s := r.table.get(call.key())
			giveUp(r, s)
			redistest.Eventually(t, "the last release", func() bool { return len(server.Keys(t, call.Name)) == 0 })
			late := lock.Command{Kind: lock.Acquire, Term: 1, Count: 1, Lease: time.Minute}
			replied := make(chan backend.Reply, 1)
			backend.Single(r.server, protocol.Reentrant, call.Name, &r.options, wiretap{s, replied}).Run(late, time.Now().Add(time.Second))
			if reply := <-replied; reply.Outcome != lock.Done {
				t.Fatalf("the late acquire has taken nothing: %+v", reply)
			}
			redistest.Eventually(t, "what the late acquire took to be released", func() bool { return len(server.Keys(t, call.Name)) == 0 })
		})
	}
}
