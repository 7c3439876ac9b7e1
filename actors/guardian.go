package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// guardian is the parent of all lock actors and of the subscriber. It brings up a
// lock actor at the first request for its name, passes requests on, and stops the
// actor when it has retired. It is the one address that users need.
//
// It must never restart, since that would stop its children; its supervisor resumes it.
type guardian struct {
	rt *Runtime
	// children are the lock actors by the id of their PID, also those that are leaving.
	children map[string]*cell
	// fronts run the host's middleware.
	fronts fronts
	// closing is closed-over by whoever waits for the end; nil before.
	closing chan struct{}
	// stopping: somebody stops the guardian, with all its children.
	stopping bool
	// started is closed when there is a subscriber.
	started chan struct{}
}

// resume is shared, since proto.actor keeps a process for every strategy value.
var resume = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective })

func (r *Runtime) startGuardian() {
	g := &guardian{rt: r, children: map[string]*cell{}, fronts: fronts{}, started: make(chan struct{})}
	// It must not run inside a lock actor that sends to it, and waits for it in vain.
	props := actor.PropsFromProducer(func() actor.Actor { return g },
		actor.WithGuardian(resume), actor.WithSupervisor(&supervision{guardian: g}), r.answers(newApartMailbox), actor.WithDispatcher(&r.crew))
	r.guardian = r.root.Spawn(props)
	<-g.started // lock actors of other systems use the subscriber too
}

func (g *guardian) Receive(ctx actor.Context) {
	m := ctx.Message()
	defer func() {
		if panicked := recover(); panicked != nil {
			g.rt.host.error("the guardian panicked", "panic", panicked)
			g.rt.refuse(m, ctx.Sender(), core.Crashed, fmt.Sprintf("the guardian panicked: %v", panicked))
		}
	}()
	switch m := m.(type) {
	case *actor.Started:
		defer close(g.started)
		g.rt.subscriber = ctx.Spawn(g.rt.props(func() actor.Actor { return &subscriber{g.rt.channels} }))
	case *retired:
		g.rt.table.drop(m.cell)
		ctx.Stop(m.cell.pid)
	case *actor.Terminated:
		g.gone(m.Who)
	case *admitted:
		g.pass(ctx, m.message, m.sender, true)
		g.release(m.key)
	case *drained:
		g.release(m.key)
	case *closeAll:
		g.close(ctx, m.done)
	case abandonAll:
		g.abandon()
	case *actor.Stopping:
		g.stopping = true
		g.fronts.releaseAll()
	case *actor.Stopped:
		close(g.rt.stopped)
	default:
		if isRequest(m) {
			g.pass(ctx, m, ctx.Sender(), false)
		} else if sender := ctx.Sender(); sender != nil {
			g.rt.deliver(sender, &messages.Failed{
				Reason: messages.Reason_REASON_INVALID, Detail: fmt.Sprintf("the guardian takes the requests of package messages, and not a %T", m),
			})
		}
	}
}

// pass hands a request to the actor of its lock; one that comes by message passes the
// host's middleware before, if there is any.
func (g *guardian) pass(ctx actor.Context, m any, sender *actor.PID, isAdmitted bool) {
	key, members, err := g.rt.check(m)
	if err == nil {
		err = g.rt.checkOwner(m, sender)
	}
	if err != nil {
		g.rt.refuse(m, sender, core.Invalid, err.Error())
		return
	}
	if g.closing != nil || g.stopping {
		g.rt.tooLate(m, sender)
		return
	}
	if _, isCall := m.(*Call); !isCall && !isAdmitted && len(g.rt.cfg.Middleware) > 0 {
		g.fronts.request(g.rt, key, ctx)
		return
	}
	c := g.rt.table.get(key)
	if c == nil || !c.gate.enter() {
		c = g.spawn(ctx, key, kindOf(m), members)
	}
	if !g.rt.deliver(c.pid, &actor.MessageEnvelope{Message: m, Sender: sender}) {
		g.rt.tooLate(m, sender) // somebody else has stopped it
	}
}

// spawn starts an actor for a lock and for its first request. One that is still
// leaving has been idle, or is given up: either way it does not stand in the new
// one's way.
func (g *guardian) spawn(ctx actor.Context, key lockKey, kind messages.Kind, members *Members) *cell {
	c := newCell(g.rt, key, kind, members)
	c.gate.enter() // it must not retire before the request has come
	pid := ctx.Spawn(g.rt.props(func() actor.Actor { return &lockActor{c} }))
	if c.pid == nil { // Started, on this very goroutine, has crashed
		c.pid = pid
	}
	g.children[pid.Id] = c
	g.rt.table.put(c)
	c.joinWholes()
	g.rt.metrics.locks(1)
	return c
}

// props are made afresh for every actor: spawn middleware of the user's may change them.
func (r *Runtime) props(producer actor.Producer, options ...actor.PropsOption) *actor.Props {
	if len(r.injected) > 0 {
		options = append(options, actor.WithReceiverMiddleware(append([]actor.ReceiverMiddleware{r.surviveTheEnd}, r.injected...)...))
	}
	return actor.PropsFromProducer(producer, append(options, r.answers(newMailbox), actor.WithDispatcher(&r.crew))...)
}

// refuse answers a request that no lock has seen.
func (r *Runtime) refuse(m any, sender *actor.PID, reason core.Reason, detail string) {
	if a, ok := m.(*admitted); ok {
		m, sender = a.message, a.sender
	}
	m = unrepeated(m)
	switch by := letterOf(m, sender); {
	case by != nil && by.replyTo == nil:
		r.host.warn("a request without a sender was refused", "lock", by.lock.GetName(), "detail", detail)
	case by != nil:
		r.deliver(by.replyTo, by.message(r, refusal(by.op, reason, detail)))
	default:
		if call, ok := m.(*Call); ok {
			call.refuse(reason, detail)
		}
	}
}

// tooLate refuses a request to a system that has stopped.
func (r *Runtime) tooLate(m any, sender *actor.PID) {
	r.refuse(m, sender, core.Closed, "the Lockkeeper system is closed")
}

// release lets the front of a lock go, unless the lock has an actor.
func (g *guardian) release(key lockKey) {
	if g.rt.table.get(key) == nil {
		g.fronts.release(key)
	}
}

// gone forgets a lock actor that has stopped.
func (g *guardian) gone(pid *actor.PID) {
	c := g.children[pid.GetId()]
	if c == nil {
		return
	}
	delete(g.children, pid.Id)
	g.rt.table.drop(c)
	c.leaveWholes()
	g.release(c.key)
	g.rt.metrics.locks(-1)
	g.checkClosed()
}

func (g *guardian) close(ctx actor.Context, done chan struct{}) {
	if g.closing == nil {
		g.closing = done
		for _, c := range g.children {
			g.rt.deliver(c.pid, shutdown{})
		}
		g.fronts.releaseAll()
	}
	g.checkClosed()
}

func (g *guardian) checkClosed() {
	if g.closing == nil || len(g.children) > 0 {
		return
	}
	select {
	case <-g.closing:
	default:
		close(g.closing)
	}
}

// abandon ends the wait for releases that Redis does not confirm.
func (g *guardian) abandon() {
	for _, c := range g.children {
		c.mu.Lock()
		if c.leaving == nil {
			c.giveUp(core.Closed, "the Lockkeeper system was closed before Redis confirmed the release")
		}
		c.leaving.abandon(c)
		c.mu.Unlock()
	}
}

// Close refuses new requests, refuses those that wait, takes the locks from their
// holders, releases them, stops every actor, and ends every goroutine. If done comes
// first, the locks whose release Redis has not confirmed are left to expire, and the
// goroutines that wait for Redis end when it answers or their calls time out. A later
// Close waits for the first, or for done.
//
// If somebody else has stopped the guardian, everybody has been answered and told, but
// nobody has waited for the releases: then it is not complete.
func (r *Runtime) Close(done <-chan struct{}) (complete bool) {
	first := r.closed.CompareAndSwap(false, true)
	if first {
		go r.end(done)
	}
	select {
	case <-r.ended:
		return r.released()
	case <-done:
	}
	if first {
		<-r.left // everybody is answered and told, which needs no Redis
	}
	select {
	case <-r.left:
		return r.released()
	default:
		return false
	}
}

// released reports whether nothing is left in Redis that has to expire, as far as is known.
func (r *Runtime) released() bool {
	return r.complete && r.cleanups.complete() && int64(r.Now()) >= r.leftUntil.Load()
}

// leaveBehind takes note of a key that may be in Redis until then, and is not released.
func (r *Runtime) leaveBehind(until core.Instant) {
	for {
		last := r.leftUntil.Load()
		if int64(until) <= last || r.leftUntil.CompareAndSwap(last, int64(until)) {
			return
		}
	}
}

func (r *Runtime) end(done <-chan struct{}) {
	defer close(r.ended)
	all := make(chan struct{})
	r.deliver(r.guardian, &closeAll{done: all})
	select {
	case <-all:
		r.complete = true
	case <-r.stopped:
	case <-done:
		r.deliver(r.guardian, abandonAll{})
		select {
		case <-all:
		case <-r.stopped:
		}
	}
	r.redis.Drain(done) // an answer that comes late may have to be followed up
	r.cleanups.close(done)
	close(r.left)
	r.endBeat()
	for i := range r.clocks {
		r.clocks[i].close()
	}
	r.channels.close()
	if r.deliverSystem(r.guardian, &actor.Stop{}) { // and with it the subscriber
		<-r.stopped
	}
	r.redis.Close()
	r.crew.close()
	r.host.drain()
}
