//go:build !race

package grains

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A grain has one activation, which all members and clients find. Both members run some.
func TestDirectory_LocatesGrains(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a, b, c := f.member(Config{}), f.member(Config{}), f.node(Config{})
	c.StartClient()
	hosts := map[string]int{}
	for i := range 40 {
		name := fmt.Sprint("a", i)
		address, token := a.mustAsk(t, name, "where")
		for _, n := range []*node{b, c} {
			if at, same := n.mustAsk(t, name, "where"); at != address || same != token {
				t.Errorf("%s is at %s with %d, and at %s with %d", name, address, token, at, same)
			}
		}
		hosts[address]++
	}
	if len(hosts) != 2 || f.count("", "starts") != 40 {
		t.Errorf("%d grains have started at %v", f.count("", "starts"), hosts)
	}
	if hosts[c.ActorSystem.Address()] > 0 {
		t.Error("a client runs grains")
	}
	f.expect()
}

// load asks for grains from many goroutines, until stop is called, which fails the test if a request has failed.
func (n *node) load(t *testing.T, what string) (stop func()) {
	errs, done := make(chan error, 32), make(chan struct{})
	for i := range cap(errs) {
		go func() {
			for k := 0; ; k++ {
				select {
				case <-done:
					errs <- nil
					return
				default:
				}
				if _, err := n.ask(fmt.Sprint("a", (i+7*k)%20), what); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	return func() {
		t.Helper()
		close(done)
		for range cap(errs) {
			locktest.Check(t, <-errs)
		}
	}
}

// A member that leaves hands over all its grains: no request fails, and Redis has nothing of it but the counter of tokens.
func TestDirectory_HandsOverAllGrainsWhenItLeaves(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a, b := f.member(Config{}), f.member(Config{})
	stop := b.load(t, "work 5ms")
	handled := func(n int) {
		t.Helper()
		n += f.count("", "handles work")
		redistest.Eventually(t, "more messages", func() bool { return f.count("", "handles work") >= n })
	}
	handled(500)
	locktest.Check(t, a.d.Leave(t.Context()))
	handled(500)
	stop()
	f.expect()
	for range 2 {
		locktest.Check(t, b.d.Leave(t.Context()))
	}
	if keys := f.redis.Keys(t, "grains:*"); len(keys) != 1 || !strings.HasSuffix(keys[0], ":tokens") {
		t.Errorf("Redis has %v", keys)
	}
	if _, err := b.ask("a1", "where"); err == nil {
		t.Error("a grain is found after the end")
	}
}

// With Config.Locks.Linger, the lease of a member does not linger while it leaves: other processes would count on it.
func TestMember_ItsLeaseDoesNotLinger(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Shared(t))
	n := f.member(Config{Locks: lockkeeper.Config{Watchdog: time.Minute, Linger: 20 * time.Second, Poll: 2 * time.Second}})
	left := make(chan error, 1)
	go func() { left <- n.d.Leave(context.Background()) }()
	<-n.d.resigned // and waits until others have seen it
	if keys := f.redis.Keys(t, f.key("member:*")); len(keys) > 0 {
		t.Errorf("%q stays", keys)
	}
	locktest.Check(t, <-left)
}

// A program that calls only cluster.Shutdown leaves as well.
func TestDirectory_LeavesAtTheShutdown(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{})
	a.mustAsk(t, "a", "where")
	a.Shutdown(true)
	if keys := f.redis.Keys(t, "grains:*"); len(keys) != 1 || f.count("a", "stops") != 1 {
		t.Errorf("Redis has %v", keys)
	}
}

// Leave does not release the lease while a grain runs. When its context has ended, the grain no longer handles
// messages.
func TestDirectory_LeaveWaitsForGrains(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{})
	pid := a.Get("slow", "account")
	root := a.ActorSystem.Root
	root.Send(pid, wrapperspb.String("wait"))
	second := root.RequestFuture(pid, wrapperspb.String("where"), time.Minute)
	redistest.Eventually(t, "the first message", func() bool { return f.count("slow", "handles wait") == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- a.d.Leave(ctx) }()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("Leave returns %v", err)
	}
	if keys := f.redis.Keys(t, "grains:*:member:*"); len(keys) != 1 {
		t.Errorf("while a grain runs, the leases are %v", keys)
	}
	close(f.gate)
	if _, err := second.Result(); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("the second message: %v", err)
	}
	locktest.Check(t, a.d.Leave(t.Context()))
	if f.count("slow", "stops") != 1 || f.count("slow", "handles where") != 0 {
		t.Error("the grain has not stopped, or has handled the second message")
	}
	f.expect()
}

// While a grain stops by itself, requests wait for its next activation, whose token is higher. What was behind the stop is
// reported to its sender.
func TestGrain_StopsByItself(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a, b := f.member(Config{}), f.member(Config{})
	for _, how := range []string{"poison", "stop"} {
		_, token := a.mustAsk(t, how, "where")
		pid := b.Get(how, "account")
		root := b.ActorSystem.Root
		root.Send(pid, wrapperspb.String(how+" 300ms"))
		redistest.Eventually(t, "the stop", func() bool { return f.count(how, "stopping") == 1 })
		behind := root.RequestFuture(pid, wrapperspb.String("behind"), time.Minute)
		if _, err := behind.Result(); !errors.Is(err, actor.ErrDeadLetter) {
			t.Errorf("what is behind the stop: %v", err)
		}
		if _, higher := a.mustAsk(t, how, "where"); higher <= token {
			t.Errorf("%s: the token %d is followed by %d", how, token, higher)
		}
	}
	if f.count("", "handles behind") > 0 {
		t.Error("a message behind the stop was handled")
	}
	redistest.Eventually(t, "the entries of the new activations only", func() bool { return f.entries() == 2 })
	f.expect()
}

// A grain that panics is restarted with its term, and stopped when that happens again and again. One that panics while it stops
// does stop. A producer that panics harms no other grain.
func TestGrain_IsRestartedAfterAPanicAndThenGivenUp(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{Activation: time.Second})
	_, token := a.mustAsk(t, "a", "where")
	pid := a.Get("a", "account")
	root := a.ActorSystem.Root
	root.Send(pid, wrapperspb.String("panic"))
	if _, same := a.mustAsk(t, "a", "where"); same != token {
		t.Errorf("after a restart the token is %d instead of %d", same, token)
	}
	var last *actor.Future
	for range 30 {
		last = root.RequestFuture(pid, wrapperspb.String("panic"), time.Minute)
	}
	if _, err := last.Result(); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("a message to a grain that was given up: %v", err)
	}
	if _, higher := a.mustAsk(t, "a", "where"); higher <= token {
		t.Errorf("the token %d is followed by %d", token, higher)
	}
	_, token = a.mustAsk(t, "c", "panic-at-stop")
	if _, higher := a.mustAsk(t, "c", "where"); higher <= token || f.count("c", "stops") != 1 {
		t.Errorf("a grain that panics at its stop has %d, and then %d", token, higher)
	}
	f.crash.Store(true)
	if _, err := a.ask("b", "where"); err == nil {
		t.Error("a grain without an actor answers")
	}
	f.crash.Store(false)
	a.mustAsk(t, "b", "where")
	f.expect()
}

// A grain that crashes while it is to stop is not restarted: neither before its children have stopped nor after it has.
func TestGrain_StopsThoughItCrashes(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{})
	for _, how := range []string{"stop-and-panic", "stop-children-and-panic"} {
		_, token := a.mustAsk(t, how, "where")
		a.ActorSystem.Root.Send(a.Get(how, "account"), wrapperspb.String(how+" 300ms"))
		redistest.Eventually(t, "the stop", func() bool { return f.count(how, "stopping") == 1 })
		if _, higher := a.mustAsk(t, how, "where"); higher <= token {
			t.Errorf("%s: the token %d is followed by %d", how, token, higher)
		}
		if starts, stops := f.count(how, "starts"), f.count(how, "stops"); starts != 2 || stops != 1 {
			t.Errorf("%s: %d starts and %d stops, want 2 and 1", how, starts, stops)
		}
	}
	f.expect()
}

// Wrong settings are errors, of New or with which StartMember panics.
func TestConfig_IsChecked(t *testing.T) {
	t.Parallel()
	client := newFleet(t, redistest.Start(t)).redis.Client(t)
	if _, err := New(nil, Config{}); !errors.Is(err, lockkeeper.ErrInvalid) {
		t.Errorf("no client: %v", err)
	}
	for _, cfg := range []Config{{Drain: -1}, {Activation: -1}} {
		if _, err := New(client, cfg); !errors.Is(err, lockkeeper.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	d, _ := New(client, Config{})
	var none context.Context
	if err := d.Leave(none); !errors.Is(err, lockkeeper.ErrInvalid) {
		t.Errorf("no context: %v", err)
	}
	if err := d.Leave(t.Context()); err != nil {
		t.Errorf("before the start: %v", err)
	}
	start := func(name string, cfg Config, kind string) (err error) {
		d, err := New(client, cfg)
		if err != nil {
			return err
		}
		system := quiet.ActorSystem()
		c := cluster.New(system, cluster.Configure(name, d.Provider(), d.Lookup(), remote.Configure("127.0.0.1", 0),
			cluster.WithKinds(cluster.NewKind(kind, actor.PropsFromFunc(func(actor.Context) {})))))
		t.Cleanup(func() { c.Remote.Shutdown(true); system.Shutdown() })
		defer func() { err, _ = recover().(error) }()
		c.StartMember()
		return nil
	}
	for what, err := range map[string]error{
		"no name":         start("", Config{}, "a"),
		"a long drain":    start("c", Config{Drain: time.Hour}, "a"),
		"a short lease":   start("c", Config{Locks: lockkeeper.Config{Watchdog: 1}}, "a"),
		"a kind's slash":  start("c", Config{}, "a/b"),
		"a negative poll": start("c", Config{Locks: lockkeeper.Config{Poll: -1}}, "a"),
	} {
		if !errors.Is(err, lockkeeper.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// All keys of a cluster are in one slot of a Redis Cluster.
func TestDirectory_KeysAreInOneSlot(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 3)
	f := newFleet(t, servers[0])
	a, b := f.member(Config{}), f.member(Config{})
	_, token := a.mustAsk(t, "a", "where")
	locktest.OK(t, a.d.redis.join(t.Context(), Member{ID: "dead"}))
	b.mustAsk(t, "a", "stop")
	if _, higher := b.mustAsk(t, "a", "where"); higher <= token {
		t.Errorf("the token %d is followed by %d", token, higher)
	}
	redistest.Eventually(t, "the burial of a dead member", func() bool {
		_, dead, err := a.d.redis.list(t.Context())
		return err == nil && len(dead) == 0
	})
	f.expect()
}
