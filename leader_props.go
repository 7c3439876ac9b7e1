package lockkeeper

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// LeaderProps returns the props of an actor that leads while it holds the lock, so that one of all processes that spawn
// it leads. The leader waits for the lock as Elect does. While it leads it has a child, with the props that the
// function child returns for this term. The term's context is like the context of Do: it ends when the lock is lost or
// the leader stops, and HoldFrom returns its hold, for example for the fencing token.
//
// A child that crashes is restarted within its term, any number of times, with a growing delay. For another
// supervisor strategy, Configure the props with [actor.WithSupervisor]. No strategy restarts the child after its
// term or while it stops, and a panic while it stops is logged. If the lock is lost, the child is stopped, and
// the leader waits for the lock again; another process may lead while the child is still stopping, unless
// WithDrain gives it the time. If the child stops by itself, the leader stops too, and this process does not
// lead again. The leader also stops if Elect would return an error of Acquire, and when the System is closed;
// it logs why. If the function child panics or calls [runtime.Goexit], the leader crashes, and its supervisor
// decides; a leader that is resumed stops.
//
// To hand over, stop the leader. It has stopped when its child has stopped and the lock is released, at most
// 5 s later. Stop it before the System is closed: Close releases the lock at once, while the child is still stopping.
//
//	leader := system.Root.Spawn(locks.FencedLock("cleaner").LeaderProps(func(term context.Context) *actor.Props {
//		return actor.PropsFromProducer(func() actor.Actor { return &cleaner{term: term} })
//	}))
//	defer system.Root.StopFuture(leader).Wait() // before the Close of locks
func (l *Lock) LeaderProps(child func(term context.Context) *actor.Props, options ...LeadOption) *actor.Props {
	supervisor := childBackoff
	if l.checkUsable() == nil {
		supervisor = l.runtime.Supervisor(childBackoff)
	}
	return actor.PropsFromProducer(func() actor.Actor {
		candidacy, resign := context.WithCancelCause(context.Background())
		alive, noChild := context.WithCancel(context.Background())
		return &leader{
			lock: l, props: child, options: options,
			candidacy: candidacy, resign: resign, alive: alive, noChild: noChild,
		}
	}, actor.WithSupervisor(supervisor))
}

// childBackoff restarts a child 10 ms after its first crash, 20 ms after the second, and so on. After 10 s without
// a crash the delay is 10 ms again.
var childBackoff = actor.NewExponentialBackoffStrategy(10*time.Second, 10*time.Millisecond)

var errRestart = errors.New("the leader has crashed")

// leader is the actor of LeaderProps, until it is restarted or stopped.
type leader struct {
	lock    *Lock
	props   func(term context.Context) *actor.Props
	options []LeadOption

	// candidacy is the context of the leader's Elect.
	candidacy context.Context
	resign    context.CancelCauseFunc
	// alive ends when this leader has no child and will have none.
	alive context.Context
	// noChild cancels alive.
	noChild context.CancelFunc
	// released is closed when Elect has returned; nil if Elect was not called.
	released chan struct{}

	term  *term
	child *actor.PID // nil if it has none
}

// term is sent to the leader when a term begins.
type term struct {
	ctx   context.Context
	over  chan struct{}               // closed when its child has stopped
	child atomic.Pointer[leaderChild] // nil until it is started
}

// lostTerm is sent to the leader when the lock of the term is lost.
type lostTerm struct{ *term }

// electReturned is sent to the leader when its Elect has returned.
type electReturned struct {
	candidacy context.Context
	err       error
}

// Receive implements actor.Actor.
func (l *leader) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		if _, lives := ctx.ActorSystem().ProcessRegistry.GetLocal(ctx.Self().Id); !lives {
			return // proto.actor restarts an actor that was stopped after it had crashed
		}
		l.released = make(chan struct{})
		go l.elect(ctx.ActorSystem(), ctx.Self())
	case *term:
		l.begin(ctx, m)
	case lostTerm:
		if m.term == l.term && l.child != nil {
			l.lock.runtime.Stop(l.child) // ctx.Stop would run the host's subscribers if the child is handling its Stopped
		}
	case *actor.Terminated:
		if l.child != nil && m.Who.Equal(l.child) {
			l.child = nil
			close(l.term.over)
		}
	case electReturned:
		if m.candidacy == l.candidacy { // otherwise it was sent before a restart
			l.lock.logEnded(m.err)
			ctx.Stop(ctx.Self())
		}
	case *actor.Restarting: // its children are stopped next
		if context.Cause(l.candidacy) == errResigned {
			ctx.Stop(ctx.Self()) // proto.actor has turned a stop into a restart
			return
		}
		l.resign(errRestart)
		if l.child == nil {
			l.noChild()
		}
	case *actor.Stopping: // its children are stopped next
		l.resign(errResigned)
	case *actor.Stopped:
		l.noChild()
		if l.released != nil {
			<-l.released
		}
	}
}

// begin begins a term, unless its context has ended because the lock was lost or the leader has restarted.
func (l *leader) begin(ctx actor.Context, t *term) {
	if t.ctx.Err() != nil {
		close(t.over)
		return
	}
	child := &leaderChild{lock: l.lock, term: t.ctx}
	defer func() {
		if l.term != t { // the user's function or producer has panicked. The supervisor may not restart the leader
			l.resign(errRestart)
			close(t.over)
		}
	}()
	l.child, l.term = ctx.Spawn(child.props(l.childProps(t.ctx))), t
	child.pid = l.child
	t.child.Store(child)
}

// childProps calls the user's function in a separate goroutine: if the function ended the goroutine of the actor,
// the actor would never run again. A panic continues in the actor.
func (l *leader) childProps(term context.Context) (props *actor.Props) {
	var panicked any = errExited
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				panicked = p
			}
		}()
		if props = l.props(term); props != nil {
			panicked = nil
		} else {
			panicked = errNoProps
		}
	}()
	if <-ended; panicked != nil {
		panic(panicked)
	}
	return props
}

var errNoProps = errors.New("the function that makes the child's props has returned nil")

var errExited = errors.New("the function that makes the child's props has ended its goroutine (runtime.Goexit)")

// A child that is gone at goneLooks looks in a row has stopped, even if the leader was not notified. At the first looks
// the host's middleware may still be handling its Stopped.
const goneInterval, goneLooks = time.Second, 10

// elect runs Elect for the leader. The lock is not released before the child has stopped.
func (l *leader) elect(system *actor.ActorSystem, self *actor.PID) {
	lead := func(ctx context.Context) error {
		t := &term{ctx: ctx, over: make(chan struct{})}
		l.lock.tell(system, self, t)
		looks := time.NewTicker(goneInterval)
		defer looks.Stop()
		for lost, gone := ctx.Done(), 0; ; {
			select {
			case <-lost:
				if lost = nil; l.candidacy.Err() == nil { // otherwise the child is being stopped already
					l.lock.tell(system, self, lostTerm{t})
				}
				continue
			case <-looks.C: // a panic in the host's middleware may lose the notice that the child has stopped
				if child := t.child.Load(); child == nil || !child.isGone(system) {
					gone = 0
					continue
				} else if gone++; gone < goneLooks {
					continue
				}
			case <-t.over:
			case <-l.alive.Done():
			}
			return context.Cause(ctx) // nil if the child has stopped by itself
		}
	}
	if l.props == nil {
		lead = nil
	}
	err := l.lock.Elect(l.candidacy, lead, l.options...)
	close(l.released)
	if context.Cause(l.candidacy) != errResigned && l.alive.Err() == nil { // else it stops, or restarts
		l.lock.tell(system, self, electReturned{l.candidacy, err})
	}
}
