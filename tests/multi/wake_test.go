package multi_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// slowReplies holds the replies to its commands back while gate is set.
type slowReplies struct {
	rueidis.Client
	gate atomic.Pointer[chan struct{}]
	held atomic.Int64
}

func (c *slowReplies) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	result := c.Client.Do(ctx, command)
	if gate := c.gate.Load(); gate != nil {
		c.held.Add(1)
		<-*gate
	}
	return result
}

// The second member is released while the try is under way that it refuses: the waiter
// looks again at once, and not when the poll or the TTL is over.
func TestMultiLockHearsOfAMemberReleasedDuringTheTry(t *testing.T) {
	server := redistest.Start(t)
	inner, err := lockkeeper.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	client := &slowReplies{Client: inner}
	var heard atomic.Int64 // messages that lock actors have handled
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	faultinject.Into(system, func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			next(ctx, envelope)
			if fmt.Sprintf("%T", envelope.Message) == "actors.unlocked" {
				heard.Add(1)
			}
		}
	})
	s, err := lockkeeper.New(system, client, lockkeeper.Config{
		Poll: time.Minute, WaiterTimeout: 3 * time.Minute, CallTimeout: time.Minute, Watchdog: 10 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())

	names := []string{redistest.Name(t), redistest.Name(t)}
	slices.Sort(names)
	free := func(name string) {
		server.Do(t, "DEL", name)
		server.Do(t, "PUBLISH", "redisson_lock__channel:{"+name+"}", "0")
	}
	for _, name := range names {
		server.Do(t, "HSET", name, "stranger:1", "1")
		server.Do(t, "PEXPIRE", name, "600000")
	}
	granted := make(chan error, 1)
	go func() {
		hold, err := lockkeeper.MultiLock(s.Lock(names[0]), s.Lock(names[1])).Acquire(locktest.Within(t))
		if err == nil {
			err = hold.Release(context.Background())
		}
		granted <- err
	}()
	tries := func() int64 { return server.Calls(t)["pttl"] } // each try looks at the first member's TTL
	for _, name := range names {
		redistest.Eventually(t, "it listens", func() bool { return server.Subscribers(t, "redisson_lock__channel:{"+name+"}") == 1 })
	}
	redistest.Eventually(t, "it has tried again since", func() bool { return tries() >= 2 })

	gate := make(chan struct{})
	client.gate.Store(&gate)
	free(names[0])
	redistest.Eventually(t, "it tries, and the second is held", func() bool { return client.held.Load() == 1 })
	free(names[1])
	redistest.Eventually(t, "it has heard of both", func() bool { return heard.Load() == 2 })
	client.gate.Store(nil)
	close(gate)
	if err := locktest.Await(t, "the grant", granted); err != nil {
		t.Error(err)
	}
}
