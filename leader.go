package lockkeeper

import (
	"context"
	"errors"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// LeaderProps returns the props of an actor that leads while it holds the lock, so that one of all processes
// that spawn it leads. It waits for the lock as Elect does. While it leads it has a child, with the props that
// child returns for this term. The term's context is that of Do: it ends when the lock is lost or the leader
// stops, and HoldFrom returns its hold, for example for the fencing token.
//
// A child that crashes is restarted within its term, or whatever the supervisor strategy of the props says
// (see [actor.WithSupervisor]). If the lock is lost, the child is stopped, and the leader waits for the lock
// again; another process may lead while the child is still stopping. If the child stops by itself, the leader
// stops too, and this process does not lead again. It also stops if Elect would return an error of Acquire,
// which it logs, and when the System is closed. If child panics, the leader crashes, and its supervisor decides.
//
// To hand over, stop the leader: its child is stopped first, then the lock is released.
//
//	leader := system.Root.Spawn(locks.Lock("cleaner").LeaderProps(func(term context.Context) *actor.Props {
//		return actor.PropsFromProducer(func() actor.Actor { return &cleaner{term: term} })
//	}))
//	defer system.Root.StopFuture(leader).Wait() // before the Close of locks, which waits for the release
func (l *Lock) LeaderProps(child func(term context.Context) *actor.Props, options ...Option) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		candidacy, resign := context.WithCancel(context.Background())
		alive, gone := context.WithCancel(context.Background())
		return &leader{lock: l, props: child, options: options, candidacy: candidacy, resign: resign, alive: alive, gone: gone}
	})
}

// leader is the actor of LeaderProps, from its start to its restart or end.
type leader struct {
	lock    *Lock
	props   func(term context.Context) *actor.Props
	options []Option

	candidacy context.Context // of its Elect
	resign    context.CancelFunc
	// alive ends when this leader will have no child any more.
	alive context.Context
	gone  context.CancelFunc

	term  *term
	child *actor.PID // nil if it has none
}

// A term is told to the leader when it begins, and again, as lostTerm, when its lock is lost.
type term struct {
	ctx  context.Context
	over chan struct{} // closed when its child has stopped
}

type lostTerm struct{ *term }

// elected tells the leader that its Elect has returned.
type elected struct {
	candidacy context.Context
	err       error
}

// Receive implements actor.Actor.
func (l *leader) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		go l.elect(ctx.ActorSystem().Root, ctx.Self())
	case *term:
		l.begin(ctx, m)
	case lostTerm:
		if m.term == l.term && l.child != nil {
			ctx.Stop(l.child)
		}
	case *actor.Terminated:
		if l.child != nil && m.Who.Equal(l.child) {
			l.child = nil
			close(l.term.over)
		}
	case elected:
		if m.candidacy.Err() == nil { // else it was before a restart
			if m.err != nil && !errors.Is(m.err, ErrClosed) {
				ctx.Logger().Error("lockkeeper: this process leads no more", slog.String("lock", l.lock.Name()), slog.Any("error", m.err))
			}
			ctx.Stop(ctx.Self())
		}
	case *actor.Restarting: // its children are stopped next
		l.resign()
		if l.child == nil {
			l.gone()
		}
	case *actor.Stopping: // the same
		l.resign()
	case *actor.Stopped:
		l.gone()
	}
}

// begin begins a term, unless that is over: the lock is lost, or it was before a restart.
func (l *leader) begin(ctx actor.Context, t *term) {
	if t.ctx.Err() != nil {
		close(t.over)
		return
	}
	l.child, l.term = ctx.Spawn(l.props(t.ctx)), t
}

// elect runs Elect for the leader. The lock is released when the child has stopped, never before.
func (l *leader) elect(root *actor.RootContext, self *actor.PID) {
	err := l.lock.Elect(l.candidacy, func(ctx context.Context) error {
		t := &term{ctx: ctx, over: make(chan struct{})}
		root.Send(self, t)
		select {
		case <-t.over: // the child has stopped by itself
		case <-l.alive.Done():
		case <-ctx.Done():
			if l.candidacy.Err() == nil { // else its child is being stopped
				root.Send(self, lostTerm{t})
			}
		}
		select {
		case <-t.over:
		case <-l.alive.Done():
		}
		return context.Cause(ctx) // nil if nothing has ended the term
	}, l.options...)
	if l.candidacy.Err() == nil {
		root.Send(self, elected{l.candidacy, err})
	}
}
