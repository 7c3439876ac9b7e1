package singleton_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Candidates hand over again and again under load: each message is begun once, and in order.
func TestSingleton_HandsOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	nodes := []*node{f.node(short).runs(), f.node(short).runs()}
	sender := f.node(short).sends()
	const rounds, each = 8, 200
	for i := range int64(rounds) {
		was := locktest.Await(t, "an instance", f.terms)
		sender.send(i*each+1, (i+1)*each)
		redistest.Eventually(t, "half of the messages", func() bool { return f.last() > i*each+each/2 })
		was.node.handOver()
		was.node.runs()
	}
	f.awaitBegun(rounds * each)
	for _, n := range nodes {
		n.handOver()
	}
	f.mu.Lock()
	if !slices.IsSorted(f.tokens) || len(f.tokens) < rounds {
		t.Errorf("the tokens of the terms are %v", f.tokens)
	}
	f.mu.Unlock()
	f.expectKeys()
}

// A message that never arrives is refused after some tries, and does not hold up later messages.
func TestSingleton_RefusesWhatNeverArrives(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.Lose = func(_ *actor.PID, m any) bool { v, is := m.(*wrapperspb.Int64Value); return is && v.Value == 2 }
	f.node(short).runs()
	n := f.node(short).sends()
	probe := n.Probe(t)
	n.sendAs(probe, 1, 3)
	locktest.Next[*wrapperspb.Int64Value](t, probe)
	locktest.Next[*actor.DeadLetterResponse](t, probe)
	locktest.Next[*wrapperspb.Int64Value](t, probe)
	f.expectBegun(1, 3)
}

// The instance sees the sender and the headers of a message, and its answer goes to the sender.
func TestSingleton_KeepsSenderAndHeaders(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node(short).runs()
	n := f.node(short).sends()
	answer, err := lockkeeper.Ask(locktest.Within(t), n.Actors.Root, n.proxy, wrapperspb.Int64(7))
	if m, is := answer.(*wrapperspb.Int64Value); err != nil || !is || m.Value != 7 {
		t.Errorf("answered %v: %v", answer, err)
	}
	probe := n.Probe(t)
	e := &actor.MessageEnvelope{Message: wrapperspb.Int64(8), Sender: probe.Pid}
	e.SetHeader("colour", "blue")
	n.Actors.Root.Send(n.proxy, e)
	locktest.Next[*wrapperspb.Int64Value](t, probe)
	e = &actor.MessageEnvelope{Message: wrapperspb.Int64(9)}
	e.SetHeader("lockkeeper-sender", "node1:1/another") // as if another singleton had forwarded it
	n.Actors.Root.Send(n.proxy, e)
	redistest.Eventually(t, "the last message", func() bool { return f.last() == 9 })
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.senders[1].Equal(probe.Pid) || f.senders[2] != nil || f.headers[1] != "map[colour:blue]" || f.headers[2] != "map[]" {
		t.Errorf("the senders are %v, the headers %v", f.senders, f.headers)
	}
}

// The address of a node may have slashes, as the addresses of gRPC's resolvers.
func TestSingleton_AnswersToAnyAddress(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node(short).runs()
	n := f.node(short, func(system *actor.ActorSystem) { f.Join(system, "dns:///sender:1") })
	n.sends()
	if answer, err := lockkeeper.Ask(locktest.Within(t), n.Actors.Root, n.proxy, wrapperspb.Int64(7)); err != nil {
		t.Errorf("answered %v: %v", answer, err)
	}
}

// A proxy may wait for ever: the sums of its times do not overflow.
func TestProxy_WaitsForEver(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	n := f.node(short).runs()
	sender := f.node(short).sends(lockkeeper.WithWait(math.MaxInt64))
	began, end := make(chan struct{}), make(chan struct{})
	f.blockWith(func(_ term, m int64) {
		if m == 1 {
			close(began)
			<-end
		}
	})
	probe := sender.Probe(t)
	sender.sendAs(probe, 1, 3)
	locktest.Await(t, "the first message", began)
	sender.Actors.Root.Send(sender.proxy, &actor.DeadLetterResponse{}) // the gate seems to have gone
	sender.sendAs(probe, 4, 4)
	close(end)
	for range 4 {
		locktest.Next[*wrapperspb.Int64Value](t, probe)
	}
	n.handOver()
}

// What waits too long, is too much, is not protobuf, or is left when the proxy stops, is refused and reported.
func TestProxy_RefusesAndReports(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	n := f.node(short).sends(lockkeeper.WithWait(300 * time.Millisecond))
	within := locktest.Within(t)
	refused := func(what string, m any) {
		t.Helper()
		if answer, err := lockkeeper.Ask(within, n.Actors.Root, n.proxy, m); !errors.Is(err, actor.ErrDeadLetter) {
			t.Errorf("%s is answered %v, %v", what, answer, err)
		}
	}
	refused("a message that has waited", wrapperspb.Int64(1))
	refused("a message that is not protobuf", "text")

	dead := make(chan any, 2000)
	subscription := n.Actors.EventStream.Subscribe(func(event any) {
		if letter, is := event.(*actor.DeadLetterEvent); is {
			dead <- letter.Message
		}
	})
	defer n.Actors.EventStream.Unsubscribe(subscription)
	n.send(1, 1)
	if m, is := locktest.Await(t, "a dead letter", dead).(*wrapperspb.Int64Value); !is || m.Value != 1 {
		t.Errorf("the dead letter is %v", m)
	}

	patient := f.node(short).sends(lockkeeper.WithWait(time.Hour))
	probe := patient.Probe(t)
	patient.sendAs(probe, 0, 1000)
	locktest.Next[*actor.DeadLetterResponse](t, probe) // the last one
	patient.Actors.Root.Stop(patient.proxy)
	patient.sendAs(probe, 0, 99) // some of them are in its mailbox when it stops
	for range 1100 {
		locktest.Next[*actor.DeadLetterResponse](t, probe)
	}

	for _, option := range []lockkeeper.WaitOption{nil, lockkeeper.WithWait(0)} { // without a wait, the proxy ends
		n.AwaitEnd(t, n.Actors.Root.Spawn(n.Singleton(n.LockName).Proxy(option)))
	}
	f.expectBegun()
}

// A crash costs the message that was being handled, which is not begun again, and no other.
func TestSingleton_CrashCostsOneMessage(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	n := f.node(short).runs().sends()
	f.blockWith(func(_ term, m int64) {
		if m%5 == 0 {
			panic("crash")
		}
	})
	n.send(1, 23)
	f.awaitBegun(23)
	for range 5 {
		locktest.Await(t, "a start of the instance", f.terms)
	}
}

// An instance that is stopped while it handles a message has begun that and no other: the next one handles the rest. An
// answer that was lost does not matter.
func TestSingleton_MovesWhatIsNotBegun(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var deaf atomic.Bool
	f.Lose = func(_ *actor.PID, m any) bool { _, is := m.(*messages.SingletonHere); return is && deaf.Load() }
	began, end := make(chan term), make(chan struct{})
	f.blockWith(func(at term, m int64) {
		if m == 3 {
			began <- at
			<-end
		}
	})
	first := f.node(short).runs()
	locktest.Await(t, "the first instance", f.terms)
	f.node(short).runs()
	sender := f.node(short).sends()
	sender.send(1, 2)
	f.awaitBegun(2)
	deaf.Store(true)
	sender.send(3, 50)
	locktest.Await(t, "the third message", began)
	first.Actors.Root.Stop(first.candidate)
	f.awaitBegun(3)
	deaf.Store(false)
	close(end)
	locktest.Await(t, "the second instance", f.terms)
	f.awaitBegun(50)
}

// An instance that is cut off from Redis has stopped before the next one starts. What its proxy does not know is
// refused.
func TestSingleton_StopsWhenItIsCutOff(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.stopping = 500 * time.Millisecond // less than the default of WithDrain
	proxy := redistest.NewProxy(t, f.Server.Addr())
	far := f.nodeAt(proxy.URL()+"?write_timeout=1s", short)
	far.runs()
	locktest.Await(t, "the first instance", f.terms)
	f.node(short).runs()
	sender := f.node(short).sends()
	sender.send(1, 10)
	f.awaitBegun(10)
	proxy.Freeze(true)
	locktest.Await(t, "the next instance", f.terms) // which checks that it is alone
	sender.send(11, 20)
	f.awaitBegun(20)
	proxy.Freeze(false)
}

// After a sleep of the machine that was longer than the lease, an instance handles nothing, neither from proxies nor
// from others.
func TestSingleton_HandlesNothingAfterItsLease(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var machine *boottime.Suspendable
	cfg := short
	cfg.Watchdog, cfg.Renewal = time.Hour, 20*time.Minute
	began, end := make(chan term, 10), make(chan struct{})
	f.blockWith(func(at term, m int64) {
		began <- at
		<-end
	})
	n := f.node(cfg, func(system *actor.ActorSystem) { machine = boottime.Install(system) }).runs().sends()
	probe := n.Probe(t)
	n.send(1, 5)
	at := locktest.Await(t, "the first message", began)
	n.Actors.Root.RequestWithCustomSender(at.self, wrapperspb.Int64(6), probe.Pid)
	machine.Sleep(2 * time.Hour)
	close(end)
	locktest.Next[*actor.DeadLetterResponse](t, probe)
	f.expectBegun(1)
	redistest.Eventually(t, "the overrun is logged", func() bool {
		machine.Suspend(0)
		return strings.Contains(f.logs.String(), "after its lease had ended")
	})
}

// An instance whose start takes longer than its lease is reported, too: another instance may have run alongside it.
func TestSingleton_ReportsASlowStart(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.started = make(chan struct{})
	var machine *boottime.Suspendable
	cfg := short
	cfg.Watchdog, cfg.Renewal = time.Hour, 20*time.Minute
	f.node(cfg, func(system *actor.ActorSystem) { machine = boottime.Install(system) }).runs()
	locktest.Await(t, "the instance", f.terms)
	machine.Sleep(2 * time.Hour)
	redistest.Eventually(t, "the loss of the lock", func() bool {
		machine.Suspend(0)
		return strings.Contains(f.logs.String(), "lease lost")
	})
	close(f.started)
	redistest.Eventually(t, "the overrun is logged", func() bool { return strings.Contains(f.logs.String(), "after its lease had ended") })
}

// Redis may lose where the instance is: it is written again, and new proxies find it.
func TestSingleton_IsFoundAfterRedisHasForgotten(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	cfg := short
	cfg.Renewal = 300 * time.Millisecond
	f.node(cfg).runs()
	locktest.Await(t, "the instance", f.terms)
	f.Do(t, "DEL", keyspace.Whereabouts(f.Name))
	n := f.node(short).sends()
	n.send(1, 1)
	f.awaitBegun(1)
}

// When Redis has lost all its data, an instance of before may write its place once more, with its high token. The next
// one is found nevertheless, and hands over.
func TestSingleton_IsFoundAfterRedisHasLostTheCounter(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for _, field := range []string{"at", "left"} {
		f.Do(t, "HSET", keyspace.Whereabouts(f.Name), field, "1000 node0:1 {}")
	}
	first := f.node(short).runs()
	locktest.Await(t, "the first instance", f.terms)
	f.node(short).runs()
	n := f.node(short).sends()
	n.send(1, 1000)
	redistest.Eventually(t, "the first message", func() bool { return f.last() > 0 })
	first.handOver()
	f.awaitBegun(1000)
}

// The rights in docs/acl.md are enough, and in a cluster all keys are in one slot.
func TestSingleton_WorksWithACLAndCluster(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, r := range redisio.ACL() {
		if r.Kind == "singleton" {
			server.Do(t, append([]string{"ACL", "SETUSER", "user", "on", ">pw"}, strings.Fields(r.Rules(redisio.OneServer, "locks:"))...)...)
		}
	}
	for what, url := range map[string]string{
		"as an ACL user": locktest.URLAs(server, "user", "pw"), "in a cluster": redistest.Cluster(t, 2)[1].URL(),
	} {
		t.Run(what, func(t *testing.T) {
			f := newFleet(t)
			cfg := short
			cfg.KeyPrefix, cfg.Renewal, cfg.CallTimeout = "locks:", 100*time.Millisecond, locktest.Soon
			first := f.nodeAt(url, cfg).runs()
			locktest.Await(t, "the first instance", f.terms)
			f.nodeAt(url, cfg).runs()
			n := f.nodeAt(url, cfg).sends()
			n.send(1, 50)
			f.awaitBegun(25)
			first.handOver()
			f.awaitBegun(50)
			if logs := f.logs.String(); logs != "" {
				t.Errorf("logged: %s", logs)
			}
		})
	}
}

// Without proto.actor's remote an instance in another process cannot be reached. That is in the log, once; and not of
// one that has left.
func TestProxy_WarnsWithoutRemote(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Shared(t))
	var logs redistest.Log
	cfg := short
	cfg.Logger = slog.New(slog.NewTextHandler(&logs, nil))
	there, here := locktest.Open(t, k.Server.URL(), short), locktest.Open(t, k.Server.URL(), cfg)
	candidate := there.Actors.Root.Spawn(there.Singleton(k.LockName).Props(func(context.Context) *actor.Props {
		return actor.PropsFromFunc(func(actor.Context) {})
	}))
	proxy := here.Actors.Root.Spawn(here.Singleton(k.LockName).Proxy())
	here.Actors.Root.Send(proxy, wrapperspb.Int64(1))
	redistest.Eventually(t, "a warning", func() bool { return strings.Contains(logs.String(), "a singleton cannot be reached") })
	locktest.OK(t, there.Actors.Root.PoisonFuture(candidate).Wait())
	locktest.OK(t, here.Actors.Root.PoisonFuture(proxy).Wait())

	before := logs.String()
	proxy = here.Actors.Root.Spawn(here.Singleton(k.LockName).Proxy(lockkeeper.WithWait(300 * time.Millisecond)))
	if _, err := here.Actors.Root.RequestFuture(proxy, wrapperspb.Int64(1), redistest.Limit).Result(); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("without an instance: %v", err)
	}
	if text := strings.TrimPrefix(logs.String(), before); text != "" {
		t.Errorf("of an instance that has left: %s", text)
	}
	locktest.OK(t, here.Actors.Root.PoisonFuture(proxy).Wait())
}
