// proto.actor's remote has data races of its own, so tests of nodes are not built with the race detector: build/test.sh
// runs them without it.

//go:build !race

package grains

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

// fleet has the nodes of a test, and what their grains have done.
type fleet struct {
	t     testing.TB
	redis *redistest.Server
	name  string
	// url and prefix are the URL and the key prefix of the nodes.
	url, prefix string
	lookup      func(*Directory) cluster.IdentityLookup
	remote      []remote.ConfigOption

	mu     sync.Mutex
	events []string
	faults []string
	alive  map[string]int // activations, by grain

	gate  chan struct{} // for which the message "wait" waits
	crash atomic.Bool   // the producer panics
}

func newFleet(t testing.TB, server *redistest.Server) *fleet {
	t.Helper()
	return &fleet{t: t, redis: server, url: server.URL(), lookup: (*Directory).Lookup, name: redistest.Name(t), alive: map[string]int{}, gate: make(chan struct{})}
}

// node is one process, as far as the others can see.
type node struct {
	*cluster.Cluster
	d *Directory
}

// node returns a node that is not started.
func (f *fleet) node(cfg Config) *node {
	f.t.Helper()
	if cfg.Locks.Watchdog == 0 {
		cfg.Locks.Watchdog = 3 * time.Second
	}
	if cfg.Locks.Poll == 0 {
		cfg.Locks.Poll = 100 * time.Millisecond
	}
	client := locktest.Must(lockkeeper.Connect(f.url))(f.t)
	d := locktest.Must(New(client, cfg))(f.t)
	system := quiet.ActorSystem()
	c := cluster.New(system, cluster.Configure(f.name, d.Provider(), f.lookup(d), remote.Configure("127.0.0.1", 0, f.remote...),
		cluster.WithKinds(cluster.NewKind("account", actor.PropsFromProducer(f.produce)))))
	n := &node{c, d}
	f.t.Cleanup(func() {
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		locktest.Check(f.t, d.Leave(ctx))
		if system.IsStopped() {
			return // the test has shut the cluster down
		}
		if c.Remote != nil {
			c.Remote.Shutdown(true)
		}
		system.Shutdown()
	})
	return n
}

// produce returns a grain.
func (f *fleet) produce() actor.Actor {
	if f.crash.Load() {
		panic("as asked")
	}
	return &account{f: f}
}

// key returns a key of the store.
func (f *fleet) key(what string) string { return f.prefix + "grains:{" + f.name + "}:" + what }

// entries returns how many grains have an entry.
func (f *fleet) entries() (n int) {
	fields := locktest.Must(f.redis.Do(f.t, "HKEYS", f.key("entries")).AsStrSlice())(f.t)
	for _, field := range fields {
		if strings.Contains(field, "/") { // a member's mark has none
			n++
		}
	}
	return n
}

// member starts a node that runs grains.
func (f *fleet) member(cfg Config) *node {
	f.t.Helper()
	n := f.node(cfg)
	n.StartMember()
	return n
}

func (n *node) ask(name, what string) (string, error) {
	answer, err := n.Request(name, "account", wrapperspb.String(what))
	if text, is := answer.(*wrapperspb.StringValue); is {
		return text.Value, err
	}
	return "", err
}

// mustAsk returns the address and the token of the grain that has answered.
func (n *node) mustAsk(t testing.TB, name, what string) (address string, token int64) {
	t.Helper()
	answer, err := n.ask(name, what)
	if err != nil {
		t.Fatalf("%s of %s: %v", what, name, err)
	}
	if _, err := fmt.Sscan(answer, &address, &token); err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	return address, token
}

// account is a grain. It answers each message with its address and token.
type account struct {
	f    *fleet
	name string
	// panics: it panics while it stops. stopping is how long it takes to handle that.
	panics   bool
	stopping time.Duration
	late     bool // it handles its Stopped until the gate opens
	idle     *time.Timer
}

// spawnSlow spawns a child which takes that long to stop, so the grain does too.
func (*account) spawnSlow(ctx actor.Context, takes time.Duration) {
	ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, stopping := ctx.Message().(*actor.Stopping); stopping {
			<-time.After(takes)
		}
	}))
}

func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.name = cluster.GetClusterIdentity(ctx).Identity
		a.f.note(a.name, "starts", 1)
		if !TermOf(ctx).Valid() || TermOf(ctx).Context().Err() != nil {
			a.f.fault("%s starts without a term", a.name)
		}
	case *actor.Restarting:
		a.f.note(a.name, "restarts", -1)
	case *actor.ReceiveTimeout:
		ctx.Poison(ctx.Self())
	case *actor.Stopping:
		if a.idle != nil {
			a.idle.Stop()
		}
		if TermOf(ctx).Context().Err() == nil {
			a.f.fault("the term of %s lasts when it stops", a.name)
		}
		a.f.note(a.name, "stopping", 0)
		<-time.After(a.stopping)
		if a.panics {
			panic("as asked")
		}
	case *actor.Stopped:
		a.f.note(a.name, "stops", -1)
		if a.late {
			<-a.f.gate
		}
		if a.panics {
			panic("as asked")
		}
	case *wrapperspb.StringValue:
		what, argument, _ := strings.Cut(m.Value, " ")
		duration, _ := time.ParseDuration(argument)
		a.f.note(a.name, "handles "+what, 0)
		switch what {
		case "work":
			<-time.After(duration)
		case "wait":
			<-a.f.gate
		case "block":
			<-TermOf(ctx).Context().Done()
		case "poison":
			a.spawnSlow(ctx, duration)
			ctx.Poison(ctx.Self())
		case "stop":
			a.spawnSlow(ctx, duration)
			ctx.Stop(ctx.Self())
		case "stop-late":
			a.late = true
			ctx.Stop(ctx.Self())
		case "stop-and-panic":
			a.stopping = duration
			ctx.Stop(ctx.Self())
			panic("as asked")
		case "stop-children-and-panic":
			a.spawnSlow(ctx, duration)
			ctx.Stop(ctx.Self())
			panic("as asked")
		case "idle":
			root, self := ctx.ActorSystem().Root, ctx.Self()
			if a.idle == nil {
				a.idle = time.AfterFunc(duration, func() { root.Poison(self) })
			}
			a.idle.Reset(duration)
		case "receive-timeout":
			ctx.SetReceiveTimeout(duration)
		case "panic":
			panic("as asked")
		case "panic-at-stop":
			a.panics = true
			ctx.Stop(ctx.Self())
		}
		ctx.Respond(wrapperspb.String(fmt.Sprint(ctx.Self().Address, " ", TermOf(ctx).Token())))
	}
}

func (f *fleet) fault(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

func (f *fleet) note(name, what string, change int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, name+" "+what)
	if f.alive[name] += change; f.alive[name] > 1 {
		f.faults = append(f.faults, name+" has two activations")
	}
}

// count counts the events of a kind, of one grain or of all.
func (f *fleet) count(name, what string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		of, did, _ := strings.Cut(e, " ")
		if (name == "" || of == name) && did == what {
			n++
		}
	}
	return n
}

// expect fails the test if there were faults.
func (f *fleet) expect() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range f.faults {
		f.t.Error(fault)
	}
}
