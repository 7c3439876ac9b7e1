package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/alarm"
	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
)

// Start starts the guardian and the subscriber. The caller closes the client.
func Start(system *actor.ActorSystem, client rueidis.Client, cfg Config) *Runtime {
	r := &Runtime{
		cfg:     cfg,
		system:  system,
		root:    system.Root.Copy(),
		redis:   redisclient.New(client, min(cfg.Renewal/50, 100*time.Millisecond)),
		id:      uuid.NewString(),
		clock:   boottime.For(system),
		host:    host.New(system, cfg.Logger),
		stopped: make(chan struct{}),
		left:    make(chan struct{}),
		ended:   make(chan struct{}),
	}
	r.effects.New = func() any { return new(machine.Effect) }
	r.post = delivery.Post{System: system, Host: r.host, Late: r.settleLate}
	if cfg.Sharded {
		r.redis.Shard()
	}
	r.observer = observe.New(observe.Config{
		Host: r.host, Meter: cfg.Meter, Tracer: cfg.Tracer, LongWait: cfg.LongWait, LongHold: cfg.LongHold, Cluster: r.redis.Cluster(),
		Now: r.Now, Load: r.load,
	})
	r.redis.Watch(r.watch())
	r.redis.AwaitReplicas(cfg.Replicas, cfg.ReplicaTimeout)
	r.rules = request.Rules{
		System: r, ID: r.id, KeyPrefix: cfg.KeyPrefix, Cluster: r.redis.Cluster(), Sharded: r.redis.Sharded(), Config: &r.cfg.Config,
		RedLock: r.redSystems, Actors: system,
	}
	r.clocks = alarm.New(r.Now, r.redis.InRound)
	r.endBeat = r.clock.Beat(r.clocks.Recheck)
	r.server = backend.NewServer(r, r.redis, backend.Config{
		User: r, KeyPrefix: cfg.KeyPrefix, TokenCounter: cfg.TokenCounter, CallTimeout: cfg.CallTimeout, Quarantine: cfg.Watchdog,
		KeepTokens: cfg.Idle,
	})
	r.notes.Changed = r.server.RecordChanged
	r.kinds = kinds.New(kinds.Settings{
		ID: r.id, Server: r.server, Host: r.host, Config: &r.cfg.Config, Now: r.Now, NextTerm: func() uint64 { return r.terms.Add(1) },
		Options: kinds.LockOptions{
			Client: r.id, WaiterTimeout: cfg.WaiterTimeout,
			WaitQueue: kinds.WaitQueue{OpenTime: cfg.OpenTime(), OpenEvery: cfg.ForcedYield, OneServer: !r.redis.Cluster()},
		},
	})
	r.shells = shell.NewPool(r.stray, func(surplus *shell.Shell) { r.toGuardian(&retired{surplus.PID}) })
	r.subscriber = newSubscriber(r)
	r.injected = faultinject.Guarded(system, r.host.Recover)
	r.register()
	r.stopWatchingMaster = r.redis.OnMove(r.suspectAll)
	r.startGuardian()
	return r
}

// watch returns the functions that notify the observer of calls to Redis.
func (r *Runtime) watch() (w redisclient.Watch) {
	o := r.observer
	w.Reached = func(script string, err *redisclient.Error) {
		if end := endOf(err); err == nil {
			o.Reached(script, end, nil)
		} else {
			o.Reached(script, end, err)
		}
	}
	if !o.Measures() {
		return w
	}
	w.Called = func(script string, took time.Duration, err *redisclient.Error) { o.Called(script, took, endOf(err)) }
	w.Renewed = func(result string, err *redisclient.Error) { o.Renewed(result, endOf(err)) }
	w.Reconnected = o.Reconnected
	return w
}

func endOf(err *redisclient.Error) observe.CallEnd {
	switch {
	case err == nil:
		return observe.Served
	case err.Transient:
		return observe.Failed
	}
	return observe.Rejected
}

// register writes the record of the system, if it has a record.
func (r *Runtime) register() {
	if r.cfg.Record == nil {
		return
	}
	own := *r.cfg.Record
	own.Client = r.id
	r.cfg.Record = &own
	r.server.Register(own, r.cfg.Watchdog, r.addWork, func(err error) {
		r.host.Warn("Redis refuses the record of this system: no program can see which process holds its locks", "error", err)
	})
}

// Close refuses new and waiting requests, takes the locks from their holders, releases them,
// stops every actor, and ends every goroutine. If done is closed first, locks whose release Redis
// has not confirmed are left to expire, and goroutines that wait for Redis end when it answers or
// their calls time out. A later Close waits for the first, or for done.
//
// complete is false if a release was not confirmed. It is also false if the guardian was stopped
// by others: all requests are then answered and all holders notified, but no release was awaited.
func (r *Runtime) Close(done <-chan struct{}) (complete bool) {
	first := r.closed.CompareAndSwap(false, true)
	if first {
		go r.end(done)
	}
	select {
	case <-r.ended:
		return r.released()
	case <-done:
	}
	if first {
		<-r.left // all callers are answered and all holders notified, without Redis
	}
	select {
	case <-r.left:
		return r.released()
	default:
		return false
	}
}

// Ended is closed when the actors and goroutines have ended, after a Close.
func (r *Runtime) Ended() <-chan struct{} { return r.ended }

// released reports whether nothing is left in Redis that has to expire, as far as the system knows.
func (r *Runtime) released() bool {
	return r.complete && r.server.Released()
}

func (r *Runtime) end(done <-chan struct{}) {
	defer close(r.ended)
	r.watches.Close()
	all := make(chan struct{})
	r.toGuardian(&closeAll{done: all})
	select {
	case <-all:
		r.complete = true
	case <-r.stopped:
	case <-done:
		r.toGuardian(abandonAll{})
		select {
		case <-all:
		case <-r.stopped:
		}
	}
	r.observer.Closed()
	r.redis.AwaitReplies(done) // a late answer may need a further command
	r.server.Close(done)
	close(r.left)
	r.server.Unregister(r.released(), done)
	r.endBeat()
	r.clocks.Close()
	r.subscriber.close()
	alive, _ := r.post.System.ProcessRegistry.Get(r.guardian)
	if alive == r.guardianProcess && r.post.DeliverSystem(r.guardian, &actor.Stop{}) {
		<-r.stopped // the subscriber has stopped, too
	}
	r.stopWatchingMaster()
	r.redis.Close()
	r.goroutines.Close()
	r.host.Flush()
}
