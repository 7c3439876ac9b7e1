package traffic

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// childActor is an actor that acquires a lock by message, and passes on the messages it receives.
type childActor struct {
	guardian *actor.PID
	lock     *messages.Lock
	wait     time.Duration
	received chan<- any
	// copyTo gets a copy of the grant; nil for none.
	copyTo *actor.PID
}

// giveBack asks the childActor to release the lock.
type giveBack struct{ holdID string }

func (a *childActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Request(a.guardian, &messages.Acquire{Lock: a.lock, Wait: durationpb.New(a.wait)})
	case giveBack:
		ctx.Request(a.guardian, &messages.Release{Lock: a.lock, HoldId: m.holdID})
	case *messages.Acquired:
		if a.copyTo != nil {
			ctx.Send(a.copyTo, m)
		}
		a.received <- m
	case *messages.NotAcquired, *messages.LeaseLost, *messages.Released, *messages.NotReleased:
		a.received <- m
	}
}

// withChildActor acquires a lock by an actor. Some actors die with it, and some send a copy of the
// grant to a stopped actor.
func (w *worker) withChildActor(what messageLock) {
	received := make(chan any, 4) // a grant, a loss, and the answers to releases
	root := w.c.actors.Root
	var copyTo *actor.PID
	if w.random.IntN(4) == 0 {
		copyTo = w.c.stoppedActor
	}
	b := w.requestByMessage(what, messageWait)
	pid := root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &childActor{guardian: w.c.system.Guardian(), lock: what.lock, wait: messageWait, received: received, copyTo: copyTo}
	}))
	defer root.Stop(pid)
	select {
	case m := <-received:
		if refused, ok := m.(*messages.NotAcquired); ok {
			b.note(history.Event{Stage: history.Refused, Err: named(refused.Reason)})
			return
		}
		b.granted(m.(*messages.Acquired))
	case <-time.After(timeout):
		return // never answered: the judge detects it
	}
	if w.random.IntN(8) == 0 {
		b.extend(what.lock)
	}
	select {
	case m := <-received:
		b.lost(m.(*messages.LeaseLost))
	case <-time.After(w.style.Hold.Pick(w.random)):
		b.trusted()
		if w.random.IntN(2) == 0 {
			b.note(history.Event{Stage: history.Died})
			_ = root.StopFuture(pid).Wait()
			return
		}
	}
	b.note(history.Event{Stage: history.Releasing})
	root.Send(pid, giveBack{b.grant.HoldId})
	for end := time.After(timeout); ; {
		select {
		case m := <-received:
			if lost, ok := m.(*messages.LeaseLost); ok {
				b.lost(lost)
			} else if b.released(m) {
				return
			} else {
				root.Send(pid, giveBack{b.grant.HoldId})
			}
		case <-end:
			return
		}
	}
}
