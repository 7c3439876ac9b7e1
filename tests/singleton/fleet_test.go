// Package singleton_test tests singletons whose nodes are actor systems of one process. tests/fleet has them in real
// processes.
package singleton_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}

// short looks again soon, and has leases that are long enough for a busy machine.
var short = lockkeeper.Config{Watchdog: 6 * time.Second, CallTimeout: 500 * time.Millisecond, Poll: 200 * time.Millisecond}

// fleet has the nodes of a test, and all that instances of its singleton do.
type fleet struct {
	t *testing.T
	locktest.Key
	locktest.Network
	nodes int
	logs  redistest.Log
	// stopping is how long an instance takes to stop.
	stopping time.Duration
	// started, if it is not nil, is for what the start of an instance waits.
	started chan struct{}

	mu      sync.Mutex
	alive   int
	begun   []int64 // the messages, in order
	tokens  []int64 // of the terms
	senders []*actor.PID
	headers []string
	// terms are the terms that have begun. block is called for each message.
	terms chan term
	block func(term, int64)
}

// term is a term of an instance.
type term struct {
	context.Context
	self *actor.PID
	node *node
}

// node is a node of a fleet.
type node struct {
	*locktest.Site
	*fleet
	candidate *actor.PID
	proxy     *actor.PID
}

func newFleet(t *testing.T) *fleet {
	return &fleet{t: t, Key: locktest.NewKey(t, redistest.Shared(t)), terms: make(chan term, 100)}
}

// node opens a node; url is the URL of Redis.
func (f *fleet) node(cfg lockkeeper.Config, prepare ...func(*actor.ActorSystem)) *node {
	f.t.Helper()
	return f.nodeAt(f.Server.URL(), cfg, prepare...)
}

func (f *fleet) nodeAt(url string, cfg lockkeeper.Config, prepare ...func(*actor.ActorSystem)) *node {
	f.t.Helper()
	f.nodes++
	address := fmt.Sprintf("node%d:1", f.nodes)
	cfg.Logger = slog.New(slog.NewTextHandler(&f.logs, nil))
	prepare = append([]func(*actor.ActorSystem){func(system *actor.ActorSystem) { f.Join(system, address) }}, prepare...)
	return &node{Site: locktest.OpenWith(f.t, locktest.Connect(f.t, url), nil, cfg, prepare...), fleet: f}
}

// runs spawns a candidate, which stops at the end of the test.
func (n *node) runs(options ...lockkeeper.LeadOption) *node {
	n.candidate = n.Actors.Root.Spawn(n.Singleton(n.LockName).Props(func(ctx context.Context) *actor.Props {
		return actor.PropsFromProducer(func() actor.Actor { return &instance{term{Context: ctx, node: n}} })
	}, options...))
	n.t.Cleanup(func() { n.handOver() })
	return n
}

// sends spawns a proxy, which stops at the end of the test.
func (n *node) sends(options ...lockkeeper.WaitOption) *node {
	n.proxy = n.Actors.Root.Spawn(n.Singleton(n.LockName).Proxy(options...))
	n.t.Cleanup(func() { _ = n.Actors.Root.StopFuture(n.proxy).Wait() })
	return n
}

// handOver stops the candidate.
func (n *node) handOver() { _ = n.Actors.Root.StopFuture(n.candidate).Wait() }

// instance is the instance of the fleet's singleton. It answers with what it was sent.
type instance struct{ term }

func (i *instance) Receive(ctx actor.Context) {
	f := i.node.fleet
	switch m := ctx.Message().(type) {
	case *actor.Started:
		i.self = ctx.Self()
		f.mu.Lock()
		if f.alive++; f.alive > 1 {
			f.t.Errorf("%d instances are alive", f.alive)
		}
		f.tokens = append(f.tokens, lockkeeper.HoldFrom(i).Token())
		f.mu.Unlock()
		f.terms <- i.term
		if f.started != nil {
			<-f.started
		}
	case *actor.Restarting, *actor.Stopped:
		<-time.After(f.stopping)
		f.mu.Lock()
		f.alive--
		f.mu.Unlock()
	case *wrapperspb.Int64Value:
		f.mu.Lock()
		f.begun = append(f.begun, m.Value)
		f.senders = append(f.senders, ctx.Sender())
		f.headers = append(f.headers, fmt.Sprint(ctx.MessageHeader().ToMap()))
		block := f.block
		f.mu.Unlock()
		if block != nil {
			block(i.term, m.Value)
		}
		ctx.Respond(m)
	}
}

// send sends the numbers from one on to another to the proxy.
func (n *node) send(from, to int64) {
	for i := from; i <= to; i++ {
		n.Actors.Root.Send(n.proxy, wrapperspb.Int64(i))
	}
}

// sendAs is send with a sender, which gets the answers.
func (n *node) sendAs(sender *locktest.Probe, from, to int64) {
	for i := from; i <= to; i++ {
		n.Actors.Root.RequestWithCustomSender(n.proxy, wrapperspb.Int64(i), sender.Pid)
	}
}

// awaitBegun waits until the instances have begun the numbers 1 to n, in order, each once.
func (f *fleet) awaitBegun(n int64) {
	f.t.Helper()
	redistest.Eventually(f.t, fmt.Sprintf("the message %d is begun", n), func() bool { return f.last() >= n })
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, m := range f.begun {
		if m != int64(i)+1 {
			f.t.Fatalf("the message %d is the %dth", m, i+1)
		}
	}
}

// last is the last message that was begun.
func (f *fleet) last() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.begun) == 0 {
		return 0
	}
	return f.begun[len(f.begun)-1]
}

func (f *fleet) blockWith(block func(term, int64)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.block = block
}

// expectBegun checks what instances have begun.
func (f *fleet) expectBegun(want ...int64) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.begun, want) {
		f.t.Errorf("begun are %v, want %v", f.begun, want)
	}
}

// expectKeys checks that Redis has only the keys of the singleton that are kept.
func (f *fleet) expectKeys() {
	f.t.Helper()
	f.AwaitFree(f.t)
	kept := []string{keyspace.Token(f.Name), keyspace.Whereabouts(f.Name)}
	redistest.Eventually(f.t, "only the kept keys are left", func() bool {
		keys := f.Server.Keys(f.t, "*"+f.Name+"*")
		return !slices.ContainsFunc(keys, func(key string) bool { return !slices.Contains(kept, key) })
	})
}
