package traffic

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// employee is an actor that takes a lock by message, and hands on what it hears.
type employee struct {
	guardian *actor.PID
	lock     *messages.Lock
	wait     time.Duration
	heard    chan<- any
	// copyTo gets a copy of the grant; nil for none.
	copyTo *actor.PID
}

// giveBack asks the employee to release the lock.
type giveBack struct{ holdID string }

func (e *employee) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Request(e.guardian, &messages.Acquire{Lock: e.lock, Wait: durationpb.New(e.wait)})
	case giveBack:
		ctx.Request(e.guardian, &messages.Release{Lock: e.lock, HoldId: m.holdID})
	case *messages.Acquired:
		if e.copyTo != nil {
			ctx.Send(e.copyTo, m)
		}
		e.heard <- m
	case *messages.NotAcquired, *messages.LeaseLost, *messages.Released, *messages.NotReleased:
		e.heard <- m
	}
}

// employ has an actor take a lock. Some of them die over it, some tell a colleague who
// has left of their grant.
func (w *worker) employ(what letter) {
	heard := make(chan any, 4) // a grant, a loss, and the ends
	root := w.c.actors.Root
	var copyTo *actor.PID
	if w.random.IntN(4) == 0 {
		copyTo = w.c.gone
	}
	b := w.writeTo(what, letterWait)
	pid := root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &employee{guardian: w.c.system.Guardian(), lock: what.lock, wait: letterWait, heard: heard, copyTo: copyTo}
	}))
	defer root.Stop(pid)
	select {
	case m := <-heard:
		if refused, ok := m.(*messages.NotAcquired); ok {
			b.note(history.Event{Stage: history.Refused, Err: named(refused.Reason)})
			return
		}
		b.granted(m.(*messages.Acquired))
	case <-time.After(patience):
		return // never answered: the judge will notice
	}
	select {
	case m := <-heard:
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
	for end := time.After(patience); ; {
		select {
		case m := <-heard:
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
