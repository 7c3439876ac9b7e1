package actors

import (
	"sync"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// slot is where a caller finds the answer to its Call. Mostly it is there when the
// caller looks, since lock actors run on their senders' goroutines: only one that has to
// wait needs a bell.
type slot struct {
	mu     sync.Mutex // guards what follows
	job    *redisio.Call
	answer *Outcome
	bell   chan struct{} // somebody waits for it to be rung, once
}

// bells and outcomes are used again: what contention leaves to the garbage collector, its
// waiters wait for.
var (
	bells    = sync.Pool{New: func() any { return make(chan struct{}, 1) }}
	outcomes = sync.Pool{New: func() any { return new(Outcome) }}
)

// put brings the answer.
func (s *slot) put(answer Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = outcomes.Get().(*Outcome)
	*s.answer = answer
	s.ring()
}

// lend brings a command for the caller to run; the answer is still to come.
func (s *slot) lend(job *redisio.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.job = job
	s.ring()
}

// offer lends a command to a caller that is waiting at this moment, if it is.
func (s *slot) offer(job *redisio.Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bell == nil {
		return false
	}
	s.job = job
	s.ring()
	return true
}

func (s *slot) ring() {
	if s.bell != nil {
		s.bell <- struct{}{}
		s.bell = nil
	}
}

// take waits for a job or the answer, in that order; neither means that ended has.
func (s *slot) take(ended <-chan struct{}) (job *redisio.Call, answer Outcome, answered bool) {
	for {
		job, found, bell := s.look()
		switch {
		case job != nil:
			return job, answer, false
		case found != nil:
			answer = *found
			*found = Outcome{}
			outcomes.Put(found)
			return nil, answer, true
		}
		select {
		case <-bell:
			bells.Put(bell)
		case <-ended:
			return nil, answer, false // the bell may ring yet, and is of no use to another
		}
	}
}

// look gives what there is, or a bell that rings when there is more.
func (s *slot) look() (job *redisio.Call, answer *Outcome, bell chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.job != nil:
		job, s.job = s.job, nil
	case s.answer != nil:
		answer, s.answer = s.answer, nil
	default:
		s.bell = bells.Get().(chan struct{})
		bell = s.bell
	}
	return job, answer, bell
}
