package locktest

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

// Tree is a Lockkeeper system whose actors can be made to crash.
type Tree struct {
	Saboteur
	System *actor.ActorSystem
	Keeper *lockkeeper.System
	Server *redistest.Server
}

func QuietActorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

func NewTree(t *testing.T, config lockkeeper.Config) *Tree {
	t.Helper()
	tr := &Tree{System: QuietActorSystem(), Server: redistest.Shared(t)}
	tr.Spared = map[string]bool{}
	faultinject.Into(tr.System, tr.Middleware)
	client, err := lockkeeper.Connect(tr.Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if tr.Keeper, err = lockkeeper.New(tr.System, client, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tr.Hit(nil, nil)
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
		defer cancel()
		if err := tr.Keeper.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		client.Close()
	})
	return tr
}

// Client is an actor of a user's that does what it is told and keeps what it gets.
type Client struct {
	T    *testing.T
	Tr   *Tree
	Name string
	Pid  *actor.PID
	Mail chan any
}

func (tr *Tree) Client(t *testing.T, name string) *Client {
	c := &Client{T: t, Tr: tr, Name: name, Mail: make(chan any, 1000)}
	c.Pid = tr.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case func(actor.Context):
			m(ctx)
		case actor.SystemMessage, actor.AutoReceiveMessage:
		default:
			c.Mail <- m
		}
	}))
	return c
}

func (c *Client) Request(m any) {
	c.Tr.System.Root.Send(c.Pid, func(ctx actor.Context) { ctx.Request(c.Tr.Keeper.Guardian(), m) })
}

func (c *Client) Acquire(lock string) {
	c.Request(&messages.Acquire{Lock: &messages.Lock{Name: lock}})
}

func (c *Client) Release(lock string) {
	c.Request(&messages.Release{Lock: &messages.Lock{Name: lock}})
}

// Expect waits for the next message and fails if it is of another type.
func Expect[M any](t *testing.T, c *Client) M {
	t.Helper()
	select {
	case m := <-c.Mail:
		if wanted, ok := m.(M); ok {
			return wanted
		}
		var wanted M
		t.Fatalf("%s got %T{%v}, and expected %T", c.Name, m, m, wanted)
	case <-time.After(redistest.Limit):
		var wanted M
		t.Fatalf("%s got nothing, and expected %T", c.Name, wanted)
	}
	panic("unreachable")
}

func (c *Client) ExpectNothing() {
	c.T.Helper()
	select {
	case m := <-c.Mail:
		c.T.Fatalf("%s got %T{%v}, and expected nothing", c.Name, m, m)
	default:
	}
}

// Owner is the owner field of a lock in Redis, "" if it is free.
func (tr *Tree) Owner(t *testing.T, lock string) string {
	t.Helper()
	keys, err := tr.Server.Do(t, "HKEYS", lock).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) == 0 {
		return ""
	}
	return keys[0]
}

func (tr *Tree) Waiters(t *testing.T, lock string) int {
	t.Helper()
	status, err := tr.Keeper.Lock(lock).Inspect(t.Context())
	if err != nil {
		return -1
	}
	return status.Waiters
}
