package request

import (
	"context"
	"sync"
)

// Future is where a caller finds the answer to its Call. Usually the answer arrives before
// the caller waits, since lock actors run on their senders' goroutines: only a caller that
// has to wait needs a channel.
type Future struct {
	mu       sync.Mutex // guards what follows
	errand   Errand
	answer   *Outcome
	answered bool          // the answer has been put: no errand may come any more
	left     bool          // the caller will not look again
	ready    chan struct{} // signalled once, when an answer or an errand arrives; nil while the caller does not wait
}

// Errand is a command that the lock actor gives a caller to run.
type Errand interface {
	// Run runs the command on the goroutine that calls it. HandBack returns the command of an Errand that was not run.
	Run(within context.Context)
	HandBack()
}

// readyChannels and outcomes are pooled: under contention the garbage collector would delay the waiters.
var (
	readyChannels = sync.Pool{New: func() any { return make(chan struct{}, 1) }}
	outcomes      = sync.Pool{New: func() any { return new(Outcome) }}
)

// NewOutcome returns an empty outcome.
func NewOutcome() *Outcome { return outcomes.Get().(*Outcome) }

// Free makes the memory available for another Outcome.
func (o *Outcome) Free() {
	*o = Outcome{}
	outcomes.Put(o)
}

// Complete brings the answer, which comes from NewOutcome, and takes back an errand that the caller has not begun to
// run: the caller may have left before it looks again. It reports whether the caller may look at the answer.
func (s *Future) Complete(answer *Outcome) (unrun Errand, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unrun, s.errand = s.errand, nil
	s.answered = true
	if s.left {
		return unrun, false
	}
	s.answer = answer
	s.signal()
	return unrun, true
}

// Leave is for a caller that gives up. It returns the answer if that has come; a later answer is not taken.
func (s *Future) Leave() (answer Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.ready = true, nil
	if s.answer != nil {
		answer, s.answer = *s.answer, nil
	}
	return answer
}

// Offer brings an errand, if the answer is still to come; with waiting, only if the caller is
// waiting at this moment. It reports whether it did.
func (s *Future) Offer(errand Errand, waiting bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered || s.errand != nil || waiting && s.ready == nil {
		return false
	}
	s.errand = errand
	s.signal()
	return true
}

func (s *Future) signal() {
	if s.ready != nil {
		s.ready <- struct{}{}
		s.ready = nil
	}
}

// Await waits for an errand, or for the answer, which the caller frees. It returns neither if ended is closed
// first.
func (s *Future) Await(ended <-chan struct{}) (errand Errand, answer *Outcome) {
	for {
		errand, answer, ready := s.poll()
		if errand != nil || answer != nil {
			return errand, answer
		}
		if ended == nil {
			<-ready // for half of what a select costs
		} else {
			select {
			case <-ready:
			case <-ended:
				return nil, nil // it may be signalled yet, and is of no use to another
			}
		}
		readyChannels.Put(ready)
	}
}

// poll returns the errand or the answer that is there, or a channel that is signalled when one comes.
func (s *Future) poll() (errand Errand, answer *Outcome, ready chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.errand != nil:
		errand, s.errand = s.errand, nil
	case s.answer != nil:
		answer, s.answer = s.answer, nil
	default:
		s.ready = readyChannels.Get().(chan struct{})
		ready = s.ready
	}
	return errand, answer, ready
}
