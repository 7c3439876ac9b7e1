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
	// TokenCounter is the TokenCounter of backend.Config.
	TokenCounter string
	// Sharded says that the server is a cluster, and that locks use sharded pub/sub.
	Sharded bool
	// WaiterTimeout is the time for which a fair lock's waiter keeps its entry after the last sign of life of its
	// process.
	WaiterTimeout time.Duration
	// Replicas is the number of replicas that must have a lease before it is trusted.
	Replicas int
	// ReplicaTimeout is the time that the replicas have to confirm the lease.
	ReplicaTimeout time.Duration
	// Record is the record of the process in Redis; nil if there is none. The system fills in the Client and the times.
	Record *records.Record
	// Idle is the time for which an unused lock actor stays alive.
	Idle time.Duration
	// Middleware handles every request by message before its lock does; see package internal/middleware.
	Middleware []actor.ReceiverMiddleware
	Logger     *slog.Logger
	// LongWait is the time after which a wait is logged; 0: never.
	LongWait time.Duration
	// LongHold is the time after which a hold is logged; 0: never.
	LongHold time.Duration
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
	kinds *kinds.Kinds
	// rules check the requests.
	rules  request.Rules
	system *actor.ActorSystem
	root   *actor.RootContext
	redis  *redisclient.Redis
	// stopWatchingMaster unregisters suspectAll.
	stopWatchingMaster func()
	// server is the Redis of redis, as locks use it.
	server *backend.Server

	// id is the client part of every owner field in Redis.
	id    string
	clock boottime.Clock
	// endBeat ends the beat of clock.
	endBeat func()
	locks   kinds.Directory[*lockActor]
	// composites are the lock actors, of this system and of others, whose locks have members here.
	composites sync.Map
	// red are the systems of the RedLock of which this system is the first; nil if there is none.
	red      atomic.Pointer[[]*Runtime]
	host     *host.Host
	post     delivery.Post
	observer *observe.Observer
	// notes are the notes of the holds.
	notes records.Notes
	// watches are the locks that are watched.
	watches watch.Hub

	// effects pools the memory for effects while they are performed.
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
	// closed is set when Close begins.
	closed atomic.Bool
	// left is closed when the lock actors have gone.
	left chan struct{}
	// complete reports whether every lock was released when left was closed.
	complete bool
	// ended is closed when the goroutines have gone too.
	ended chan struct{}

	// Every request changes these counters. They must not share a line of the processor's cache with fields that every
	// request reads.
	_ cpu.CacheLinePad
	// terms numbers the terms of all locks: no number is used twice.
	terms atomic.Uint64
	// requests numbers the requests.
	requests atomic.Uint64
	// owners numbers the owners that make requests.
	owners atomic.Uint64
	_      cpu.CacheLinePad
}

// Guardian returns the address for the requests of package messages.
func (r *Runtime) Guardian() *actor.PID { return r.guardian }

// toGuardian sends a message to the guardian, and reports whether the guardian is there. When it has stopped, the
// guardian of the next System has its name.
func (r *Runtime) toGuardian(m any) (taken bool) {
	return r.post.DeliverTo(r.guardianProcess, r.guardian, m)
}

// Rules implements request.Home.
func (r *Runtime) Rules() *request.Rules { return &r.rules }

// Watches returns the locks that are watched.
func (r *Runtime) Watches() *watch.Hub { return &r.watches }

// Foreign reports whether a PID belongs to a process on another node.
func (r *Runtime) Foreign(pid *actor.PID) bool { return r.rules.Foreign(pid) }

// ID returns the client part of this system's owner fields, a UUID.
func (r *Runtime) ID() string { return r.id }

// Deliver sends a message and reports whether there was a recipient; see delivery.Post.
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

// Supervisor returns a strategy that decides like of; see host.Host.
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
// Redis has not confirmed a release or a count-down, and nothing makes up for it.
func (r *Runtime) Forgotten() (permits, counts bool) {
	return r.kinds.Forgotten()
}
