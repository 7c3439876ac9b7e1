package faults_test

// The host program may misbehave in everything of its own that Lockkeeper calls. What is
// promised holds all the same.

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// misdeed is what the host does when it is called; it does nothing before it is armed.
type misdeed struct {
	armed atomic.Bool
	calls atomic.Int64
	// gate holds up whoever is called, until the test is over; nil panics instead.
	gate chan struct{}
}

func (m *misdeed) commit() {
	switch {
	case !m.armed.Load():
	case m.gate == nil:
		m.calls.Add(1)
		panic("the host misbehaves")
	default:
		m.calls.Add(1)
		<-m.gate
	}
}

// logHandler, meter and the others are the host's, and misbehave.
type logHandler struct {
	slog.Handler
	*misdeed
}

func (h logHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (h logHandler) Handle(context.Context, slog.Record) error { h.commit(); return nil }
func (h logHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h logHandler) WithGroup(string) slog.Handler             { return h }

type meter struct {
	noop.Meter
	*misdeed
}

func (m meter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{misdeed: m.misdeed}, nil
}

func (m meter) Int64UpDownCounter(string, ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return upDownCounter{misdeed: m.misdeed}, nil
}

type counter struct {
	noop.Int64Counter
	*misdeed
}

func (c counter) Add(context.Context, int64, ...metric.AddOption) { c.commit() }

type upDownCounter struct {
	noop.Int64UpDownCounter
	*misdeed
}

func (c upDownCounter) Add(context.Context, int64, ...metric.AddOption) { c.commit() }

// hostile is a site whose host misbehaves in one way.
type hostile struct {
	*locktest.Tree
	*misdeed
	proxy   *redistest.Proxy
	options []lockkeeper.Option
}

const (
	hostileWatchdog = time.Second
	// spared ends the names of locks that the middleware leaves alone.
	spared = " spared"
)

func newHostile(t *testing.T, who string, blocks bool) *hostile {
	t.Helper()
	server := redistest.Shared(t)
	h := &hostile{misdeed: &misdeed{}, proxy: redistest.NewProxy(t, server.Addr())}
	if blocks {
		h.gate = make(chan struct{})
	}
	logger := slog.New(slog.DiscardHandler)
	cfg := lockkeeper.Config{Watchdog: hostileWatchdog, Renewal: 100 * time.Millisecond, CallTimeout: 200 * time.Millisecond}
	switch who {
	case "logger":
		logger = slog.New(logHandler{misdeed: h.misdeed})
	case "meter":
		cfg.Meter = meter{misdeed: h.misdeed}
	case "at-risk function":
		h.options = []lockkeeper.Option{lockkeeper.WithAtRisk(func(time.Duration) { h.commit() })}
	case "middleware":
		cfg.Middleware = []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
				if request, ok := e.Message.(interface{ GetLock() *messages.Lock }); !ok || !isSpared(request.GetLock()) {
					h.commit()
				}
				next(c, e)
			}
		}}
	}
	h.Tree = &locktest.Tree{Server: server, System: actor.NewActorSystem(
		actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))}
	if who == "event stream" {
		h.System.EventStream.Subscribe(func(any) { h.commit() })
	}
	client, err := lockkeeper.Connect(h.proxy.URL() + "?write_timeout=1s")
	if err != nil {
		t.Fatal(err)
	}
	if h.Keeper, err = lockkeeper.New(h.System, client, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.armed.Store(false)
		if h.gate != nil {
			close(h.gate)
		}
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
		defer cancel()
		_ = h.Keeper.Close(ctx)
		client.Close()
	})
	return h
}

func isSpared(lock *messages.Lock) bool { return strings.HasSuffix(lock.GetName(), spared) }

// bound is how long a call or a message may take here at most: a lease, and what a busy
// machine needs.
const bound = hostileWatchdog + 5*time.Second

// promptly fails the test if a call of the API takes too long.
func promptly[T any](t *testing.T, what string, call func() T) T {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- call() }()
	select {
	case v := <-done:
		return v
	case <-time.After(bound):
		t.Fatalf("%s: not within %v", what, bound)
		panic("not reached")
	}
}

func (h *hostile) hold(t *testing.T, name string) *lockkeeper.Hold {
	t.Helper()
	g := promptly(t, "Acquire", func() (g locktest.Grant) {
		g.Hold, g.Err = h.Keeper.Lock(name).Acquire(locktest.Within(t), h.options...)
		return g
	})
	if g.Err != nil {
		t.Fatal(g.Err)
	}
	return g.Hold
}

func (h *hostile) free(t *testing.T, hold *lockkeeper.Hold) {
	t.Helper()
	if err := promptly(t, "Release", func() error { return hold.Release(locktest.Within(t)) }); err != nil {
		t.Error(err)
	}
}

// expectLost waits until the holder is told.
func expectLost(t *testing.T, what string, hold *lockkeeper.Hold) {
	t.Helper()
	select {
	case <-hold.Context().Done():
	case <-time.After(bound):
		t.Fatalf("%s: the holder is not told within %v", what, bound)
	}
	locktest.IsError(t, context.Cause(hold.Context()), lockkeeper.ErrLost)
}

// Whatever the host does in its callbacks: who has lost a lock is told, locks are taken
// and given back, and Close returns.
func TestHostileHost(t *testing.T) {
	for _, who := range []string{"logger", "meter", "event stream", "at-risk function", "middleware"} {
		for how, blocks := range map[string]bool{"blocks": true, "panics": false} {
			t.Run(who+" "+how, func(t *testing.T) {
				t.Parallel()
				h := newHostile(t, who, blocks)
				prefix := redistest.Name(t)
				name := func(what string) string { return prefix + " " + what }
				robbed, cutOff, others := h.hold(t, name("robbed")), h.hold(t, name("cut off")), h.hold(t, name("others"))
				holder := h.Client(t, "holder")
				holder.Acquire(name("told") + spared)
				locktest.Expect[*messages.Acquired](t, holder)

				h.armed.Store(true)
				// By message, a lock that middleware holds up, or panics over.
				stranger := h.Client(t, "stranger")
				stranger.Acquire(name("others"))

				h.Server.Do(t, "DEL", name("robbed"), name("told")+spared)
				expectLost(t, "robbed", robbed)
				if lost := expectWithin[*messages.LeaseLost](t, holder); lost.Reason != messages.Reason_REASON_GONE {
					t.Errorf("the actor was told %v", lost)
				}
				// Others are unaffected, by the API and by message.
				h.free(t, h.hold(t, name("another")))
				holder.Acquire(name("told") + spared)
				expectWithin[*messages.Acquired](t, holder)
				holder.Release(name("told") + spared)
				expectWithin[*messages.Released](t, holder)
				if !others.Valid() {
					t.Errorf("a hold was lost for nothing: %v", others.Err())
				}
				h.free(t, others)

				h.proxy.Freeze(true)
				expectLost(t, "cut off", cutOff)
				h.proxy.Freeze(false)
				if h.calls.Load() == 0 && who != "event stream" {
					t.Error("the host was not called")
				}
				promptly(t, "Close", func() error {
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					return h.Keeper.Close(ctx)
				})
			})
		}
	}
}

// expectWithin is expect, within the bound.
func expectWithin[M any](t *testing.T, c *locktest.Client) M {
	t.Helper()
	select {
	case m := <-c.Mail:
		if wanted, ok := m.(M); ok {
			return wanted
		}
		t.Fatalf("%s got %T{%v}, and expected %T", c.Name, m, m, *new(M))
	case <-time.After(bound):
		t.Fatalf("%s got nothing within %v, and expected %T", c.Name, bound, *new(M))
	}
	panic("not reached")
}
