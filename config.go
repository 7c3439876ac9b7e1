package lockkeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/printable"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/pubsub"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Config configures a System. The zero value of a field selects its default. The longest Watchdog is 100 years, the
// longest WaiterTimeout 30 years; times that are not bounded by another are at most 10 years.
type Config struct {
	// Watchdog is the TTL of locks without a fixed lease, and so the longest time for which a
	// crashed process can block others. Default 30 s, as in Redisson (lockWatchdogTimeout); at
	// least 100 ms.
	Watchdog time.Duration
	// Renewal is the time between two renewals of such a lock by the watchdog. Default: a third of
	// Watchdog; at most half of it, so that a single failed renewal does not lose the lock.
	Renewal time.Duration
	// HandOffLimit is the time for which this process may hand a lock off to its own waiters before it yields to other
	// processes. A longer limit gives more grants per second, and longer waits for other processes, since each process
	// waits for a turn of every other process. When the lock is left to foreign clients, such as Redisson, no System
	// that waits acquires it for up to twice this time. Default 5 ms; at most a third of Watchdog.
	HandOffLimit time.Duration
	// Linger is the time for which a plain or a fenced lock without a fixed lease may linger in this process without a
	// holder, from the moment it was taken from Redis. Until then the process acquires and releases it again without
	// Redis. Use Linger if one process acquires the lock again and again, above all far from Redis. Another process
	// that waits for the lock, or tries once, asks this process for it, and this process releases the lock at once; the
	// single try itself is refused. Clients that do not ask, such as Redisson or a RedLock, get the lock after this
	// time at the latest. If the process dies, the lock is free when its lease ends. See docs/using.md. Default 0: a
	// lock is released when its holder releases it; at most a third of Watchdog. In a cluster New fails with
	// ErrInvalid.
	Linger time.Duration
	// Poll is the longest time between two tries of a waiting process. Half of Watchdog takes its place if that is
	// shorter, but not for fair locks and RedLocks. The tries make up for lost messages and keep the process's entry in
	// the wait queue, which lasts for twice this time without a try. Twice this time is also the first TTL of a lock
	// that is transferred to the process, and so the longest time for which a process that dies while it waits can
	// block others. Default 1 s; at least 10 ms. Waiters in the wait queue try every 12 h at least.
	Poll time.Duration
	// CallTimeout is the time that Redis has to answer before a call is repeated or given up. A renewal has at most a
	// quarter of what is left of the lease. Default 2 s; at least 10 ms.
	CallTimeout time.Duration
	// Replicas is the number of replicas of Redis that must have received a lease, and the fencing tokens drawn with
	// it, before the lease is trusted: at a grant, a re-entry and a renewal. Set Replicas if a replica may be promoted to
	// master, since it may not know the latest grants. A grant that is not confirmed within ReplicaTimeout is undone: a
	// request that does not wait is refused with ErrNotReplicated, a waiting request tries again. A hold whose renewals
	// are not confirmed is lost when its lease ends.
	//
	// All processes must use the same number. If locks must be granted while a replica is missing, as after a failover,
	// the number must be less than the number of replicas; see docs/guarantees.md. Each grant costs one round trip to
	// the replicas, a local hand-off costs none. Each command to Redis about a Semaphore or a Latch costs one, too, even
	// a refused try or a release, but not Available and Count. Such a command takes effect when the replicas have
	// confirmed it, and is repeated until then. A RedLock does not use Replicas. Default 0: no replica is waited for.
	Replicas int
	// ReplicaTimeout is the time that the replicas have to confirm, at most three quarters of the time that Redis has
	// to answer. So leases that are short compared with the lag of the replicas are not renewed. Default and maximum:
	// half of CallTimeout; at least 1 ms.
	ReplicaTimeout time.Duration
	// WaiterTimeout is the time for which a waiter for a fair lock keeps its queue entry in Redis after the last sign
	// of life of its process, and so the longest time for which a dead process delays later waiters. Default 5 s (in
	// Redisson 5 min); at least three times Poll, which is the default if Poll is long.
	WaiterTimeout time.Duration
	// ShardedPubSub selects when locks in a Redis Cluster use sharded pub/sub. All processes that
	// use the same locks must use the same mode. Default ShardedAuto, as in Redisson
	// (shardedSubscriptionMode).
	ShardedPubSub ShardedPubSub
	// Idle is the time for which an unused lock actor stays alive; less if there are more than 1,024 lock actors.
	// Default 1 min; at least 10 ms.
	Idle time.Duration
	// QueueLimit is the number of requests that may wait for one lock in this process. Further requests
	// are refused with ErrQueueFull. Default 10,000.
	QueueLimit int
	// KeyPrefix is put before a lock's name to form its key in Redis, like Redisson's NameMapper.
	// Default: empty.
	KeyPrefix string
	// OneTokenCounter makes all fenced locks and singletons of this KeyPrefix draw their tokens from one counter. By
	// default each name has a counter of its own, which stays in Redis for ever. Set OneTokenCounter if the program
	// uses many names only once, such as one for each order. All processes that use fenced locks or singletons of this
	// KeyPrefix must have the same setting, and none may use Redisson's RFencedLock. docs/kinds.md says how to turn it
	// on for names that have had tokens. In a cluster New fails with ErrInvalid.
	OneTokenCounter bool
	// Application names the program in the record that the System keeps in Redis, so that other
	// processes can report which process holds a lock; see Process. At most 256 bytes of UTF-8.
	// Default: the name of the program's file. The record also has the host name and the process id.
	Application string
	// Anonymous makes the System keep no record, which saves one script every 5 s; with a Watchdog above 30 s, one
	// every sixth of Watchdog, but at least one a minute.
	Anonymous bool
	// Logger receives what needs an operator's attention. Default: the logger of the actor system, and for Open without
	// WithActorSystem none. The logger's handler runs on a separate goroutine and may block or panic. Up to 1024
	// records wait for it; further ones are dropped, and a record reports how many. Close waits for the handler for at
	// most a second, and for a System of Open two.
	Logger *slog.Logger
	// LongWait is the time after which a request that waits causes a warning, which names the current holder; another
	// one follows each time the duration has doubled. Only the first request that waits for a lock causes warnings.
	// Waits of Elect, Lead and LeaderProps, and for a Semaphore or a Latch, are not logged. Default 0: no warning;
	// otherwise at least 10 ms.
	LongWait time.Duration
	// LongHold is the time after which a lock that is held causes a warning; another one follows each time the duration
	// has doubled. Holds of Elect, Lead and LeaderProps are not logged. Default 0: no warning; otherwise at least 10 ms.
	LongHold time.Duration
	// HoldStacks records the stack of each goroutine that acquires a lock, for the warning of LongHold. Each hold costs
	// a few microseconds and 256 bytes more.
	HoldStacks bool
	// Meter receives the metrics listed in docs/operate.md. Default: nothing is measured. New creates its instruments; a
	// separate goroutine uses them, and they may block or panic. Meanwhile counts accumulate, and up to 16,384 histogram
	// values are kept.
	Meter metric.Meter
	// Tracer creates spans, as children of the callers' spans, with the lock's name (lockkeeper.lock) and lockkeeper.kind.
	// A span of an error has the status Error. The spans are
	//
	//   - lockkeeper.acquire, from the request to its answer, with the events queued (behind others), tried (a script was
	//     sent), held (by lockkeeper.owner), failed (with lockkeeper.error), subscribed, transferred, and last granted
	//     (with lockkeeper.way) or refused (with lockkeeper.reason). Requests that wait in one process share their tries,
	//     and so the events from tried on: the last 32;
	//   - lockkeeper.hold, from the grant to the end, with the events at_risk and lost (with lockkeeper.reason);
	//   - lockkeeper.release, from the request to its answer, with the event released or refused (with lockkeeper.reason).
	//
	// Default: no spans. The tracer runs on a separate goroutine and may block or panic; up to 1024 spans wait for it,
	// and further ones are dropped.
	Tracer trace.Tracer
	// Middleware handles the requests by message before their lock does, outermost first: for tracing, or to refuse
	// requests. Middleware does not see requests of goroutines, timers or replies of Redis. While it blocks, only
	// further messages for the same lock wait. If it panics, the request is refused with REASON_CRASHED; but a request
	// that releases or withdraws something passes. Middleware must answer a request that it does not pass on.
	Middleware []actor.ReceiverMiddleware
}

// longest bounds the times that are added to each other and to the clock.
const longest = 10 * 365 * 24 * time.Hour

// forcedYield is the time between two yields of a lock to foreign clients when none is seen to wait, because some wait
// without subscribing. In a cluster without sharded pub/sub, most foreign clients listen on another server: there the
// lock is left to foreign clients every forcedYieldHandOffs hand-off limits instead.
const (
	forcedYield         = 2 * time.Second
	forcedYieldHandOffs = 20
)

func orDefault[T comparable](value, byDefault T) T {
	var zero T
	if value == zero {
		return byDefault
	}
	return value
}

// withDefaults returns the Config with defaults in the fields that are zero.
func (c Config) withDefaults(system *actor.ActorSystem) Config {
	c.Watchdog = orDefault(c.Watchdog, 30*time.Second)
	c.Renewal = orDefault(c.Renewal, c.Watchdog/3)
	c.HandOffLimit = orDefault(c.HandOffLimit, 5*time.Millisecond)
	c.Poll = orDefault(c.Poll, time.Second)
	c.CallTimeout = orDefault(c.CallTimeout, 2*time.Second)
	c.ReplicaTimeout = orDefault(c.ReplicaTimeout, c.CallTimeout/2)
	c.WaiterTimeout = orDefault(c.WaiterTimeout, max(5*time.Second, 3*min(c.Poll, longest)))
	c.Idle = orDefault(c.Idle, time.Minute)
	c.QueueLimit = orDefault(c.QueueLimit, 10_000)
	c.Application = orDefault(c.Application, programName())
	c.Logger = orDefault(c.Logger, system.Logger())
	return c
}

// validate returns an error that names every invalid setting and what is allowed.
func (c Config) validate() error {
	var wrong []error
	check := func(ok bool, format string, values ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, values...))
		}
	}
	check(c.Watchdog >= 100*time.Millisecond && c.Watchdog <= request.MaxLease,
		"Watchdog is %v, and must be between 100ms and %v", c.Watchdog, request.MaxLease)
	check(c.Renewal > 0 && c.Renewal <= c.Watchdog/2,
		"Renewal is %v, and must be more than 0 and at most half of Watchdog, which is %v", c.Renewal, c.Watchdog)
	check(c.HandOffLimit > 0 && c.HandOffLimit <= c.Watchdog/3,
		"HandOffLimit is %v, and must be more than 0 and at most a third of Watchdog, which is %v", c.HandOffLimit, c.Watchdog)
	check(c.Linger >= 0 && c.Linger <= c.Watchdog/3,
		"Linger is %v, and must be at least 0 and at most a third of Watchdog, which is %v", c.Linger, c.Watchdog)
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
	check(utf8.ValidString(c.KeyPrefix), "KeyPrefix is %s, and must be valid UTF-8", printable.Quote(c.KeyPrefix))
	check(len(c.KeyPrefix) < request.MaxNameLength, "KeyPrefix has %d bytes, and must have fewer than %d",
		len(c.KeyPrefix), request.MaxNameLength)
	for i, one := range c.Middleware {
		check(one != nil, "Middleware[%d] is nil", i)
	}
	check(len(c.Application) <= 256 && utf8.ValidString(c.Application),
		"Application is %s, and must be at most 256 bytes of UTF-8", printable.Quote(c.Application))
	if len(wrong) > 0 {
		return fmt.Errorf("lockkeeper: config: %w: %w", ErrInvalid, errors.Join(wrong...))
	}
	return nil
}

// tokenCounter returns the key of the counter of all tokens; "" if each fenced lock has a counter of its own.
func (c Config) tokenCounter() string {
	if !c.OneTokenCounter {
		return ""
	}
	return keyspace.Token(c.KeyPrefix + sharedTokens)
}

// sharedTokens is the name of the counter of OneTokenCounter, behind the key prefix.
const sharedTokens = "lockkeeper_tokens"

// actors returns the settings of the actors. sharded: the server is a cluster with sharded pub/sub. blind: the server
// is a cluster without sharded pub/sub, where a server sees only its own subscribers.
func (c Config) actors(sharded, blind bool) actors.Config {
	yield := forcedYield
	if blind {
		yield = min(yield, forcedYieldHandOffs*c.HandOffLimit)
	}
	return actors.Config{
		Config: machine.Config{
			Watchdog: c.Watchdog, Renewal: c.Renewal, HandOffLimit: c.HandOffLimit, ForcedYield: yield, Linger: c.Linger, Poll: c.Poll,
			CallTimeout: c.CallTimeout, QueueLimit: c.QueueLimit, Seed: rand.Uint64(), Replicated: c.Replicas > 0,
		},
		KeyPrefix: c.KeyPrefix, TokenCounter: c.tokenCounter(), Sharded: sharded, WaiterTimeout: c.WaiterTimeout, Idle: c.Idle,
		Middleware: c.Middleware, Logger: c.Logger, Meter: c.Meter, Tracer: c.Tracer, Record: c.record(),
		LongWait: c.LongWait, LongHold: c.LongHold, HoldStacks: c.HoldStacks,
		Replicas: c.Replicas, ReplicaTimeout: c.ReplicaTimeout,
	}
}

// ShardedPubSub selects when locks in a Redis Cluster use sharded pub/sub (SSUBSCRIBE and SPUBLISH instead of SUBSCRIBE
// and PUBLISH). Clients with different modes do not receive each other's messages. A waiter then gets the lock only
// when it tries again, and Redisson when the holder's TTL has ended. Redisson's shardedSubscriptionMode has the same
// modes. They have no effect outside a cluster.
type ShardedPubSub uint8

// The modes.
const (
	// ShardedAuto: if a server of the cluster supports it, as Redis 7 and Valkey do.
	ShardedAuto ShardedPubSub = iota
	// ShardedOn: always. The servers must support it.
	ShardedOn
	// ShardedOff: never, as Redisson before 3.22.
	ShardedOff
)

// shards reports whether the client's server is a cluster whose locks use sharded pub/sub.
func (c Config) shards(client rueidis.Client) (bool, error) {
	if client.Mode() != rueidis.ClientModeCluster || c.ShardedPubSub != ShardedAuto {
		return client.Mode() == rueidis.ClientModeCluster && c.ShardedPubSub == ShardedOn, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.CallTimeout)
	defer cancel()
	has, err := pubsub.HasShards(ctx, client)
	if err == nil {
		return has, nil
	}
	kind := ErrRejected
	if refusal := (*redisio.Error)(nil); errors.As(err, &refusal) && refusal.Transient {
		kind = ErrUnavailable
	}
	return false, fmt.Errorf("lockkeeper: new: %w: cannot find out whether the cluster has sharded pub/sub; "+
		"Config.ShardedPubSub can set it: %w", kind, err)
}
