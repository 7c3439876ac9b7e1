package kinds

import (
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
)

// Stop implements Stopper.
func (a *semaphoreAdapter) Stop(m machine.Machine, now machine.Instant, reason machine.Reason, detail string, awaits bool) {
	if p := m.(*semaphore.Pool); awaits {
		p.Stop(now, reason, detail)
	} else {
		p.Abandon(now, reason, detail)
	}
}

func (a *semaphoreAdapter) Cleanups(m machine.Machine) []Cleanup {
	pending := &pendingReturn{adapter: a, pool: *m.(*semaphore.Pool)}
	if pending.pool.Idle() {
		return nil
	}
	a.pendingReturn.Store(pending)
	return []Cleanup{{request.MaxLease, pending.whenDone}}
}

// Late gives the reply to the pending return. No cleanup runs again, since the pool knows what it still has to give
// back.
func (a *semaphoreAdapter) Late(r *Reply) (cleanUpAgain bool) {
	if pending := a.pendingReturn.Load(); pending != nil {
		pending.deliver(func(now machine.Instant) { pending.pool.Replied(now, r.Seq, r.Other.(semaphore.Result)) })
	}
	return false
}

func (a *semaphoreAdapter) Abandon() {
	if pending := a.pendingReturn.Load(); pending != nil {
		pending.deliver(func(now machine.Instant) {
			pending.pool.Abandon(now, machine.Closed, "the Lockkeeper system was closed before Redis confirmed it")
		})
	}
}

// pendingReturn is the pool of an actor that was given up. All of its requests are answered, but some permits or
// count-downs are not confirmed yet. Replies come on any goroutine.
type pendingReturn struct {
	adapter *semaphoreAdapter

	mu   sync.Mutex // guards the fields below
	pool semaphore.Pool
	done func(certain bool)
	wake *time.Timer // sends a failed command again
}

// whenDone calls done once nothing is left to give back.
func (r *pendingReturn) whenDone(done func(certain bool)) {
	r.deliver(func(machine.Instant) { r.done = done })
}

// deliver applies an event, and carries out its effects.
func (r *pendingReturn) deliver(event func(now machine.Instant)) {
	defer r.adapter.kinds.Host.Recover("panic while a semaphore's permits were given back")
	if done := r.applyEvent(event); done != nil {
		done(true) // forgotten permits are reported already
	}
}

// applyEvent applies an event. It returns the function to call if the pool is idle now.
func (r *pendingReturn) applyEvent(event func(now machine.Instant)) (done func(certain bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.adapter.kinds
	if !r.pool.HasNextNumber() {
		r.pool.SetNextNumber(s.NextTerm())
	}
	event(s.Now())
	for e := (machine.Effect{}); r.pool.NextEffect(&e); {
		switch e.Kind {
		case machine.Send:
			r.adapter.send(*e.Ref.(*semaphore.Command))
		case machine.Forgotten:
			r.adapter.reportForgotten(e.Answer.Detail)
		}
	}
	if r.wake != nil {
		r.wake.Stop()
	}
	if r.pool.Idle() {
		done, r.done = r.done, nil
	} else if at, ok := r.pool.NextWake(); ok {
		r.wake = time.AfterFunc(at-s.Now(), func() { r.deliver(r.pool.Tick) })
	}
	return done
}
