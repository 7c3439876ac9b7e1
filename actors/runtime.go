package actors

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sys/cpu"

	"github.com/lockkeeper-go/lockkeeper/internal/alarm"
	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/mailbox"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/records"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Config is the configuration that the actors of a system share. Package lockkeeper fills in the
// defaults and validates it.
type Config struct {
	machine.Config
	// KeyPrefix is put before every lock's name.
	KeyPrefix string
	// Sharded says that the server is a cluster with sharded pub/sub, which is used.
	Sharded bool
	// WaiterTimeout is how long a fair lock's waiter keeps its place after its process's last
	// sign of life.
	WaiterTimeout time.Duration
	// Replicas is how many replicas must have a lease before it is trusted, and ReplicaTimeout how
	// long they may take.
	Replicas       int
	ReplicaTimeout time.Duration
	// Record is what the system says of its process in Redis; nil if it says nothing. The Client
	// and the times are filled in.
	Record *records.Record
	// Idle is how long an unused lock actor stays alive.
	Idle time.Duration
	// Middleware handles every request by message before its lock does; see package internal/middleware.
	Middleware []actor.ReceiverMiddleware
	Logger     *slog.Logger
	// LongWait and LongHold are how long a wait and a hold last before they are logged; 0: never.
	LongWait, LongHold time.Duration
	// HoldStacks has holders keep their stacks; see request.Holder.
	HoldStacks bool
	// Meter may be nil; then nothing is measured.
	Meter metric.Meter
	// Tracer may be nil; then no spans are made.
	Tracer trace.Tracer
}

// Runtime is the state that all actors of one system share, and that outlives each of them.
type Runtime struct {
	cfg Config
	// kinds makes what is special about the lock actors of each kind.
	kinds *kinds.System
	// rules are what requests are checked against.
	rules request.Rules
	actor *actor.ActorSystem
	root  *actor.RootContext
	redis *redisclient.Redis
	// forgetMoves unregisters examine.
	forgetMoves func()
	// server is that Redis, as locks use it.
	server *backend.Server

	// id is the client part of every owner field in Redis.
	id string
	// present is the system's clock; endBeat ends its beat.
	present boottime.Clock
	endBeat func()
	table   table
	// composites are the lock actors, of this system and of others, whose locks have members here.
	composites sync.Map
	// red are the systems that RedLock has made one of, this one first; nil before.
	red      atomic.Pointer[[]*Runtime]
	host     *host.Host
	post     delivery.Post
	observer *observe.Observer

	clocks     *alarm.Clocks
	goroutines mailbox.Goroutines
	// spawned counts the lock actors that there have been.
	spawned atomic.Uint64

	// injected is middleware of tests.
	injected []actor.ReceiverMiddleware

	guardian   *actor.PID
	subscriber *actor.PID
	channels   *channels

	// lenders is how many callers run commands on their own goroutines.
	lenders atomic.Int64

	// stopped is closed when the guardian has stopped, with all its children.
	stopped chan struct{}
	// closed is set when Close begins; left is closed when the lock actors have gone,
	// and complete reports whether every lock was released by then; ended is closed when
	// the goroutines have gone too.
	closed   atomic.Bool
	left     chan struct{}
	ended    chan struct{}
	complete bool

	// Every request changes these counters, so they are not in one line of the processor's cache with
	// what every request reads.
	_ cpu.CacheLinePad
	// terms numbers the terms of all locks: no number is used twice.
	terms atomic.Uint64
	// requests numbers the requests, and owners the owners that make them.
	requests, owners atomic.Uint64
	_                cpu.CacheLinePad
}

// Start starts the guardian and the subscriber. The caller closes the client.
func Start(system *actor.ActorSystem, client rueidis.Client, cfg Config) *Runtime {
	r := &Runtime{
		cfg:     cfg,
		actor:   system,
		root:    system.Root.Copy(),
		redis:   redisclient.New(client, min(cfg.Renewal/50, 100*time.Millisecond)),
		id:      uuid.NewString(),
		present: boottime.For(system),
		host:    host.New(system, cfg.Logger),
		stopped: make(chan struct{}),
		left:    make(chan struct{}),
		ended:   make(chan struct{}),
	}
	r.post = delivery.Post{System: system, Host: r.host, Late: r.late}
	if cfg.Sharded {
		r.redis.Shard()
	}
	r.observer = r.newObserver()
	r.redis.Watch(r.watch())
	r.redis.AwaitReplicas(cfg.Replicas, cfg.ReplicaTimeout)
	r.rules = request.Rules{
		System: r, ID: r.id, KeyPrefix: cfg.KeyPrefix, Cluster: r.redis.Cluster(), Sharded: r.redis.Sharded(), Watchdog: cfg.Watchdog,
		RedLock: r.redSystems, Actors: system,
	}
	r.clocks = alarm.New(r.Now, r.redis.Round)
	r.endBeat = r.present.Beat(r.clocks.Again)
	r.server = backend.NewServer(r, r.redis, backend.Config{KeyPrefix: cfg.KeyPrefix, CallTimeout: cfg.CallTimeout, Quarantine: cfg.Watchdog, KeepTokens: cfg.Idle})
	r.kinds = r.newKinds()
	r.channels = newChannels(r)
	r.injected = faultinject.Of(system)
	r.register()
	r.forgetMoves = r.redis.OnMove(r.examine)
	r.startGuardian()
	return r
}

func (r *Runtime) newKinds() *kinds.System {
	return kinds.NewSystem(kinds.SystemConfig{
		ID: r.id, Server: r.server, Host: r.host, Config: &r.cfg.Config, Now: r.Now, NextTerm: func() uint64 { return r.terms.Add(1) },
		Options: kinds.LockOptions{
			Client: r.id, WaiterTimeout: r.cfg.WaiterTimeout,
			WaitQueue: kinds.WaitQueue{OpenTime: r.cfg.OpenTime(), OpenEvery: r.cfg.ForcedYield, SeesListeners: !r.redis.Cluster()},
		},
	})
}

// Guardian returns the address for the requests of package messages.
func (r *Runtime) Guardian() *actor.PID { return r.guardian }

// Rules implements System.
func (r *Runtime) Rules() *request.Rules { return &r.rules }

// Foreign reports whether a PID is that of a process on another node.
func (r *Runtime) Foreign(pid *actor.PID) bool { return r.rules.Foreign(pid) }

// ID returns the client part of this system's owner fields, a UUID.
func (r *Runtime) ID() string { return r.id }

// Deliver sends a message and reports whether there was a recipient; see delivery.Post.
func (r *Runtime) Deliver(pid *actor.PID, message any) (taken bool) {
	return r.post.Deliver(pid, message)
}

// late handles what has reached an actor after it had stopped: a request is refused, and a reply of Redis settled.
func (r *Runtime) late(m any, sender *actor.PID) {
	if reply, is := unrepeated(m).(*kinds.Reply); is {
		if s := reply.To.(*lockState); s.leaving != nil { // its state does not change any more
			s.late(reply)
		}
		return
	}
	r.refuseAny(m, sender, machine.Closed, closedText)
}

// Now returns the time on the system's clock, which counts the time the machine sleeps.
func (r *Runtime) Now() machine.Instant { return r.present.Now() }

// Log logs a line for an operator.
func (r *Runtime) Log(level slog.Level, message string, args ...any) {
	r.host.Log(level, message, args...)
}

// CallHost runs a function of the host program, such as one given as an option.
func (r *Runtime) CallHost(what string, f func()) { r.host.Call(what, f) }

// KeepsStacks reports whether holders are to keep their stacks.
func (r *Runtime) KeepsStacks() bool { return r.cfg.HoldStacks }

// Closed reports whether Close was called.
func (r *Runtime) Closed() bool { return r.closed.Load() }

// partsOf are what the members are in Redis.
func partsOf(members []request.Member) []backend.Part {
	parts := make([]backend.Part, len(members))
	for i, one := range members {
		rt := one.System.(*Runtime)
		var red []*backend.Server
		if systems := rt.red.Load(); systems != nil {
			red = serversOf(*systems)
		}
		parts[i] = kinds.PartOf(one, rt.server, red)
	}
	return parts
}

// serversOf are the Redis of each of the systems.
func serversOf(systems []*Runtime) []*backend.Server {
	servers := make([]*backend.Server, len(systems))
	for i, one := range systems {
		servers[i] = one.server
	}
	return servers
}

// Red makes the systems the servers of a RedLock. The first system runs its lock actors.
func Red(systems []*Runtime) error {
	if len(systems) < 3 {
		return fmt.Errorf("a RedLock of %d systems: it takes at least 3, better 5, each on a Redis of its own", len(systems))
	}
	home := systems[0]
	for i, each := range systems {
		if slices.Index(systems, each) != i {
			return errors.New("a RedLock in which a system is named twice")
		}
		if each.redis.Cluster() {
			return errors.New("a RedLock with a system on a Redis Cluster: each takes a single server of its own")
		}
		if each.cfg.Watchdog != home.cfg.Watchdog {
			return fmt.Errorf("a RedLock of systems whose Watchdog differs: %v and %v", home.cfg.Watchdog, each.cfg.Watchdog)
		}
	}
	chosen := slices.Clone(systems)
	if known := home.red.Load(); known == nil || !slices.Equal(*known, chosen) {
		backend.Discover(serversOf(chosen))
	}
	if err := backend.Distinct(serversOf(chosen)); err != nil {
		return err
	}
	if !home.red.CompareAndSwap(nil, &chosen) && !slices.Equal(*home.red.Load(), chosen) {
		return errors.New("the first of these systems keeps a RedLock of other systems already")
	}
	return nil
}

// redSystems are those of which the system has made a RedLock; nil for none.
func (r *Runtime) redSystems() []request.System {
	red := r.red.Load()
	if red == nil {
		return nil
	}
	all := make([]request.System, len(*red))
	for i, each := range *red {
		all[i] = each
	}
	return all
}

// DrawOrder implements System.
func (r *Runtime) DrawOrder(members []request.Member) (order []int) {
	for _, batch := range backend.Batches(partsOf(members)) {
		order = append(order, batch...)
	}
	return order
}
