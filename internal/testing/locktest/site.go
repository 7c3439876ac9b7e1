package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// ShortTimeouts lets the leftovers of a dead process expire soon.
var ShortTimeouts = lockkeeper.Config{Watchdog: Watchdog, Poll: 300 * time.Millisecond, WaiterTimeout: time.Second}

// NoPolling polls less often than a test lasts.
var NoPolling = lockkeeper.Config{Poll: time.Hour, Watchdog: 2 * time.Hour}

// Soon is well below the poll bound of NoPolling, and long even for a busy machine.
const Soon = 10 * time.Second

// ShortCallTimeout resends commands without a reply long before the lease ends, and has no local hand-off. On a busy
// machine a call may take longer than CallTimeout, so this Config suits only calls that are repeated.
var ShortCallTimeout = lockkeeper.Config{CallTimeout: time.Second, Poll: time.Hour, Watchdog: 2 * time.Hour, HandOffLimit: 1}

// Watchdog is long enough for a busy machine.
const Watchdog = 5 * time.Second

// Site stands for one process: an actor system, a client and a System.
type Site struct {
	*lockkeeper.System
	Actors *actor.ActorSystem
	Client rueidis.Client
	// SkipCloseCheck is set by tests at whose end Redis does not confirm releases.
	SkipCloseCheck bool
	// lendGoroutines makes the site's helpers call with contexts that never end: such a caller
	// lends its goroutine for the commands that it waits for.
	lendGoroutines bool
}

// Open starts a site on a Redis, or on a proxy to one; it is closed when the test ends.
// inject is middleware for its actors.
func Open(t testing.TB, url string, cfg lockkeeper.Config, inject ...actor.ReceiverMiddleware) *Site {
	t.Helper()
	client := Connect(t, url)
	return OpenWith(t, client, nil, cfg, func(s *actor.ActorSystem) { faultinject.Into(s, inject...) })
}

// Connect connects to a Redis, and retries since a busy machine may be too slow. A test binary has many
// clients, so their buffers are small: by default each connection has a megabyte.
func Connect(t testing.TB, url string) (client rueidis.Client) {
	t.Helper()
	options := Must(redisio.Options(url))(t)
	options.ReadBufferEachConn, options.WriteBufferEachConn = 16<<10, 16<<10
	redistest.Eventually(t, "a connection to "+url, func() bool {
		connected, err := redisio.ConnectWith(context.Background(), options)
		if why := (*redisio.Error)(nil); err != nil && !(errors.As(err, &why) && why.Transient) {
			t.Fatal(err)
		}
		client = connected
		return err == nil
	})
	return client
}

// New opens a site on the shared server, and a key for the test.
func New(t testing.TB, cfg lockkeeper.Config, inject ...actor.ReceiverMiddleware) (*Site, Key) {
	t.Helper()
	k := NewKey(t, redistest.Shared(t))
	return Open(t, k.Server.URL(), cfg, inject...), k
}

// NewTwo is New with two sites.
func NewTwo(t testing.TB, cfg lockkeeper.Config) (here, there *Site, k Key) {
	t.Helper()
	here, k = New(t, cfg)
	return here, Open(t, k.Server.URL(), cfg), k
}

// NewOnOwnServer is New on a server of the test's own.
func NewOnOwnServer(t testing.TB, cfg lockkeeper.Config, inject ...actor.ReceiverMiddleware) (*Site, Key) {
	t.Helper()
	k := NewKey(t, redistest.Start(t))
	return Open(t, k.Server.URL(), cfg, inject...), k
}

// OpenWith starts a site on a client, or fails on the error of connecting, after its actor system was prepared.
func OpenWith(t testing.TB, client rueidis.Client, err error, cfg lockkeeper.Config, prepare ...func(*actor.ActorSystem)) *Site {
	t.Helper()
	actors := quiet.ActorSystem()
	for _, f := range prepare {
		f(actors)
	}
	return OpenIn(t, actors, client, err, cfg)
}

// OpenSuspendable is Open on a machine that the test lets sleep.
func OpenSuspendable(t testing.TB, url string, cfg lockkeeper.Config) (*Site, *boottime.Suspendable) {
	t.Helper()
	var machine *boottime.Suspendable
	s := OpenWith(t, Connect(t, url), nil, cfg, func(system *actor.ActorSystem) { machine = boottime.Install(system) })
	return s, machine
}

// OpenIn starts a site in an actor system, on a client or the error of connecting. On a busy machine Redis may
// answer late, so CallTimeout is long unless the test sets it.
func OpenIn(t testing.TB, actors *actor.ActorSystem, client rueidis.Client, err error, cfg lockkeeper.Config) *Site {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Anonymous = cfg.Application == "" // tests count the commands and the keys of their locks
	cfg.CallTimeout = cmp.Or(cfg.CallTimeout, Soon)
	s := &Site{Client: client, Actors: actors}
	if s.System, err = lockkeeper.New(s.Actors, client, cfg); err != nil {
		client.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
		defer cancel()
		if err := s.Close(ctx); err != nil && !s.SkipCloseCheck {
			t.Errorf("close: %v", err)
		}
		client.Close()
		*s, client = Site{}, nil // testing keeps this function to the end, and with it the megabytes of an actor system
	})
	return s
}

// Processes counts the actors and other processes of the site's actor system.
func (s *Site) Processes() (n int) {
	for _, shard := range s.Actors.ProcessRegistry.LocalPIDs.LocalPIDs {
		n += shard.Count()
	}
	return n
}

// Context is the context of the site's calls.
func (s *Site) Context(t testing.TB) context.Context {
	if s.lendGoroutines {
		return context.Background()
	}
	return Within(t)
}

// SendAs sends a request to the guardian as its sender would, which gets the answer.
func (s *Site) SendAs(sender *actor.PID, m any) {
	s.Actors.Root.RequestWithCustomSender(s.Guardian(), m, sender)
}

// AwaitEnd waits until an actor has stopped.
func (s *Site) AwaitEnd(t testing.TB, pid *actor.PID) {
	t.Helper()
	redistest.Eventually(t, "the end of "+pid.Id, func() bool {
		_, lives := s.Actors.ProcessRegistry.GetLocal(pid.Id)
		return !lives
	})
}

func (s *Site) Acquire(t testing.TB, k Key, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	return AcquireIn(t, s.Context(t), s.Lock(k.LockName), options...)
}

// AcquireIn acquires with a context, such as the context of a hold.
func (s *Site) AcquireIn(t testing.TB, ctx context.Context, k Key, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	return AcquireIn(t, ctx, s.Lock(k.LockName), options...)
}

// AcquireSoon acquires on a goroutine.
func (s *Site) AcquireSoon(t testing.TB, k Key, options ...lockkeeper.Option) <-chan Grant {
	return AcquireSoon(s.Context(t), s.Lock(k.LockName), options...)
}

func (s *Site) Release(t testing.TB, hold *lockkeeper.Hold) {
	t.Helper()
	releaseIn(t, s.Context(t), hold)
}

func (s *Site) Inspect(t testing.TB, k Key) lockkeeper.Status {
	t.Helper()
	status := Must(s.Lock(k.LockName).Inspect(Within(t)))(t)
	return status
}

// AwaitWaiting waits until n requests of the site wait, for any locks.
func (s *Site) AwaitWaiting(t testing.TB, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d to wait", n), func() bool {
		waiting := 0
		all, err := s.Locks(Within(t))
		for _, one := range all {
			waiting += one.Waiters
		}
		return err == nil && waiting == n
	})
}

// AwaitWaiters waits until n requests of the site wait for a lock.
func (s *Site) AwaitWaiters(t testing.TB, k Key, n int) {
	t.Helper()
	AwaitWaiters(t, s.Lock(k.LockName), n)
}

// ExpectGranted acquires and releases the lock, and checks that it is free afterwards.
func (s *Site) ExpectGranted(t testing.TB, k Key) {
	t.Helper()
	s.Release(t, s.Acquire(t, k))
	k.IsFree(t)
}

// URLAs is the server's URL for a user.
func URLAs(server *redistest.Server, user, password string) string {
	u, _ := url.Parse(server.URL())
	u.User = url.UserPassword(user, password)
	return u.String()
}
