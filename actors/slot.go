package actors

import (
	"sync"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// slot is where a caller finds the answer to its Call. Mostly it is there when the
// caller looks, since lock actors run on their senders' goroutines: a channel is only
// made for one that has to wait.
type slot struct {
	mu      sync.Mutex // guards what follows
	job     *redisio.Call
	answer  *Outcome
	waiting chan struct{}
}

// put brings the answer.
func (s *slot) put(answer *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
	s.wake()
}

// lend brings a command for the caller to run; the answer is still to come.
func (s *slot) lend(job *redisio.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.job = job
	s.wake()
}

// offer lends a command to a caller that is waiting at this moment, if it is.
func (s *slot) offer(job *redisio.Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		return false
	}
	s.job = job
	s.wake()
	return true
}

func (s *slot) wake() {
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}

// take waits for a job or the answer, in that order; neither means that ended has.
func (s *slot) take(ended <-chan struct{}) (*redisio.Call, *Outcome) {
	for {
		job, answer, more := s.look()
		if more == nil {
			return job, answer
		}
		select {
		case <-more:
		case <-ended:
			return nil, nil
		}
	}
}

// look gives what there is, or a channel that says when there is more.
func (s *slot) look() (job *redisio.Call, answer *Outcome, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.job != nil:
		job, s.job = s.job, nil
	case s.answer != nil:
		answer = s.answer
	default:
		s.waiting = make(chan struct{})
		more = s.waiting
	}
	return job, answer, more
}
