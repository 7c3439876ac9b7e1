package kinds

import (
	"sync"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
)

// Stop implements Stopper.
func (k *semaphoreKind) Stop(m machine.Machine, now machine.Instant, reason machine.Reason, detail string, awaits bool) {
	if awaits {
		m.(*pool).Stop(now, reason, detail)
	} else {
		m.(*pool).Abandon(now, reason, detail)
	}
}

func (k *semaphoreKind) Cleanups(m machine.Machine) []Cleanup {
	left := &unfinished{of: k, pool: m.(*pool).Pool}
	if left.pool.Idle() {
		return nil
	}
	k.unfinished.Store(left)
	return []Cleanup{{request.MaxLease, left.whenDone}}
}

// Late gives the reply to the unfinished pool. No cleanup runs again, since the pool knows what is left.
func (k *semaphoreKind) Late(r *Reply) (cleanUpAgain bool) {
	if left := k.unfinished.Load(); left != nil {
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
	if left := k.unfinished.Load(); left != nil {
		left.event(func(now machine.Instant) {
			left.pool.Abandon(now, machine.Closed, "the Lockkeeper system was closed before Redis confirmed it")
		})
	}
}

// unfinished is the pool of an actor that was given up. All of its requests are answered, but some permits or
// count-downs are not confirmed yet. Replies come on any goroutine.
type unfinished struct {
	of *semaphoreKind

	mu   sync.Mutex // guards what follows
	pool semaphore.Pool
	done func(certain bool)
}

// whenDone calls done once nothing is left to give back.
func (r *unfinished) whenDone(done func(certain bool)) {
	r.event(func(machine.Instant) { r.done = done })
}

// event applies an event, and carries out its effects.
func (r *unfinished) event(event func(now machine.Instant)) {
	defer r.of.system.Host.Recover("panic while a semaphore's permits were given back")
	if done := r.apply(event); done != nil {
		done(true) // forgotten permits are reported already
	}
}

// apply applies an event. It returns the function to call if the pool is idle now.
func (r *unfinished) apply(event func(now machine.Instant)) (done func(certain bool)) {
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

// renewCommandClient is for an actor that leaves while one of its commands is not confirmed. The next actor's
// commands then count as another client's; otherwise Redis would refuse the unconfirmed command as outdated.
func (s *System) renewCommandClient() {
	client := s.NewClientID()
	s.commands.Store(&client)
}
