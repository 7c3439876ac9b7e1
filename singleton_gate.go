package lockkeeper

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/singleton"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The headers of a message from a proxy to a gate.
const (
	headerProxy  = "lockkeeper-proxy"
	headerNumber = "lockkeeper-number"
	headerSender = "lockkeeper-sender" // the address, a space and the id, if the message has a sender
)

// gate is the process, in front of an instance, to which proxies send, and the middleware of the instance. Each term
// has its own gate. A gate is not an actor, since an actor that stops drops its mail silently, whereas the gate always
// knows which messages the instance has begun.
type gate struct {
	singleton *Singleton
	term      context.Context
	hold      *Hold
	pid       *actor.PID
	child     *actor.PID

	// receiving makes the instance get the messages in the order of the ledger.
	receiving sync.Mutex
	// mu guards the fields below.
	mu     sync.Mutex
	ledger singleton.Ledger[*actor.PID]
	isOpen bool
	// closed is closed when the instance begins to stop.
	closed chan struct{}
}

var _ actor.Process = (*gate)(nil)

// middleware sees the messages that the instance handles.
func (g *gate) middleware(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, e *actor.MessageEnvelope) {
		switch e.Message.(type) {
		case *actor.Started:
			next(ctx, e)
			g.open(ctx)
		case *actor.Stopping:
			g.close()
			next(ctx, e)
		case *actor.Stopped:
			defer g.leave(ctx.ActorSystem()) // even if the instance panics
			next(ctx, e)
		case actor.SystemMessage, actor.AutoReceiveMessage:
			next(ctx, e)
		default:
			if e = g.begin(ctx, e); e != nil {
				next(ctx, e)
			}
		}
	}
}

// open opens the gate when the instance has started. A restart changes nothing.
func (g *gate) open(ctx actor.ReceiverContext) {
	if g.pid != nil || g.term.Err() != nil {
		return
	}
	system, id := ctx.ActorSystem(), uuid.NewString()
	g.mu.Lock()
	g.ledger.Gate, g.isOpen, g.child = id, true, ctx.Self()
	g.mu.Unlock()
	g.pid, _ = system.ProcessRegistry.Add(g, gateName(id))
	g.singleton.lock.runtime.Observer().Instances(1)
	go g.publish(singleton.Place{Address: system.Address(), Gate: id})
}

// gateName returns the id of a gate's PID.
func gateName(id string) string { return "singleton/" + id }

// close closes the gate: the instance no longer begins messages.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen {
		g.isOpen = false
		close(g.closed)
	}
}

// receives reports whether the instance may begin messages; mu is held.
func (g *gate) receives() bool { return g.isOpen && g.term.Err() == nil && g.hold.Valid() }

// SendUserMessage implements actor.Process. It runs on goroutines of the remote and of proxies.
func (g *gate) SendUserMessage(_ *actor.PID, m any) {
	header, message, proxy := actor.UnwrapEnvelope(m)
	if proxy == nil || header == nil {
		return
	}
	g.receiving.Lock()
	defer g.receiving.Unlock()
	runtime := g.singleton.lock.runtime
	g.mu.Lock()
	open, taken := g.receives(), false
	var here singleton.GateState
	probe, isProbe := message.(*messages.SingletonProbe)
	switch now := runtime.Now(); {
	case !open:
	case isProbe:
		here = g.ledger.Probe(now, probe.Proxy, proxy, singleton.Probe{Number: probe.Number, Next: probe.Next, Known: probe.Known})
	default:
		number, _ := strconv.ParseUint(header.Get(headerNumber), 10, 64)
		taken = g.ledger.Receive(now, header.Get(headerProxy), number)
	}
	g.mu.Unlock()
	switch {
	case !open:
		runtime.Deliver(proxy, &actor.DeadLetterResponse{}) // a hint that spares the proxy the wait for an answer
	case isProbe:
		runtime.Deliver(proxy, hereMessage(here))
	case taken:
		runtime.Deliver(g.child, m)
	}
}

// SendSystemMessage implements actor.Process.
func (*gate) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (*gate) Stop(*actor.PID) {}

func hereMessage(h singleton.GateState) *messages.SingletonHere {
	return &messages.SingletonHere{
		Proxy: h.Proxy, Gate: h.Gate, Probe: h.Probe, Received: h.Received, Begun: h.Begun, Forgotten: h.Forgotten,
	}
}

// begin returns the message that the instance is to handle, as its sender has sent it; nil if the instance must not
// handle it.
func (g *gate) begin(ctx actor.ReceiverContext, e *actor.MessageEnvelope) *actor.MessageEnvelope {
	runtime := g.singleton.lock.runtime
	if e.GetHeader(headerProxy) == "" { // the message was sent to the PID of the instance
		if g.hold.Valid() {
			return e
		}
		if e.Sender != nil {
			runtime.Deliver(e.Sender, &actor.DeadLetterResponse{Target: ctx.Self()})
		}
		return nil
	}
	number, _ := strconv.ParseUint(e.GetHeader(headerNumber), 10, 64)
	g.mu.Lock()
	here, begun := g.ledger.Begin(runtime.Now(), e.GetHeader(headerProxy), number, g.receives())
	g.mu.Unlock()
	if !begun {
		return nil // the proxy sends it again, or refuses it
	}
	runtime.Deliver(e.Sender, hereMessage(here))
	return received(e)
}

// received returns a message as its sender has sent it to the proxy.
func received(e *actor.MessageEnvelope) *actor.MessageEnvelope {
	original := &actor.MessageEnvelope{Message: e.Message}
	for key, value := range e.Header {
		switch key {
		case headerProxy, headerNumber:
		case headerSender:
			address, id, _ := strings.Cut(value, " ")
			original.Sender = actor.NewPID(address, id)
		default:
			original.SetHeader(key, value)
		}
	}
	return original
}

// publish writes to Redis where the instance is, until the instance begins to stop. It writes again every Renewal,
// since Redis may lose the entry.
func (g *gate) publish(at singleton.Place) {
	s := g.singleton
	config := s.lock.runtime.Rules().Config
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures := 0
	for pause := firstRetry; ; {
		select {
		case <-timer.C:
		case <-g.closed:
			return
		case <-g.term.Done():
			return
		}
		written := make(chan error, 1)
		s.system.board.At(s.key(), g.hold.Token(), at, func(done bool, err error) {
			if err == nil && !done {
				err = errOtherInstance
			}
			written <- err
		})
		select {
		case err := <-written:
			next := config.Renewal
			if err != nil {
				next, pause = pause/2+rand.N(pause/2+1), min(2*pause, config.Renewal)
				if failures++; failures == 2 && g.hold.Valid() { // a single lost reply does no harm
					s.lock.runtime.Log(slog.LevelError, "proxies do not find the instance of a singleton: Redis does not have its place",
						"singleton", s.Name(), "error", err)
				}
			} else {
				pause, failures = firstRetry, 0
			}
			timer.Reset(next)
		case <-g.closed:
			return
		}
	}
}

// firstRetry is the first pause after a failed write to Redis.
const firstRetry = 50 * time.Millisecond

// leave is called when the instance has stopped. It writes to Redis which messages the instance has begun, before the
// lock is released; if the lock is lost already, leave does not wait.
func (g *gate) leave(system *actor.ActorSystem) {
	g.close()
	s, left := g.singleton, g.hold.Left()
	if left == 0 {
		s.lock.runtime.Log(slog.LevelError, "the instance of a singleton has stopped after its lease had ended, "+
			"and another one may have run alongside it", "singleton", s.Name())
	}
	if g.pid == nil { // the gate has never been open
		return
	}
	defer system.ProcessRegistry.Remove(g.pid)
	s.lock.runtime.Observer().Instances(-1)
	g.mu.Lock()
	gate, begun, waiting := g.ledger.Gate, g.ledger.Begun(), g.ledger.Waiting()
	g.mu.Unlock()
	written := make(chan struct{})
	s.system.board.Left(s.key(), g.hold.Token(), gate, begun, func(bool, error) { close(written) })
	timer := time.NewTimer(min(left, longestLeave))
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
	}
	for _, proxy := range waiting {
		s.lock.runtime.Deliver(proxy, &actor.DeadLetterResponse{}) // it looks for the next instance
	}
}

// longestLeave bounds the time for which the release of the lock waits until the write of leave is in Redis.
const longestLeave = 2 * time.Second
