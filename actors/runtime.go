package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// Runtime is what all actors of one system share, and what outlives each of them.
type Runtime struct {
	cfg   Config
	wire  wire.Options
	actor *actor.ActorSystem
	root  *actor.RootContext
	redis *redisio.Redis

	// id is the client part of every owner field in Redis.
	id string
	// present is the system's clock; endBeat ends its beat.
	present boottime.Clock
	endBeat func()
	// terms numbers the terms of all locks: no number is used twice.
	terms atomic.Uint64
	// tickets numbers the requests, and owners those who make them.
	tickets, owners atomic.Uint64

	table table
	// wholes are the lock actors, of this system and of others, whose locks have members here.
	wholes sync.Map
	// red are the systems that RedLock has made one of, this one first; nil before.
	red atomic.Pointer[[]*Runtime]
	// memory is what is known of the server as one of a RedLock's.
	memory memory
	// cleanups are the releases that this server has not confirmed to a RedLock or a MultiLock.
	cleanups cleanups
	host     *host
	metrics  *metrics
	// locks and rooms hold what events need for a moment.
	locks, rooms sync.Pool

	clocks [clocks]clock
	crew   crew
	// cells counts the lock actors that there have been.
	cells atomic.Uint64

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
	closed atomic.Bool
	// leftUntil is until when a key may be in Redis whose release has failed for good.
	leftUntil atomic.Int64
	left      chan struct{}
	ended     chan struct{}
	complete  bool
}

// Start brings up the guardian and the subscriber. The client stays the caller's.
func Start(system *actor.ActorSystem, client rueidis.Client, cfg Config) *Runtime {
	r := &Runtime{
		cfg:     cfg,
		actor:   system,
		root:    system.Root.Copy(),
		redis:   redisio.New(client, min(cfg.Renewal/50, 100*time.Millisecond)),
		id:      uuid.NewString(),
		present: boottime.For(system),
		host:    newHost(system, cfg.Logger),
		stopped: make(chan struct{}),
		left:    make(chan struct{}),
		ended:   make(chan struct{}),
	}
	r.metrics = newMetrics(cfg.Meter, r.host)
	r.wire = wire.Options{Client: r.id, Silence: cfg.Silence, Announcement: 2 * cfg.Poll}
	r.locks.New, r.rooms.New = func() any { return new(core.Lock) }, func() any { return new(room) }
	for i := range r.clocks {
		r.clocks[i].rt, r.clocks[i].sooner = r, make(chan struct{}, 1)
	}
	r.endBeat = r.present.Beat(r.beat)
	r.channels, r.cleanups.rt = newChannels(r), r
	r.injected = faultinject.Of(system)
	r.startGuardian()
	return r
}

// Guardian is the address for the requests of package messages.
func (r *Runtime) Guardian() *actor.PID { return r.guardian }

// ID is the client part of this system's owner fields, a UUID.
func (r *Runtime) ID() string { return r.id }

// maxLenders bounds how many callers run their own commands: with more of them, the
// batches of redisio's workers are cheaper.
const maxLenders = 16

// borrow reports whether a caller may run a command; it must count itself out afterwards.
func (r *Runtime) borrow() bool {
	if r.lenders.Add(1) <= maxLenders {
		return true
	}
	r.lenders.Add(-1)
	return false
}

// Now is the present on the system's clock, which goes on while the machine sleeps.
func (r *Runtime) Now() core.Instant { return r.present.Now() }

// callBy is when a call to Redis must be answered, for the timers of package time.
func (r *Runtime) callBy(deadline core.Instant) time.Time {
	return time.Now().Add(deadline - r.Now())
}
