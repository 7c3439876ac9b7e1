package actors

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// wiretap copies the reply to a command of a cell's.
type wiretap struct {
	*cell
	replies chan<- redisio.Reply
}

func (w wiretap) Replied(tag uint64, reply redisio.Reply) {
	w.replies <- reply
	w.cell.Replied(tag, reply)
}

// An acquire that is under way when its lock actor is given up may be carried out behind
// the last release: its reply has what it took released again.
func TestAcquireThatIsLaterThanTheLastRelease(t *testing.T) {
	for what, giveUp := range map[string]func(r *Runtime, c *cell){
		"given up": func(_ *Runtime, c *cell) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.giveUp(core.Crashed, "for the test")
		},
		"stopped": func(r *Runtime, c *cell) { _ = r.root.StopFuture(c.pid).Wait() },
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
				Config: core.Config{
					Lease: time.Minute, Renewal: 20 * time.Second, Tenure: 5 * time.Millisecond, Opening: time.Second,
					Poll: time.Second, CallTimeout: time.Second, QueueLimit: 10,
				},
				Silence: 5 * time.Second, Idle: time.Minute, Logger: system.Logger(),
			})
			defer r.Close(t.Context().Done())
			call := &Call{Op: OpAcquire, Name: redistest.Name(t)}
			if out, _ := r.Do(t.Context(), call); out.Kind != core.Granted {
				t.Fatalf("%+v", out)
			}
			c := r.table.get(call.key())
			c.mu.Lock()
			term := c.lock.Farewell(0)[0].Term
			c.mu.Unlock()
			giveUp(r, c)
			redistest.Eventually(t, "the last release", func() bool { return len(server.Keys(t, call.Name)) == 0 })
			late := core.Command{Kind: core.Acquire, Term: term, Count: 1, Lease: time.Minute}
			request := c.wire.Call(&late, time.Now().Add(time.Second))
			replied := make(chan redisio.Reply, 1)
			request.To = wiretap{c, replied}
			r.redis.Run(request)
			if reply := <-replied; !reply.Nil {
				t.Fatalf("the late acquire has taken nothing: %+v", reply)
			}
			redistest.Eventually(t, "what the late acquire took to be released", func() bool { return len(server.Keys(t, call.Name)) == 0 })
		})
	}
}
