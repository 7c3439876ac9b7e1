// Payments shows a complete service of actors: an actor makes payments, one at a time for each account,
// over all processes; one process cleans up; there are metrics and traces, and a shutdown that hands
// everything over. Here two processes of the service run in one program.
//
//	go run ./examples/payments
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// balances stand for a table in a database.
var balances = map[string]int{}

// payment is a request to the payer.
type payment struct{ account string }

// payer makes payments. It never blocks: the payments wait for the locks of their accounts in children,
// which also respond to the clients.
type payer struct{ locks *lockkeeper.System }

// Receive implements actor.Actor.
func (p *payer) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*payment); ok {
		paid := false
		work := func(ctx context.Context) error {
			err := pay(ctx, m.account)
			paid = err == nil
			return err
		}
		answer := func(err error) any { return status(paid, err) } // called after work
		p.locks.Lock("account:"+m.account).Respond(ctx, work, answer, lockkeeper.WithWait(5*time.Second))
	}
}

// pay would lose money if two calls ran at the same time. Longer work should return context.Cause(ctx) when ctx ends.
func pay(_ context.Context, account string) error {
	balance := balances[account]
	time.Sleep(time.Millisecond)
	balances[account] = balance + 1
	return nil
}

// status is the answer to the client.
func status(paid bool, err error) any {
	switch {
	case errors.Is(err, lockkeeper.ErrLost): // an operator has to check the account
		return http.StatusInternalServerError
	case paid: // with ErrNotReleased the lock is free when its lease ends
		return http.StatusOK
	case errors.Is(err, lockkeeper.ErrTimeout), errors.Is(err, lockkeeper.ErrQueueFull): // other payments are in progress
		return http.StatusConflict
	case errors.Is(err, lockkeeper.ErrInvalid):
		return http.StatusBadRequest
	case errors.As(err, new(*lockkeeper.Error)): // not paid; also if pay returns the cause of its ctx
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// cleaner runs in the process that leads.
type cleaner struct {
	service string
	leads   chan<- string
}

// Receive implements actor.Actor.
func (c *cleaner) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		c.leads <- c.service
	case *actor.Stopping:
		fmt.Println(c.service, "cleans up no more")
	}
}

// service is one process of the service.
type service struct {
	locks         *lockkeeper.System
	actors        *actor.ActorSystem
	payer, leader *actor.PID
	server        *httptest.Server // in a real service, an http.Server
	spans         *tracetest.InMemoryExporter
	meters        *metric.MeterProvider
	traces        *trace.TracerProvider
}

func start(ctx context.Context, name, redis string, leads chan<- string) *service {
	registry := prometheus.NewRegistry() // two services share this program
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	demo.Check(err)
	s := &service{actors: demo.ActorSystem(), spans: tracetest.NewInMemoryExporter()}
	s.meters = metric.NewMeterProvider(metric.WithReader(exporter))
	s.traces = trace.NewTracerProvider(trace.WithBatcher(s.spans))
	s.locks, err = lockkeeper.Open(ctx, redis, lockkeeper.WithActorSystem(s.actors), lockkeeper.WithConfig(lockkeeper.Config{
		Application: name, Meter: s.meters.Meter("lockkeeper"), Tracer: s.traces.Tracer("lockkeeper"),
	}))
	demo.Check(err)
	s.payer = s.actors.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &payer{s.locks} }))
	s.leader = s.actors.Root.Spawn(s.locks.Lock("cleaner").LeaderProps(func(context.Context) *actor.Props {
		return actor.PropsFromProducer(func() actor.Actor { return &cleaner{name, leads} })
	}))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /pay/{account}", s.handle)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	s.server = httptest.NewServer(mux)
	return s
}

// handle serves a payment. The span is like a span of the middleware otelhttp.
func (s *service) handle(w http.ResponseWriter, r *http.Request) {
	ctx, span := s.traces.Tracer("shop").Start(r.Context(), "POST /pay")
	defer span.End()
	answer, err := lockkeeper.Ask(ctx, s.actors.Root, s.payer, &payment{r.PathValue("account")})
	if err != nil { // the payer has stopped, or the client has left
		answer = http.StatusServiceUnavailable
	}
	w.WriteHeader(answer.(int))
}

// stop hands over and ends everything, in this order.
func (s *service) stop(ctx context.Context) {
	demo.Check(s.actors.Root.StopFuture(s.leader).Wait())
	s.server.Close() // waits for open requests; docs/using.md says what to do when that takes too long
	demo.Check(s.actors.Root.StopFuture(s.payer).Wait())
	demo.Check(s.locks.Close(ctx))
	demo.Check(errors.Join(s.traces.ForceFlush(ctx), s.meters.Shutdown(ctx)))
	s.actors.Shutdown()
}

func main() {
	redis, end := demo.URL()
	defer end()
	ctx := context.Background()
	leads := make(chan string, 1)
	north := start(ctx, "north", redis, leads)
	fmt.Println(<-leads, "cleans up")
	south := start(ctx, "south", redis, leads)

	var clients sync.WaitGroup
	for _, s := range []*service{north, south} {
		for range 10 {
			clients.Go(func() { post(s, "anna") })
		}
	}
	clients.Wait()
	fmt.Println("after 20 payments anna has", balances["anna"])

	demo.Check(south.locks.Lock("account:bert").Do(ctx, func(context.Context) error {
		fmt.Println("while another process holds the lock of bert's account, the answer is", post(north, "bert"))
		return nil
	}))
	fmt.Println("for an account with an impossible name the answer is", post(north, strings.Repeat("x", 600)))
	for !strings.Contains(metrics(north), "lockkeeper_refusals_total") { // the metrics come within 0.25 s
	}

	north.stop(ctx)
	fmt.Println(<-leads, "cleans up")
	fmt.Println("a payment's spans:", strings.Join(spansOfAPayment(north.spans.GetSpans()), ", "))
	south.stop(ctx)
}

// post makes a payment, and returns the status.
func post(s *service, account string) string {
	response, err := http.Post(s.server.URL+"/pay/"+account, "", nil)
	demo.Check(err)
	demo.Check(response.Body.Close())
	return response.Status
}

// metrics reads the metrics as Prometheus would.
func metrics(s *service) string {
	response, err := http.Get(s.server.URL + "/metrics")
	demo.Check(err)
	text, err := io.ReadAll(response.Body)
	demo.Check(errors.Join(err, response.Body.Close()))
	return string(text)
}

// spansOfAPayment returns the names of the child spans of the first payment.
func spansOfAPayment(all tracetest.SpanStubs) (names []string) {
	first := slices.IndexFunc(all, func(s tracetest.SpanStub) bool { return s.Name == "POST /pay" })
	for _, s := range all {
		if s.Parent.SpanID() == all[first].SpanContext.SpanID() {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}
