package faults_test

// The host program may misbehave in everything of its own that Lockkeeper calls. What is
// promised holds all the same.

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	nospans "go.opentelemetry.io/otel/trace/noop"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// misdeed is what the host does when it is called; it does nothing before it is armed.
type misdeed struct {
	armed atomic.Bool
	calls atomic.Int64
	// gate holds up the call, until the test is over; nil panics instead, or ends the goroutine.
	gate  chan struct{}
	exits bool
}

func (m *misdeed) commit() {
	switch {
	case !m.armed.Load():
	case m.exits:
		m.calls.Add(1)
		runtime.Goexit()
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

type counter struct {
	noop.Int64Counter
	*misdeed
}

func (c counter) Add(context.Context, int64, ...metric.AddOption) { c.commit() }

type tracer struct {
	nospans.Tracer
	*misdeed
}

func (t tracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.commit()
	return ctx, nospans.Span{}
}

// hostile is a site whose host misbehaves in one way.
type hostile struct {
	*locktest.Remote
	*misdeed
	options []lockkeeper.Option
}

// spared ends the names of locks that the middleware leaves alone.
const spared = " spared"

func newHostile(t *testing.T, who, how string) *hostile {
	t.Helper()
	k := locktest.NewKey(t, redistest.Shared(t))
	h := &hostile{misdeed: &misdeed{exits: how == "exits"}, Remote: &locktest.Remote{Key: k, Proxy: redistest.NewProxy(t, k.Server.Addr())}}
	if how == "blocks" {
		h.gate = make(chan struct{})
	}
	logger := slog.New(slog.DiscardHandler)
	cfg := lockkeeper.Config{Watchdog: locktest.Watchdog, Renewal: 100 * time.Millisecond, CallTimeout: time.Second}
	switch who {
	case "logger":
		logger = slog.New(logHandler{misdeed: h.misdeed})
	case "meter":
		cfg.Meter = meter{misdeed: h.misdeed}
	case "tracer":
		cfg.Tracer = tracer{misdeed: h.misdeed}
	case "at-risk function":
		h.options = []lockkeeper.Option{lockkeeper.WithAtRisk(func(time.Duration) { h.commit() })}
	case "middleware":
		cfg.Middleware = []actor.ReceiverMiddleware{around(func(_ actor.ReceiverContext, m any, pass func()) {
			if request, ok := m.(interface{ GetLock() *messages.Lock }); !ok || !strings.HasSuffix(request.GetLock().GetName(), spared) {
				h.commit()
			}
			pass()
		})}
	}
	actors := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	if who == "event stream" {
		actors.EventStream.Subscribe(func(any) { h.commit() })
	}
	client, err := lockkeeper.Connect(h.Proxy.URL() + "?write_timeout=4s")
	h.Site = locktest.OpenIn(t, actors, client, err, cfg)
	h.SkipCloseCheck = true
	t.Cleanup(func() {
		h.armed.Store(false)
		if h.gate != nil {
			close(h.gate)
		}
	})
	return h
}

// Whatever the host does in its callbacks, also if they end the goroutine: who has lost a lock is told, locks are taken
// and given back, and Close returns.
func TestHostileHost(t *testing.T) {
	for _, who := range []string{"logger", "meter", "tracer", "event stream", "at-risk function", "middleware"} {
		for _, how := range []string{"blocks", "panics", "exits"} {
			t.Run(who+" "+how, func(t *testing.T) {
				t.Parallel()
				h := newHostile(t, who, how)
				robbed, cutOff, others := locktest.NewKey(t, h.Server), locktest.NewKey(t, h.Server), locktest.NewKey(t, h.Server)
				told := &messages.Lock{Name: h.LockName + spared}
				var holds []*lockkeeper.Hold
				for _, k := range []locktest.Key{robbed, cutOff, others} {
					holds = append(holds, h.Acquire(t, k, h.options...))
				}
				holder, stranger := h.Probe(t), h.Probe(t)
				locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: told})

				h.armed.Store(true)
				// By message, a lock that middleware holds up, or panics over.
				stranger.Send(&messages.Acquire{Lock: others.Message()})

				// Whoever waits for the host waits until the end of the test.
				h.Server.Do(t, "DEL", robbed.Name, told.Name)
				locktest.EndedBy(t, holds[0], messages.Reason_REASON_GONE)
				if lost := locktest.Next[*messages.LeaseLost](t, holder); lost.Reason != messages.Reason_REASON_GONE {
					t.Errorf("the actor was told %v", lost)
				}
				// Others are unaffected, by the API and by message.
				h.ExpectGranted(t, locktest.NewKey(t, h.Server))
				locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: told})
				locktest.Ask[*messages.Released](t, holder, &messages.Release{Lock: told})
				locktest.ExpectValid(t, holds[2])
				locktest.Release(t, holds[2])
				h.Proxy.Freeze(true)
				locktest.EndedBy(t, holds[1], messages.Reason_REASON_EXPIRED)
				h.Proxy.Freeze(false)
				if h.calls.Load() == 0 && who != "event stream" {
					t.Error("the host was not called")
				}
				locktest.Limited(t, "the end of Close", func() error { return closeIn(h.Site, time.Second) })
			})
		}
	}
}
