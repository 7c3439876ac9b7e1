package actors

import (
	"sync"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// slot is where a caller finds the answer to its Call. Mostly it is there when the
// caller looks, since lock actors run on their senders' goroutines: only one that has to
// wait needs a bell.
type slot struct {
	mu       sync.Mutex // guards what follows
	loan     *loan
	answer   *Outcome
	answered bool          // the answer has been put: nothing may be lent any more
	left     bool          // the caller will not look again
	bell     chan struct{} // somebody waits for it to be rung, once
}

// loan is a command for the caller to run. It counts among the runtime's lenders until it
// has been run or handed back.
type loan struct {
	rt   *Runtime
	call redisio.Call
}

// bells and outcomes are used again: what contention leaves to the garbage collector, its
// waiters wait for.
var (
	bells    = sync.Pool{New: func() any { return make(chan struct{}, 1) }}
	outcomes = sync.Pool{New: func() any { return new(Outcome) }}
)

// put brings the answer, and takes back a command that the caller has not begun to run: it
// may have left before it looks again. It reports whether the answer may be looked at.
func (s *slot) put(answer Outcome) (unrun *loan, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unrun, s.loan = s.loan, nil
	s.answered = true
	if s.left {
		return unrun, false
	}
	s.answer = outcomes.Get().(*Outcome)
	*s.answer = answer
	s.ring()
	return unrun, true
}

// leave is for a caller that gives up. It gives the answer if that has come; one that
// comes later is not taken.
func (s *slot) leave() (answer Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.bell = true, nil
	if s.answer != nil {
		answer, s.answer = *s.answer, nil
	}
	return answer
}

// lend brings a command for the caller to run, if the answer is still to come; with
// waiting, only if the caller is waiting at this moment. It reports whether it did.
func (s *slot) lend(job *loan, waiting bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered || s.loan != nil || waiting && s.bell == nil {
		return false
	}
	s.loan = job
	s.ring()
	return true
}

func (s *slot) ring() {
	if s.bell != nil {
		s.bell <- struct{}{}
		s.bell = nil
	}
}

// take waits for a command to run or for the answer; neither means that ended has.
func (s *slot) take(ended <-chan struct{}) (job *loan, answer Outcome, answered bool) {
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
func (s *slot) look() (job *loan, answer *Outcome, bell chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.loan != nil:
		job, s.loan = s.loan, nil
	case s.answer != nil:
		answer, s.answer = s.answer, nil
	default:
		s.bell = bells.Get().(chan struct{})
		bell = s.bell
	}
	return job, answer, bell
}
