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
	wait     time.Duration
	heard    chan<- any
}

var employed = &messages.Lock{Name: string(Actor)}

// giveBack asks the employee to release the lock.
type giveBack struct{ holdID string }

func (e *employee) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Request(e.guardian, &messages.Acquire{Lock: employed, Wait: durationpb.New(e.wait)})
	case giveBack:
		ctx.Request(e.guardian, &messages.Release{Lock: employed, HoldId: m.holdID})
	case *messages.Acquired, *messages.NotAcquired, *messages.LeaseLost, *messages.Released, *messages.NotReleased:
		e.heard <- m
	}
}

// employ has an actor take the lock; some of them die over it.
func (w *worker) employ() {
	what, random := choose(w.c.system, Actor, w.random), w.random
	heard := make(chan any, 4) // a grant, a loss, and the end
	id := w.asking(what.parts, 0, false)
	pid := w.c.actors.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &employee{guardian: w.c.system.Guardian(), wait: 2 * time.Second, heard: heard}
	}))
	defer w.c.actors.Root.Stop(pid)
	add := func(e history.Event) {
		e.ID, e.At = id, history.Now()
		w.r.out.Add(e)
	}
	var granted *messages.Acquired
	select {
	case m := <-heard:
		refused, isRefusal := m.(*messages.NotAcquired)
		if isRefusal {
			add(history.Event{Stage: history.Refused, Err: named(refused.Reason)})
			return
		}
		granted = m.(*messages.Acquired)
	case <-time.After(patience):
		return // never answered: the judge will notice
	}
	add(history.Event{Stage: history.Granted, Count: 1})
	lost := false
	select {
	case m := <-heard:
		add(history.Event{Stage: history.Told, Err: named(m.(*messages.LeaseLost).Reason)})
		lost = true
	case <-time.After(w.style.Hold.Pick(random)):
	case <-w.r.ctx.Done():
	}
	if !lost && random.IntN(2) == 0 {
		add(history.Event{Stage: history.Died})
		_ = w.c.actors.Root.StopFuture(pid).Wait()
		return
	}
	add(history.Event{Stage: history.Releasing})
	w.c.actors.Root.Send(pid, giveBack{granted.HoldId})
	for end := time.After(patience); ; {
		select {
		case m := <-heard:
			switch m := m.(type) {
			case *messages.LeaseLost:
				continue
			case *messages.NotReleased:
				doubtful := m.Reason != messages.Reason_REASON_LOST && m.Reason != messages.Reason_REASON_NOT_HELD
				add(history.Event{Stage: history.Released, Err: named(m.Reason), Doubtful: doubtful})
			default:
				add(history.Event{Stage: history.Released})
			}
			return
		case <-end:
			return
		}
	}
}
