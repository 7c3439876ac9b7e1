package monitoring_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// client records the spans in whose contexts its commands are sent.
type client struct {
	rueidis.Client
	within chan trace.SpanContext
}

func (c *client) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		c.within <- span
	}
	return c.Client.Do(ctx, cmd)
}

// traced is a System whose spans a test reads.
type traced struct {
	*locktest.Site
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer
	within chan trace.SpanContext
}

func newTraced(t *testing.T, url string) traced {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)).Tracer("lockkeeper")
	c := &client{Client: locktest.Connect(t, url), within: make(chan trace.SpanContext, 100)}
	cfg := locktest.NoPolling
	cfg.Tracer = tracer
	return traced{locktest.OpenWith(t, c, nil, cfg), recorder, tracer, c.within}
}

// span waits for a span of that name below a caller's span. It returns the span's own events, with the values of
// their attributes.
func (s traced) span(t *testing.T, name string, parent trace.Span) (span sdk.ReadOnlySpan, events []string) {
	t.Helper()
	redistest.Eventually(t, "a span "+name, func() bool {
		for _, one := range s.spans.Ended() {
			if one.Name() == name && one.Parent().SpanID() == parent.SpanContext().SpanID() {
				span = one
			}
		}
		return span != nil
	})
	if span.SpanContext().TraceID() != parent.SpanContext().TraceID() {
		t.Errorf("%s is in another trace", name)
	}
	last := span.StartTime()
	for _, e := range span.Events() {
		text := e.Name
		for _, a := range e.Attributes {
			text += " " + a.Value.Emit()
		}
		events = append(events, text)
		if e.Time.Before(last) || e.Time.After(span.EndTime()) {
			t.Errorf("%s: %s is not in its time", name, e.Name)
		}
		last = e.Time
	}
	return span, events
}

// A caller's spans show the waits of its requests, and the time until the end of its hold.
func TestTraces_ShowWaitsAndHolds(t *testing.T) {
	t.Parallel()
	other, k := locktest.NewOnOwnServer(t, locktest.NoPolling)
	s := newTraced(t, k.Server.URL())
	first := locktest.Acquire(t, other.Lock(k.LockName))
	owner := k.HeldBy(t, other, "1")
	ctx, caller := s.tracer.Start(t.Context(), "caller")
	granted := locktest.AcquireSoon(ctx, s.Lock(k.LockName))
	k.AwaitListener(t)
	locktest.Release(t, first)
	hold := locktest.Got(t, granted).Hold
	ctx, second := s.tracer.Start(t.Context(), "another caller")
	locktest.OK(t, hold.Release(ctx))

	acquire, events := s.span(t, "lockkeeper.acquire", caller)
	for _, want := range []string{"queued", "tried", "held " + owner, "subscribed"} {
		if !slices.Contains(events, want) {
			t.Errorf("the events of the acquire are %q, without %q", events, want)
		}
	}
	if last := events[len(events)-1]; last != "granted transfer" && last != "granted redis" { // sometimes the lock is freed instead
		t.Errorf("the last event of the acquire is %q", last)
	}
	locktest.Equal(
		t,
		fmt.Sprint(
			acquire.Attributes()[0].Value.AsString(), acquire.Attributes()[1].Value.AsString(), acquire.Status().Code,
		),
		fmt.Sprint(k.LockName, "plain", codes.Unset), "the acquire is of %s",
	)
	held, _ := s.span(t, "lockkeeper.hold", caller)
	if release, events := s.span(t, "lockkeeper.release", second); !slices.Equal(events, []string{"released"}) ||
		held.EndTime().Before(acquire.EndTime()) || release.StartTime().After(release.EndTime()) {
		t.Errorf("the release: %q; the hold: %v to %v", events, held.StartTime(), held.EndTime())
	}
	ctx, caller = s.tracer.Start(context.WithoutCancel(t.Context()), "caller")
	lent := locktest.Must(s.Lock(k.LockName).Acquire(ctx))(t)
	locktest.Release(t, lent)
	if got := <-s.within; got.SpanID() != caller.SpanContext().SpanID() {
		t.Error("the client did not get the caller's context")
	}
}

// A request by message belongs to the span in its header; a refusal is an error, and so is a loss.
func TestTraces_FollowMessages(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Shared(t))
	s := newTraced(t, k.Server.URL())
	holder, other := s.Probe(t), s.Probe(t)
	send := func(p *locktest.Probe, m any) trace.Span {
		ctx, caller := s.tracer.Start(t.Context(), "caller")
		s.Actors.Root.Send(s.Guardian(), lockkeeper.WithTrace(ctx, &actor.MessageEnvelope{Message: m, Sender: p.Pid}))
		return caller
	}
	caller := send(holder, &messages.Acquire{Lock: k.Message()})
	locktest.Next[*messages.Acquired](t, holder)
	if _, events := s.span(t, "lockkeeper.acquire", caller); !slices.Equal(events, []string{"tried", "granted redis"}) {
		t.Errorf("the events of the acquire are %q", events)
	}
	refused := send(other, &messages.Release{Lock: k.Message()})
	locktest.Next[*messages.NotReleased](t, other)
	if span, events := s.span(t, "lockkeeper.release", refused); span.Status().Code != codes.Error ||
		!slices.Equal(events, []string{"refused not_held"}) {
		t.Errorf("the release that was refused: %v %q", span.Status(), events)
	}
	locktest.ForceRelease(t, s.Lock(k.LockName), true)
	locktest.Next[*messages.LeaseLost](t, holder)
	if span, events := s.span(t, "lockkeeper.hold", caller); span.Status().Code != codes.Error ||
		!slices.Equal(events, []string{"lost forced"}) {
		t.Errorf("the hold that was lost: %v %q", span.Status(), events)
	}
}

// shipper acquires a lock for each text that it is sent, and releases it.
type shipper struct {
	tracer trace.Tracer
	lock   *messages.Lock
	keeps  bool
	last   chan string
	site   *locktest.Site
	client *actor.PID
}

func (a *shipper) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case string:
		lockkeeper.Request(ctx, &messages.Acquire{Lock: a.lock})
	case func(context.Context) error: // runs under the lock
		a.client = ctx.Sender()
		a.site.Lock(a.lock.Name).Spawn(ctx, m)
	case *lockkeeper.Done:
		ctx.Send(a.client, m)
	case context.Context: // the context of a job that had to wait
		lockkeeper.Request(ctx, lockkeeper.WithTrace(m, &messages.Acquire{Lock: a.lock}))
	case *messages.LeaseLost:
		_, notified := a.tracer.Start(lockkeeper.TraceOf(ctx), "notified")
		notified.End()
	case *messages.Acquired:
		if a.keeps {
			a.last <- "kept"
			return
		}
		_, work := a.tracer.Start(lockkeeper.TraceOf(ctx), "work")
		work.End()
		lockkeeper.Request(ctx, &messages.Release{Lock: a.lock, HoldId: m.HoldId})
	case *messages.Released, *actor.DeadLetterResponse:
		a.last <- fmt.Sprintf("%T", m)
	}
}

// The trace passes from a goroutine to an actor, to the System, back with the answer, and on to the next request.
func TestTraces_PassThroughActors(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Shared(t))
	s := newTraced(t, k.Server.URL())
	a := &shipper{tracer: s.tracer, lock: k.Message(), last: make(chan string, 1), site: s.Site}
	pid := s.Actors.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
	ctx, caller := s.tracer.Start(t.Context(), "caller")
	order := func(job any, want string) {
		t.Helper()
		s.Actors.Root.Send(pid, job)
		locktest.Equal(t, locktest.Await(t, "the last answer", a.last), want, "the last answer is %s")
	}
	order(lockkeeper.WithTrace(ctx, "an order"), "*messages.Released")
	for _, name := range []string{"lockkeeper.acquire", "work", "lockkeeper.release", "lockkeeper.hold"} {
		s.span(t, name, caller)
	}
	order(lockkeeper.WithTrace(t.Context(), "without a span"), "*messages.Released")
	other, second := s.tracer.Start(t.Context(), "another caller")
	order(lockkeeper.WithTrace(ctx, other), "*messages.Released")
	s.span(t, "lockkeeper.release", second)
	third, asked := s.tracer.Start(t.Context(), "a client that waits for the work")
	work := func(ctx context.Context) error {
		_, span := s.tracer.Start(ctx, "worked")
		span.End()
		return nil
	}
	if done, err := lockkeeper.Ask(third, s.Actors.Root, pid, work); err != nil || done.(*lockkeeper.Done).Err != nil {
		t.Errorf("the work ended with %v, %v", done, err)
	}
	s.span(t, "worked", asked)
	s.span(t, "lockkeeper.hold", asked)
	a.keeps = true // the actor is idle
	order(lockkeeper.WithTrace(ctx, "to keep"), "kept")
	locktest.OK(t, s.System.Close(t.Context()))
	s.span(t, "notified", caller)
	order("an order", "*actor.DeadLetterResponse")
}

// The span of a standby that resigns has no error.
func TestTraces_ResigningStandbyIsNoError(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Shared(t))
	s := newTraced(t, k.Server.URL())
	hold := s.Acquire(t, k)
	resign := s.Lock(k.LockName).Lead(func(context.Context) error { return nil })
	s.AwaitWaiters(t, k, 1)
	locktest.Check(t, resign(t.Context()))
	redistest.Eventually(t, "its span", func() bool {
		return slices.ContainsFunc(s.spans.Ended(), func(span sdk.ReadOnlySpan) bool {
			events := span.Events()
			return len(events) > 0 && events[len(events)-1].Name == "refused" && events[0].Name == "queued" && span.Status().Code == codes.Unset
		})
	})
	s.Release(t, hold)
}
