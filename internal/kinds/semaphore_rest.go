package kinds

import (
	"sync"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
)

// Stop implements Stopper. What has to be given back still is, unless Redis is awaited no longer.
func (k *semaphoreKind) Stop(m machine.Machine, now machine.Instant, reason machine.Reason, detail string, awaits bool) {
	if !m.Idle() {
		k.system.renewCommandClient()
	}
	if awaits {
		m.(*pool).Stop(now, reason, detail)
	} else {
		m.(*pool).Abandon(now, reason, detail)
	}
}

func (k *semaphoreKind) Cleanups(m machine.Machine) []Cleanup {
	left := &rest{of: k, pool: m.(*pool).Pool}
	if left.pool.Idle() {
		return nil
	}
	k.rest.Store(left)
	return []Cleanup{{request.MaxLease, left.whenDone}}
}

// Late gives the reply to what is left.
func (k *semaphoreKind) Late(r *Reply) (again bool) {
	if left := k.rest.Load(); left != nil {
		left.event(func(now machine.Instant) {
			result := r.Other.(semaphore.Result)
			left.pool.Replied(now, r.Seq, result)
			if result.Err != nil && !left.pool.Idle() { // nothing wakes the pool after a failure
				left.pool.Abandon(now, machine.Closed, "the actor was stopped, and then: "+result.Err.Error())
			}
		})
	}
	return false
}

func (k *semaphoreKind) Abandon() {
	if left := k.rest.Load(); left != nil {
		left.event(func(now machine.Instant) {
			left.pool.Abandon(now, machine.Closed, "the Lockkeeper system was closed before Redis confirmed it")
		})
	}
}

// rest is what is left of a pool when its actor has left: all requests are answered, and only what has to be given back
// still is. Replies come on any goroutine then.
type rest struct {
	of *semaphoreKind

	mu   sync.Mutex // guards what follows
	pool semaphore.Pool
	done func(certain bool)
}

// whenDone calls done once nothing is left to give back.
func (r *rest) whenDone(done func(certain bool)) {
	r.event(func(machine.Instant) { r.done = done })
}

// event applies an event, and does what follows from it.
func (r *rest) event(event func(now machine.Instant)) {
	defer r.of.system.Host.Recover("panic while a semaphore's permits were given back")
	if done := r.apply(event); done != nil {
		done(true) // or it was reported as forgotten
	}
}

// apply returns what to call if nothing is left.
func (r *rest) apply(event func(now machine.Instant)) (done func(certain bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.of.system
	if !r.pool.HasNextNumber() {
		r.pool.SetNextNumber(s.NextTerm())
	}
	event(s.Now())
	for e := (machine.Effect{}); r.pool.NextEffect(&e); {
		switch e.Kind {
		case machine.Send:
			r.of.send(*e.Ref.(*semaphore.Command))
		case machine.Forgotten:
			r.of.forgotten(e.Answer.Detail)
		}
	}
	if r.pool.Idle() {
		done, r.done = r.done, nil
	}
	return done
}

// Redis keeps the last command of each client about a semaphore or a latch, in a record that lasts for an hour: a
// copy of the command that arrives late is not carried out again.

// commandClient is the client id under which new actors of semaphores and latches send their commands.
func (s *System) commandClient() string { return *s.commands.Load() }

// renewCommandClient is for an actor that leaves while one of its commands is not confirmed. The next
// actor's commands then count as another client's, so that they do not make that command late.
func (s *System) renewCommandClient() {
	client := s.Sibling()
	s.commands.Store(&client)
}
