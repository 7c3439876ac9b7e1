package faults_test

// The host program may misbehave in every function of its own that Lockkeeper calls. The promises hold all the same.

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
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// misbehaviour is the misbehaviour of a host function; it does nothing before it is armed.
type misbehaviour struct {
	armed atomic.Bool
	calls atomic.Int64
	// gate blocks the call until the end of the test; if it is nil, the call panics instead, or ends the goroutine.
	gate  chan struct{}
	exits bool
}

func (m *misbehaviour) misbehave() {
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

// logHandler, meter and the other types are the host's code, and misbehave.
type logHandler struct {
	slog.Handler
	*misbehaviour
}

func (h logHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (h logHandler) Handle(context.Context, slog.Record) error { h.misbehave(); return nil }
func (h logHandler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h logHandler) WithGroup(string) slog.Handler             { return h }

type meter struct {
	noop.Meter
	*misbehaviour
}

func (m meter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{misbehaviour: m.misbehaviour}, nil
}

type counter struct {
	noop.Int64Counter
	*misbehaviour
}

func (c counter) Add(context.Context, int64, ...metric.AddOption) { c.misbehave() }

type tracer struct {
	nospans.Tracer
	*misbehaviour
}

func (t tracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.misbehave()
	return ctx, nospans.Span{}
}

// hostile is a site whose host misbehaves in one way.
type hostile struct {
	*locktest.Remote
	*misbehaviour
	options []lockkeeper.Option
}

// spared is a suffix of the names of locks for which the middleware behaves.
const spared = " spared"

func newHostile(t *testing.T, callback, how string) *hostile {
	t.Helper()
	k := locktest.NewKey(t, redistest.Shared(t))
	h := &hostile{misbehaviour: &misbehaviour{exits: how == "exits"}, Remote: &locktest.Remote{Key: k, Proxy: redistest.NewProxy(t, k.Server.Addr())}}
	if how == "blocks" {
		h.gate = make(chan struct{})
	}
	logger := slog.New(slog.DiscardHandler)
	cfg := lockkeeper.Config{Watchdog: locktest.Watchdog, Renewal: 100 * time.Millisecond, CallTimeout: time.Second}
	switch callback {
	case "logger":
		logger = slog.New(logHandler{misbehaviour: h.misbehaviour})
	case "meter":
		cfg.Meter = meter{misbehaviour: h.misbehaviour}
	case "tracer":
		cfg.Tracer = tracer{misbehaviour: h.misbehaviour}
	case "at-risk function":
		h.options = []lockkeeper.Option{lockkeeper.WithAtRisk(func(time.Duration) { h.misbehave() })}
	case "middleware":
		cfg.Middleware = []actor.ReceiverMiddleware{locktest.Around(func(_ actor.ReceiverContext, m any, pass func()) {
			if request, ok := m.(interface{ GetLock() *messages.Lock }); !ok || !strings.HasSuffix(request.GetLock().GetName(), spared) {
				h.misbehave()
			}
			pass()
		})}
	}
	actors := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	if callback == "event stream" {
		actors.EventStream.Subscribe(func(any) { h.misbehave() })
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

// Misbehaving callbacks, also ones that end the goroutine, do not prevent that holders are notified of a loss, that
// locks are acquired and released, and that Close returns.
func TestHostCallbacks_CannotStopLocks(t *testing.T) {
	for _, callback := range []string{"logger", "meter", "tracer", "event stream", "at-risk function", "middleware"} {
		for _, how := range []string{"blocks", "panics", "exits"} {
			t.Run(callback+" "+how, func(t *testing.T) {
				t.Parallel()
				h := newHostile(t, callback, how)
				deleted, cutOff, others := locktest.NewKey(t, h.Server), locktest.NewKey(t, h.Server), locktest.NewKey(t, h.Server)
				byMessage := &messages.Lock{Name: h.LockName + spared}
				var holds []*lockkeeper.Hold
				for _, k := range []locktest.Key{deleted, cutOff, others} {
					holds = append(holds, h.Acquire(t, k, h.options...))
				}
				holder, other := h.Probe(t), h.Probe(t)
				locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: byMessage})

				h.armed.Store(true)
				// A request by message for a lock on which the middleware blocks or panics.
				other.Send(&messages.Acquire{Lock: others.Message()})

				// Callers that wait for the host wait until the end of the test.
				h.Server.Do(t, "DEL", deleted.Name, byMessage.Name)
				locktest.EndedBy(t, holds[0], messages.Reason_REASON_GONE)
				if lost := locktest.Next[*messages.LeaseLost](t, holder); lost.Reason != messages.Reason_REASON_GONE {
					t.Errorf("the actor was notified of %v", lost)
				}
				// Other locks are unaffected, by the API and by message.
				h.ExpectGranted(t, locktest.NewKey(t, h.Server))
				locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: byMessage})
				locktest.Ask[*messages.Released](t, holder, &messages.Release{Lock: byMessage})
				locktest.ExpectValid(t, holds[2])
				locktest.Release(t, holds[2])
				h.Proxy.Freeze(true)
				locktest.EndedBy(t, holds[1], messages.Reason_REASON_EXPIRED)
				h.Proxy.Freeze(false)
				if h.calls.Load() == 0 && callback != "event stream" {
					t.Error("the host was not called")
				}
				locktest.Limited(t, "the end of Close", func() error { return closeIn(h.Site, time.Second) })
			})
		}
	}
}

// An actor stops although its Respond has an answer for a sender that has gone, so that it is published on the event
// stream, or for a process of the host's that panics.
func TestRespond_StopsWhateverBecomesOfItsAnswer(t *testing.T) {
	for _, how := range []string{"blocks", "panics", "exits"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t, "event stream", how)
			root, begun, goOn := h.Actors.Root, make(chan bool, 2), make(chan struct{})
			pid := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if name, is := ctx.Message().(string); is {
					h.Lock(name).Respond(ctx, func(context.Context) error { begun <- true; <-goOn; return nil }, func(error) any { return "done" })
				}
			}))
			panics, _ := h.Actors.ProcessRegistry.Add(panicking{}, "panicking")
			defer h.Actors.ProcessRegistry.Remove(panics)
			root.RequestWithCustomSender(pid, h.LockName+" too", panics)
			locktest.Await(t, "the work for a process that panics", begun)
			within, leave := context.WithCancel(t.Context())
			asked := locktest.Go(func() error { _, err := lockkeeper.Ask(within, root, pid, h.LockName); return err })
			locktest.Await(t, "the work", begun)
			leave()
			locktest.Await(t, "the end of the Ask", asked)

			h.armed.Store(true)
			close(goOn)
			locktest.Check(t, locktest.Limited(t, "the stop of the actor", func() error { return root.StopFuture(pid).Wait() }))
			redistest.Eventually(t, "the call of a subscriber", func() bool { return h.calls.Load() > 0 })
		})
	}
}

// Work that an actor spawns in its Stopped is not done, and its end is published without harm.
func TestSpawn_InStoppedDoesNothing(t *testing.T) {
	for _, how := range []string{"blocks", "panics", "exits"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t, "event stream", how)
			root := h.Actors.Root
			pid := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, is := ctx.Message().(*actor.Stopped); is {
					h.Lock(h.LockName).Spawn(ctx, func(context.Context) error { t.Error("the work is done"); return nil })
					h.Lock(h.LockName).Follow(ctx)
				}
			}))
			before := h.Processes()
			h.armed.Store(true)
			locktest.Check(t, root.StopFuture(pid).Wait())
			redistest.Eventually(t, "the end of both", func() bool { return h.calls.Load() == 1 && h.Processes() == before-1 })
		})
	}
}

// panicking is a process of the host's that panics over each message.
type panicking struct{}

func (panicking) SendUserMessage(*actor.PID, any)   { panic("the host misbehaves") }
func (panicking) SendSystemMessage(*actor.PID, any) {}
func (panicking) Stop(*actor.PID)                   {}

// A log handler that misbehaves from the start keeps neither Open from returning nor Close, though the actor system
// that Open creates logs, too.
func TestOpen_ReturnsWithALogHandlerThatMisbehaves(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	gate := make(chan struct{})
	defer close(gate)
	for how, m := range map[string]*misbehaviour{"blocks": {gate: gate}, "panics": {}, "exits": {exits: true}} {
		m.armed.Store(true)
		logger := slog.New(logHandler{slog.DiscardHandler, m})
		done := make(chan error, 1)
		go func() {
			s, err := lockkeeper.Open(t.Context(), url, lockkeeper.WithConfig(lockkeeper.Config{Logger: logger}))
			if err == nil {
				err = s.Close(t.Context())
			}
			done <- err
		}()
		select {
		case err := <-done:
			locktest.OK(t, err)
		case <-time.After(redistest.Limit):
			t.Fatalf("a log handler that %s: Open and Close have not returned", how)
		}
		if m.calls.Load() == 0 {
			t.Errorf("the log handler that %s was not called", how)
		}
	}
}
