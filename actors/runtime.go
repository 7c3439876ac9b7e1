package actors

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sys/cpu"

	"github.com/lockkeeper-go/lockkeeper/internal/alarm"
	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/mailbox"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/records"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
	"github.com/lockkeeper-go/lockkeeper/internal/watch"
)

// Config is the configuration that the actors of a system share. Package lockkeeper fills in the
// defaults and validates it.
type Config struct {
	machine.Config
	// KeyPrefix is put before every lock's name.
	KeyPrefix string
	// TokenCounter is that of backend.Config.
	TokenCounter string
	// Sharded says that the server is a cluster with sharded pub/sub, which is used.
	Sharded bool
	// A fair lock's waiter keeps its place for WaiterTimeout after the last sign of life of its process.
	WaiterTimeout time.Duration
	// Replicas is the number of replicas that must have a lease, within ReplicaTimeout, before it is trusted.
	Replicas       int
	ReplicaTimeout time.Duration
	// Record is what the system says of its process in Redis; nil if it says nothing. The Client
	// and the times are filled in.
	Record *records.Record
	// An unused lock actor stays alive for Idle.
	Idle time.Duration
	// Middleware handles every request by message before its lock does; see package internal/middleware.
	Middleware []actor.ReceiverMiddleware
	Logger     *slog.Logger
	// A wait longer than LongWait and a hold longer than LongHold are logged; 0: never.
	LongWait, LongHold time.Duration
	// HoldStacks makes holders keep their stacks; see request.Holder.
	HoldStacks bool
	// Meter may be nil; then nothing is measured.
	Meter metric.Meter
	// Tracer may be nil; then no spans are made.
	Tracer trace.Tracer
}

// Runtime is the state that all actors of one system share, and that outlives each of them.
type Runtime struct {
	cfg Config
	// kinds makes the Adapter of each lock actor.
	kinds *kinds.System
	// rules check the requests.
	rules  request.Rules
	system *actor.ActorSystem
	root   *actor.RootContext
	redis  *redisclient.Redis
	// stopWatchingMaster unregisters suspectAll.
	stopWatchingMaster func()
	// server is that Redis, as locks use it.
	server *backend.Server

	// id is the client part of every owner field in Redis.
	id string
	// clock is the system's clock; endBeat ends its beat.
	clock   boottime.Clock
	endBeat func()
	locks   kinds.Directory[*lockActor]
	// composites are the lock actors, of this system and of others, whose locks have members here.
	composites sync.Map
	// red are the systems of the RedLock of this system, which is the first of them; nil if it has none.
	red      atomic.Pointer[[]*Runtime]
	host     *host.Host
	post     delivery.Post
	observer *observe.Observer
	// notes are the notes of the holds, and watches are the locks that are watched.
	notes   records.Notes
	watches watch.Hub

	// effects has the memory for effects while they are performed.
	effects sync.Pool

	shells *shell.Pool
	// crowded says that there are more lock actors than maxActors.
	crowded  atomic.Bool
	idleRing shell.Ring[lockActor]

	clocks     *alarm.Clocks
	goroutines mailbox.Goroutines
	// spawned counts the lock actors that there have been.
	spawned atomic.Uint64

	// injected is middleware of tests.
	injected []actor.ReceiverMiddleware

	guardian        *actor.PID
	guardianProcess actor.Process
	subscriber      *subscriber

	// stopped is closed when the guardian has stopped, with all its children.
	stopped chan struct{}
	// closed is set when Close begins; left is closed when the lock actors have gone, and complete reports whether
	// every lock was released by then; ended is closed when the goroutines have gone too.
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

// Guardian returns the address for the requests of package messages.
func (r *Runtime) Guardian() *actor.PID { return r.guardian }

// toGuardian sends a message to the guardian, and reports whether it is there. When it has stopped, the guardian of the
// next System has its name.
func (r *Runtime) toGuardian(m any) (taken bool) {
	return r.post.DeliverTo(r.guardianProcess, r.guardian, m)
}

// Rules implements request.System.
func (r *Runtime) Rules() *request.Rules { return &r.rules }

// Watches returns the locks that are watched.
func (r *Runtime) Watches() *watch.Hub { return &r.watches }

// Foreign reports whether a PID is that of a process on another node.
func (r *Runtime) Foreign(pid *actor.PID) bool { return r.rules.Foreign(pid) }

// ID returns the client part of this system's owner fields, a UUID.
func (r *Runtime) ID() string { return r.id }

// Deliver sends a message and reports whether there was a recipient, and DeliverTo whether there was that one; see
// delivery.Post.
func (r *Runtime) Deliver(pid *actor.PID, message any) (taken bool) {
	return r.post.Deliver(pid, message)
}

// DeliverTo implements request.Sender.
func (r *Runtime) DeliverTo(process actor.Process, pid *actor.PID, message any) (taken bool) {
	return r.post.DeliverTo(process, pid, message)
}

// Now returns the time on the system's clock, which counts the time the machine sleeps.
func (r *Runtime) Now() machine.Instant { return r.clock.Now() }

// Log logs a line for an operator.
func (r *Runtime) Log(level slog.Level, message string, args ...any) {
	r.host.Log(level, message, args...)
}

// CallHost runs a function of the host program, such as one given as an option.
func (r *Runtime) CallHost(what string, f func()) { r.host.Call(what, f) }

// Supervisor returns a strategy that decides like one of proto.actor's; see host.Host.
func (r *Runtime) Supervisor(of actor.SupervisorStrategy) actor.SupervisorStrategy {
	return r.host.Supervisor(of)
}

// Stop stops an actor, if it is there.
func (r *Runtime) Stop(pid *actor.PID) { r.post.DeliverSystem(pid, &actor.Stop{}) }

// KeepsStacks reports whether holders are to keep their stacks.
func (r *Runtime) KeepsStacks() bool { return r.cfg.HoldStacks }

// Closed reports whether Close was called.
func (r *Runtime) Closed() bool { return r.closed.Load() }

// Forgotten reports whether permits of a semaphore may stay taken, and whether count-downs of a latch may be missing:
// Redis has not confirmed them, and nothing makes up for them.
func (r *Runtime) Forgotten() (permits, counts bool) {
	return r.kinds.Forgotten()
}
