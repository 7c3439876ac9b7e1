package lockkeeper_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// tree is a Lockkeeper system whose actors can be made to crash.
type tree struct {
	saboteur
	system *actor.ActorSystem
	keeper *lockkeeper.System
	server *redistest.Server
}

func quietActorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

func newTree(t *testing.T, config lockkeeper.Config) *tree {
	t.Helper()
	tr := &tree{system: quietActorSystem(), server: redistest.Shared(t)}
	tr.spared = map[string]bool{}
	faultinject.Into(tr.system, tr.middleware)
	client, err := lockkeeper.Connect(tr.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if tr.keeper, err = lockkeeper.New(tr.system, client, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tr.hit(nil, nil)
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
		defer cancel()
		if err := tr.keeper.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		client.Close()
	})
	return tr
}

// client is an actor of a user's that does what it is told and keeps what it gets.
type client struct {
	t    *testing.T
	tr   *tree
	name string
	pid  *actor.PID
	mail chan any
}

func (tr *tree) client(t *testing.T, name string) *client {
	c := &client{t: t, tr: tr, name: name, mail: make(chan any, 1000)}
	c.pid = tr.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case func(actor.Context):
			m(ctx)
		case actor.SystemMessage, actor.AutoReceiveMessage:
		default:
			c.mail <- m
		}
	}))
	return c
}

func (c *client) request(m any) {
	c.tr.system.Root.Send(c.pid, func(ctx actor.Context) { ctx.Request(c.tr.keeper.Guardian(), m) })
}

func (c *client) acquire(lock string) {
	c.request(&messages.Acquire{Lock: &messages.Lock{Name: lock}})
}

func (c *client) release(lock string) {
	c.request(&messages.Release{Lock: &messages.Lock{Name: lock}})
}

// expect waits for the next message and fails if it is of another type.
func expect[M any](t *testing.T, c *client) M {
	t.Helper()
	select {
	case m := <-c.mail:
		if wanted, ok := m.(M); ok {
			return wanted
		}
		var wanted M
		t.Fatalf("%s got %T{%v}, and expected %T", c.name, m, m, wanted)
	case <-time.After(redistest.Limit):
		var wanted M
		t.Fatalf("%s got nothing, and expected %T", c.name, wanted)
	}
	panic("unreachable")
}

func (c *client) expectNothing() {
	c.t.Helper()
	select {
	case m := <-c.mail:
		c.t.Fatalf("%s got %T{%v}, and expected nothing", c.name, m, m)
	default:
	}
}

// owner is the owner field of a lock in Redis, "" if it is free.
func (tr *tree) owner(t *testing.T, lock string) string {
	t.Helper()
	keys, err := tr.server.Do(t, "HKEYS", lock).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) == 0 {
		return ""
	}
	return keys[0]
}

func (tr *tree) waiters(t *testing.T, lock string) int {
	t.Helper()
	status, err := tr.keeper.Lock(lock).Inspect(t.Context())
	if err != nil {
		return -1
	}
	return status.Waiters
}
