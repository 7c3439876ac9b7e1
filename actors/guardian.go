package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/mailbox"
	"github.com/lockkeeper-go/lockkeeper/internal/middleware"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// guardian is the parent of all lock actors and of the subscriber. It spawns a lock actor at the first request for its
// key, passes requests on, and stops the actor when it has retired. Users need only the address of the guardian.
//
// It must never restart, since a restart would stop its children; its supervisor resumes it.
type guardian struct {
	rt *Runtime
	// children are the shells by the id of their PID, including shells that are leaving; most have a lock actor.
	children map[string]*shell.Shell
	// middleware runs the host's middleware.
	middleware *middleware.Actors[kinds.Key]
	// closing is closed when the last lock actor has left; nil until Close is called.
	closing chan struct{}
	// stopping says that the guardian and its children are being stopped.
	stopping bool
	// started is closed when there is a subscriber.
	started chan struct{}
}

// resume is shared, since proto.actor keeps a process for every strategy value.
var resume = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.ResumeDirective })

func (r *Runtime) startGuardian() {
	g := &guardian{rt: r, children: map[string]*shell.Shell{}, started: make(chan struct{})}
	// It must not run inside a lock actor that sends to it.
	box := mailbox.NewSeparate
	if len(r.cfg.Middleware) == 0 { // otherwise the host's middleware reads the messages, and would see the notes
		box = r.rules.NotingLives(box)
	}
	props := actor.PropsFromProducer(func() actor.Actor { return g },
		actor.WithGuardian(resume), r.post.WithMailbox(box, nil), actor.WithDispatcher(&r.goroutines))
	if _, taken := r.root.SpawnNamed(props, request.GuardianName); taken != nil { // by the guardian of another System
		r.root.Spawn(props)
	}
	<-g.started // lock actors of other systems use the subscriber too
}

func (g *guardian) Receive(ctx actor.Context) {
	m := ctx.Message()
	defer func() {
		if panicked := recover(); panicked != nil {
			g.rt.host.Error("the guardian panicked", "panic", panicked)
			g.rt.refuseAny(m, ctx.Sender(), machine.Crashed, fmt.Sprintf("the guardian panicked: %v", panicked))
		}
	}()
	switch m := m.(type) {
	case *actor.Started:
		defer close(g.started)
		g.rt.guardian = ctx.Self()
		g.rt.guardianProcess, _ = ctx.ActorSystem().ProcessRegistry.Get(g.rt.guardian)
		g.middleware = middleware.New[kinds.Key](middleware.Config{
			Middleware: g.rt.cfg.Middleware, Post: &g.rt.post, Root: g.rt.root, ToGuardian: g.rt.toGuardian, Frees: g.rt.frees,
			Refuse: g.rt.refuseMiddleware,
		})
		g.rt.subscriber.pid = ctx.Spawn(g.rt.props(func() actor.Actor { return g.rt.subscriber }, g.rt.subscriber))
		if g.rt.cfg.Linger > 0 {
			g.rt.subscriber.subscriptions.Add(keyspace.AskedChannel(g.rt.id))
		}
	case *request.Call:
		g.pass(ctx, m)
	case *middleware.Admitted:
		g.receive(ctx, m.Message, m.Sender, m.Header, true)
		g.releaseMiddleware(m.Key.(kinds.Key))
	case *middleware.Emptied:
		g.releaseMiddleware(m.Key.(kinds.Key))
	case *retired:
		ctx.Stop(m.pid)
		if !g.rt.crowded.Load() { // free shells are kept only while there are many actors
			if free := g.rt.shells.Take(); free != nil {
				ctx.Stop(free.PID)
			}
		}
	case *kindChange:
		if m.by.gate.CloseIf(m.seen) { // else more requests are on their way, and another kindChange follows
			g.rt.locks.Remove(m.by)
			for _, call := range m.calls {
				g.pass(ctx, call)
			}
			ctx.Stop(m.by.pid)
		}
	case *actor.Terminated:
		g.removeStopped(m.Who)
	case *closeAll:
		g.close(ctx, m.done)
	case abandonAll:
		g.deliverAll(abandon{})
	case *actor.Stopping:
		g.stopping = true
		g.middleware.ReleaseAll()
	case *actor.Stopped:
		close(g.rt.stopped)
	default:
		g.receive(ctx, m, ctx.Sender(), ctx.MessageHeader(), false)
	}
}

// receive handles a message from outside: it checks a request, and sends the request through the host's middleware, if
// there is middleware.
func (g *guardian) receive(ctx actor.Context, m any, sender *actor.PID, header actor.ReadonlyMessageHeader, isAdmitted bool) {
	call, err := g.rt.rules.Read(m, sender)
	switch {
	case call == nil && sender != nil:
		g.rt.Deliver(sender, &messages.Failed{
			Reason: messages.Reason_REASON_INVALID, Detail: fmt.Sprintf("the guardian takes the requests of package messages, and not a %T", m),
		})
	case call == nil:
	case err != nil:
		g.rt.refuse(call, machine.Invalid, err.Error())
	case g.ends():
		g.rt.tooLate(call)
	case !isAdmitted && len(g.rt.cfg.Middleware) > 0:
		if !g.middleware.Pass(ctx, kinds.KeyOf(call)) {
			g.rt.tooLate(call)
		}
	default:
		if g.rt.observer.Traces() {
			call.By.(*request.ByMessage).Within = request.TraceIn(header)
		}
		g.pass(ctx, call)
	}
}

// ends reports whether the guardian no longer accepts requests.
func (g *guardian) ends() bool { return g.closing != nil || g.stopping }

// pass hands a request to the actor of its lock. A lock without an actor gets an actor, in a free shell or in a new
// shell.
func (g *guardian) pass(ctx actor.Context, call *request.Call) {
	if err := g.rt.rules.Check(call); err != nil {
		g.rt.refuse(call, machine.Invalid, err.Error())
		return
	}
	if g.ends() {
		g.rt.tooLate(call)
		return
	}
	key := kinds.KeyOf(call)
	var a *lockActor
	for a == nil {
		if a = g.rt.locks.Get(key); a != nil && a.gate.Enter() {
			break
		}
		if other := g.rt.locks.Conflicting(key, call); other != nil {
			g.rt.refuse(call, machine.Invalid, inUseText(other, call.LockKind()))
			return
		}
		free := g.rt.shells.Take()
		if free == nil {
			free = g.spawn(ctx)
		}
		a = g.rt.claim(free, key, call)
	}
	if !g.rt.Deliver(a.pid, call) {
		g.rt.tooLate(call) // something else has stopped it
	}
}

// spawn starts a shell, which has no lock actor yet: see claim.
func (g *guardian) spawn(ctx actor.Context) *shell.Shell {
	spawned := g.rt.shells.New()
	spawned.PID = ctx.Spawn(g.rt.props(func() actor.Actor { return spawned }, spawned))
	spawned.Process, _ = g.rt.system.ProcessRegistry.GetLocal(spawned.PID.Id)
	g.children[spawned.PID.Id] = spawned
	g.countChildren(1)
	return spawned
}

// Above maxActors lock actors, idle lock actors leave early: see noteIdle. Each takes 3 kB.
const maxActors = 1024

func (g *guardian) countChildren(more int64) {
	g.rt.observer.LockActors(more)
	crowded := len(g.children) > maxActors
	if g.rt.crowded.Swap(crowded) && !crowded {
		g.rt.idleRing.Empty(func(a *lockActor) { a.inRing.Store(false) })
	}
}

// HandleFailure implements actor.SupervisorStrategy for the children. It restarts a lock actor, with the same state,
// and resumes the subscriber, and a lock actor that is leaving. By then the child has answered or repeated the message
// on which it crashed: see Crashed.
func (g *guardian) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, _ any) {
	directive := actor.ResumeDirective
	if a, ok := g.children[child.GetId()].Tenant().(*lockActor); ok && !a.gate.Closed() {
		directive = actor.RestartDirective
		supervisor.RestartChildren(child)
	} else {
		supervisor.ResumeChildren(child)
	}
	g.rt.host.Publish(&actor.SupervisorEvent{Child: child, Reason: reason, Directive: directive})
}

// releaseMiddleware ends the middleware actor of a lock, unless the lock has an actor.
func (g *guardian) releaseMiddleware(key kinds.Key) {
	if g.rt.locks.Get(key) == nil {
		g.middleware.Release(key)
	}
}

// removeStopped removes a lock actor that has stopped.
func (g *guardian) removeStopped(pid *actor.PID) {
	child := g.children[pid.GetId()]
	if child == nil {
		return
	}
	delete(g.children, pid.Id)
	if a, ok := child.Tenant().(*lockActor); ok {
		a.gone()
		g.releaseMiddleware(a.key)
	}
	g.countChildren(-1)
	g.checkClosed()
}

func (g *guardian) close(ctx actor.Context, done chan struct{}) {
	if g.closing == nil {
		g.closing = done
		g.rt.shells.Close() // first: a lock actor that still enters gets the shutdown
		g.deliverAll(shutdown{})
		g.middleware.ReleaseAll()
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

func (g *guardian) deliverAll(m any) {
	for _, child := range g.children {
		g.rt.Deliver(child.PID, m)
	}
}
