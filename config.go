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

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/core"
)

// Config tunes a System. The zero value of every field is its default. Watchdog may be
// 100 years at most, WaiterTimeout 30, the other times 10.
type Config struct {
	// Watchdog is the TTL of locks that are held without a lease of their own, and
	// so the longest that a crashed process can keep others out. Default 30 s, as in
	// Redisson (lockWatchdogTimeout); at least 100 ms.
	Watchdog time.Duration
	// Renewal is how often the watchdog renews such a lock. Default: a third of
	// Watchdog; at most half of it, so that one failed renewal is not the end.
	Renewal time.Duration
	// Tenure is how long this process may pass a lock on among its own waiters
	// before it lets other processes have it. A longer tenure means more grants,
	// and longer waits for the others. Default 5 ms; at most a third of Watchdog.
	Tenure time.Duration
	// Poll is the longest that a waiter goes without looking whether the lock is
	// free. It matters only when an unlock message got lost. Default 1 s; at least 10 ms.
	Poll time.Duration
	// CallTimeout is how long Redis may take to answer before a call is repeated, or
	// given up; a quarter of the lease if that is less. Default 2 s; at least 10 ms.
	CallTimeout time.Duration
	// WaiterTimeout is how long a waiter for a fair lock keeps its place in Redis's queue
	// when its process is not heard of any more, and so the longest that a dead process
	// holds up those behind it. Default 5 s, where Redisson takes five minutes; at least
	// three times Poll.
	WaiterTimeout time.Duration
	// Idle is how long the actor of a lock that nobody uses stays. Default 1 min; at least 10 ms.
	Idle time.Duration
	// QueueLimit is how many requests may wait for one lock in this process. More
	// are refused with ErrQueueFull. Default 10,000.
	QueueLimit int
	// KeyPrefix is put before every lock's name to make its key in Redis, like a
	// NameMapper of Redisson's. Default: none.
	KeyPrefix string
	// Logger takes what is worth an operator's attention. Default: the actor system's. Its
	// handler is called on a goroutine of its own and may block or panic: up to 1024 lines
	// wait for it, those beyond are dropped, and a line says how many. Close waits for it
	// for a second at most.
	Logger *slog.Logger
	// Meter takes the metrics. Default: none are measured. Its instruments are used on a
	// goroutine of their own and may block or panic; what is counted meanwhile is added later.
	Meter metric.Meter
	// Middleware handles the requests that come by message before their lock does,
	// outermost first: for tracing, or to refuse some. It sees nothing else: no requests of
	// goroutines, no timers, no replies of Redis. If it blocks, only further messages for
	// the same lock wait; if it panics, the request is refused (REASON_CRASHED). It must
	// answer a request that it does not pass on.
	Middleware []actor.ReceiverMiddleware
}

// longest bounds the times that are added to each other, and to the clock; ten years.
const longest = 10 * 365 * 24 * time.Hour

// opening is how often a lock that nobody else is seen to wait for is released at
// the end of a tenure all the same, for those who wait without subscribing. In a cluster
// it is every few tenures: most of the others listen on another server, and are not seen.
const (
	opening        = time.Second
	clusterTenures = 4
)

func or[T comparable](value, byDefault T) T {
	var zero T
	if value == zero {
		return byDefault
	}
	return value
}

// withDefaults fills in what is left open.
func (c Config) withDefaults(system *actor.ActorSystem) Config {
	c.Watchdog = or(c.Watchdog, 30*time.Second)
	c.Renewal = or(c.Renewal, c.Watchdog/3)
	c.Tenure = or(c.Tenure, 5*time.Millisecond)
	c.Poll = or(c.Poll, time.Second)
	c.CallTimeout = or(c.CallTimeout, 2*time.Second)
	c.WaiterTimeout = or(c.WaiterTimeout, max(5*time.Second, 3*min(c.Poll, longest)))
	c.Idle = or(c.Idle, time.Minute)
	c.QueueLimit = or(c.QueueLimit, 10_000)
	c.Logger = or(c.Logger, system.Logger())
	return c
}

// validate names every setting that cannot work, with what is allowed.
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
	check(c.Tenure > 0 && c.Tenure <= c.Watchdog/3,
		"Tenure is %v, and must be more than 0 and at most a third of Watchdog, which is %v", c.Tenure, c.Watchdog)
	between := func(name string, d time.Duration) {
		check(d >= 10*time.Millisecond && d <= longest, "%s is %v, and must be between 10ms and %v", name, d, longest)
	}
	between("Poll", c.Poll)
	between("CallTimeout", c.CallTimeout)
	check(c.WaiterTimeout/3 >= c.Poll && c.WaiterTimeout <= 3*longest,
		"WaiterTimeout is %v, and must be at least three times Poll, which is %v, and at most %v", c.WaiterTimeout, c.Poll, 3*longest)
	between("Idle", c.Idle)
	check(c.QueueLimit > 0, "QueueLimit is %d, and must be more than 0", c.QueueLimit)
	check(utf8.ValidString(c.KeyPrefix), "KeyPrefix is %q, and must be valid UTF-8", c.KeyPrefix)
	check(len(c.KeyPrefix) < actors.MaxNameLength, "KeyPrefix has %d bytes, and must have less than %d", len(c.KeyPrefix), actors.MaxNameLength)
	if len(wrong) > 0 {
		return fmt.Errorf("lockkeeper: config: %w: %w", ErrInvalid, errors.Join(wrong...))
	}
	return nil
}

func (c Config) actors(cluster bool) actors.Config {
	open := opening
	if cluster {
		open = min(open, clusterTenures*c.Tenure)
	}
	return actors.Config{
		Config: core.Config{
			Lease: c.Watchdog, Renewal: c.Renewal, Tenure: c.Tenure, Opening: open, Poll: c.Poll,
			CallTimeout: c.CallTimeout, QueueLimit: c.QueueLimit, Seed: rand.Uint64(),
		},
		KeyPrefix: c.KeyPrefix, Silence: c.WaiterTimeout, Idle: c.Idle, Middleware: c.Middleware, Logger: c.Logger, Meter: c.Meter,
	}
}
