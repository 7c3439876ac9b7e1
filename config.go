package lockkeeper

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// Config configures a System. The zero value of a field selects its default. The longest
// Watchdog is 100 years, the longest WaiterTimeout 30 years; other times are at most 10 years.
type Config struct {
	// Watchdog is the TTL of locks without a fixed lease, and so the longest time that a
	// crashed process can keep others out. Default 30 s, as in Redisson
	// (lockWatchdogTimeout); at least 100 ms.
	Watchdog time.Duration
	// Renewal is how often the watchdog renews such a lock. Default: a third of Watchdog; at
	// most half of it, so that a single failed renewal does not lose the lock.
	Renewal time.Duration
	// HandOffLimit is how long this process may hand a lock off to its own waiters before it
	// yields to other processes. A longer limit means more grants per second, and longer
	// waits for other processes: each of them waits for a turn of every other. When the lock is
	// left to clients of another kind, such as Redisson, nobody else takes it for twice as long.
	// Default 5 ms; at most a third of Watchdog.
	HandOffLimit time.Duration
	// Poll is the longest time between two tries of a process that waits; half of Watchdog if
	// that is shorter, except for fair locks. The tries make up for lost messages, and keep the
	// process's place in the line. Without them a place is kept for twice as long. That is
	// also the first TTL of a lock that is transferred to the process, and so the longest time
	// for which a process that dies while it waits can keep others out. Default 1 s; at least
	// 10 ms.
	Poll time.Duration
	// CallTimeout is how long Redis may take to answer before a call is repeated or given up;
	// a quarter of the lease if that is shorter. Default 2 s; at least 10 ms.
	CallTimeout time.Duration
	// Replicas is how many replicas of Redis must have a lease, and the fencing tokens drawn with
	// it, before it is trusted: at a grant, a re-entry and a renewal. It is for a master whose
	// replica takes over: without it the replica may not know the last grants. A grant that is not
	// confirmed within ReplicaTimeout is taken back: a try is refused with ErrNotReplicated, and
	// who waits longer tries again. A hold whose renewals are not confirmed is lost at its end.
	// All processes must have the same number, less than that of the replicas if the locks are to
	// be granted while one is missing, as after a failover; see docs/guarantees.md for that choice.
	// It costs one round trip to the replicas for each grant, but none for a local hand-off. Each command
	// about a semaphore or a latch that asks Redis, refused tries and releases too, costs one as well;
	// it counts when it is confirmed, and is repeated until then.
	// A RedLock does without it. Default 0: no replica is waited for.
	Replicas int
	// ReplicaTimeout is how long the replicas may take; three sixteenths of the lease if that is shorter,
	// so a lease is never granted that is less than six times as long as they take. Default: half of
	// CallTimeout, which is also the most; at least 1 ms.
	ReplicaTimeout time.Duration
	// WaiterTimeout is how long a waiter for a fair lock keeps its place in the queue in Redis
	// after the last sign of life of its process, and so the longest time that a dead process
	// delays those behind it. Default 5 s (in Redisson 5 min); at least three times Poll.
	WaiterTimeout time.Duration
	// ShardedPubSub says when the locks in a Redis Cluster use sharded pub/sub. All processes that use
	// the same locks must do the same. Default ShardedAuto, as in Redisson (shardedSubscriptionMode).
	ShardedPubSub ShardedPubSub
	// Idle is how long an unused lock actor stays alive. Default 1 min; at least 10 ms.
	Idle time.Duration
	// QueueLimit is how many requests may wait for one lock in this process. Further requests
	// are refused with ErrQueueFull. Default 10,000.
	QueueLimit int
	// KeyPrefix and a lock's name make its key in Redis, like Redisson's NameMapper. Default:
	// empty.
	KeyPrefix string
	// Application names the program in the record that the System keeps in Redis, by which
	// others see which process holds a lock; see Process. At most 256 bytes of UTF-8. Default:
	// the name of the program's file. The record also has the host's name and the process id.
	Application string
	// Anonymous keeps no record. It saves a script every 5 s.
	Anonymous bool
	// Logger receives what needs an operator's attention. Default: the logger of the actor
	// system. Its handler runs on a goroutine of its own and may block or panic. Up to 1024
	// lines wait for it; further lines are dropped, and a line reports how many. Close waits
	// for it for at most a second.
	Logger *slog.Logger
	// LongWait has a line logged when a request has waited for so long, with who holds the lock, and
	// LongHold when a lock has been held for so long. There is another line whenever it has lasted
	// twice as long. Waits and holds of Elect, Lead and LeaderProps are not logged. Default: neither is logged;
	// else at least 10 ms.
	LongWait, LongHold time.Duration
	// HoldStacks keeps the stack of each goroutine that takes a lock, for the line of LongHold. It
	// costs a few microseconds and 256 bytes a hold.
	HoldStacks bool
	// Meter receives the metrics, which docs/operate.md lists. Default: nothing is measured. Its
	// instruments are made by New, and used on a goroutine of their own, where they may block or
	// panic; what is counted meanwhile is added later, except for values of histograms beyond 16,384.
	Meter metric.Meter
	// Tracer makes spans of acquires, holds and releases, with those of the callers as parents;
	// docs/operate.md lists them. Default: no spans. It runs on a goroutine of its own and may
	// block or panic; up to 1024 spans wait for it, and further ones are dropped.
	Tracer trace.Tracer
	// Middleware handles the requests by message before their lock does, outermost first: for
	// tracing, or to refuse requests. It sees no requests of goroutines, no timers and no
	// replies of Redis. While it blocks, only further messages for the same lock wait. If it
	// panics, the request is refused with REASON_CRASHED. It must answer a request that it
	// does not pass on.
	Middleware []actor.ReceiverMiddleware
}

// longest bounds the times that are added to each other, and to the clock: ten years.
const longest = 10 * 365 * 24 * time.Hour

// forcedYield is how often a lock is left to clients outside the line of which none is seen: some
// wait without subscribing. In a cluster without sharded pub/sub it is every blindHandOffs hand-off
// limits: most of them listen on another server.
const (
	forcedYield   = 2 * time.Second
	blindHandOffs = 20
)

func or[T comparable](value, byDefault T) T {
	var zero T
	if value == zero {
		return byDefault
	}
	return value
}

// withDefaults fills in the fields that are zero.
func (c Config) withDefaults(system *actor.ActorSystem) Config {
	c.Watchdog = or(c.Watchdog, 30*time.Second)
	c.Renewal = or(c.Renewal, c.Watchdog/3)
	c.HandOffLimit = or(c.HandOffLimit, 5*time.Millisecond)
	c.Poll = or(c.Poll, time.Second)
	c.CallTimeout = or(c.CallTimeout, 2*time.Second)
	c.ReplicaTimeout = or(c.ReplicaTimeout, c.CallTimeout/2)
	c.WaiterTimeout = or(c.WaiterTimeout, max(5*time.Second, 3*min(c.Poll, longest)))
	c.Idle = or(c.Idle, time.Minute)
	c.QueueLimit = or(c.QueueLimit, 10_000)
	c.Application = or(c.Application, programName())
	c.Logger = or(c.Logger, system.Logger())
	return c
}

// validate reports every setting that is not valid, with what is allowed.
func (c Config) validate() error {
	var wrong []error
	check := func(ok bool, format string, values ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, values...))
		}
	}
	check(c.Watchdog >= 100*time.Millisecond && c.Watchdog <= actors.MaxLease,
		"Watchdog is %v, and must be between 100ms and %v", c.Watchdog, actors.MaxLease)
	check(c.Renewal > 0 && c.Renewal <= c.Watchdog/2,
		"Renewal is %v, and must be more than 0 and at most half of Watchdog, which is %v", c.Renewal, c.Watchdog)
	check(c.HandOffLimit > 0 && c.HandOffLimit <= c.Watchdog/3,
		"HandOffLimit is %v, and must be more than 0 and at most a third of Watchdog, which is %v", c.HandOffLimit, c.Watchdog)
	between := func(name string, d time.Duration) {
		check(d >= 10*time.Millisecond && d <= longest, "%s is %v, and must be between 10ms and %v", name, d, longest)
	}
	between("Poll", c.Poll)
	between("CallTimeout", c.CallTimeout)
	check(c.Replicas >= 0, "Replicas is %d, and must not be negative", c.Replicas)
	check(c.ReplicaTimeout >= time.Millisecond && c.ReplicaTimeout <= c.CallTimeout/2,
		"ReplicaTimeout is %v, and must be between 1ms and half of CallTimeout, which is %v", c.ReplicaTimeout, c.CallTimeout)
	check(c.WaiterTimeout/3 >= c.Poll && c.WaiterTimeout <= 3*longest,
		"WaiterTimeout is %v, and must be at least three times Poll, which is %v, and at most %v", c.WaiterTimeout, c.Poll, 3*longest)
	between("Idle", c.Idle)
	long := func(name string, d time.Duration) {
		if d != 0 {
			between(name, d)
		}
	}
	long("LongWait", c.LongWait)
	long("LongHold", c.LongHold)
	check(c.ShardedPubSub <= ShardedOff, "ShardedPubSub is %d, and must be ShardedAuto, ShardedOn or ShardedOff", c.ShardedPubSub)
	check(c.QueueLimit > 0, "QueueLimit is %d, and must be more than 0", c.QueueLimit)
	check(utf8.ValidString(c.KeyPrefix), "KeyPrefix is %q, and must be valid UTF-8", c.KeyPrefix)
	check(len(c.KeyPrefix) < actors.MaxNameLength, "KeyPrefix has %d bytes, and must have less than %d", len(c.KeyPrefix), actors.MaxNameLength)
	for i, one := range c.Middleware {
		check(one != nil, "Middleware[%d] is nil", i)
	}
	check(len(c.Application) <= 256 && utf8.ValidString(c.Application), "Application is %q, and must be at most 256 bytes of UTF-8", c.Application)
	if len(wrong) > 0 {
		return fmt.Errorf("lockkeeper: config: %w: %w", ErrInvalid, errors.Join(wrong...))
	}
	return nil
}

// actors are the settings for a server that is, or is not, a cluster with sharded pub/sub, or one that
// does not see all who listen.
func (c Config) actors(sharded, blind bool) actors.Config {
	yield := forcedYield
	if blind {
		yield = min(yield, blindHandOffs*c.HandOffLimit)
	}
	return actors.Config{
		Config: lock.Config{
			Watchdog: c.Watchdog, Renewal: c.Renewal, HandOffLimit: c.HandOffLimit, ForcedYield: yield, Poll: c.Poll,
			CallTimeout: c.CallTimeout, QueueLimit: c.QueueLimit, Seed: rand.Uint64(), Replicated: c.Replicas > 0,
		},
		KeyPrefix: c.KeyPrefix, Sharded: sharded, WaiterTimeout: c.WaiterTimeout, Idle: c.Idle, Middleware: c.Middleware, Logger: c.Logger, Meter: c.Meter, Tracer: c.Tracer,
		Record: c.record(), LongWait: c.LongWait, LongHold: c.LongHold, HoldStacks: c.HoldStacks,
		Replicas: c.Replicas, ReplicaTimeout: c.ReplicaTimeout,
	}
}
