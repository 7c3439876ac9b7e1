package request

import (
	"context"
	"sync"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// Future is where a caller finds the answer to its Call. Usually the answer arrives before
// the caller waits, since lock actors run on their senders' goroutines: only a caller that
// has to wait needs a channel.
type Future struct {
	mu       sync.Mutex // guards what follows
	loan     *Loan
	answer   *Outcome
	answered bool          // the answer has been put: nothing may be lent any more
	left     bool          // the caller will not look again
	ready    chan struct{} // signalled once, when an answer or a command arrives; nil while the caller does not wait
}

// Loan is a command for the caller to run. It counts among the runtime's lenders until it
// has run or is handed back.
type Loan struct {
	Lender Lender
	Call   redisclient.Call
}

// Lender lends commands.
type Lender interface {
	// Run runs a command on the goroutine that calls it. HandBack takes one that was not run.
	Run(within context.Context, call *redisclient.Call)
	HandBack(call redisclient.Call)
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

// Complete brings the answer, which comes from NewOutcome, and takes back a command that the caller has not begun to
// run: the caller may have left before it looks again. It reports whether the caller may look at the answer.
func (s *Future) Complete(answer *Outcome) (unrun *Loan, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unrun, s.loan = s.loan, nil
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

// Lend brings a command for the caller to run, if the answer is still to come; with
// waiting, only if the caller is waiting at this moment. It reports whether it did.
func (s *Future) Lend(job *Loan, waiting bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered || s.loan != nil || waiting && s.ready == nil {
		return false
	}
	s.loan = job
	s.signal()
	return true
}

func (s *Future) signal() {
	if s.ready != nil {
		s.ready <- struct{}{}
		s.ready = nil
	}
}

// Await waits for a command to run, or for the answer, which the caller frees. It returns neither if ended is closed
// first.
func (s *Future) Await(ended <-chan struct{}) (job *Loan, answer *Outcome) {
	for {
		job, answer, ready := s.poll()
		if job != nil || answer != nil {
			return job, answer
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

// poll returns the command or the answer that is there, or a channel that is signalled when one comes.
func (s *Future) poll() (job *Loan, answer *Outcome, ready chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.loan != nil:
		job, s.loan = s.loan, nil
	case s.answer != nil:
		answer, s.answer = s.answer, nil
	default:
		s.ready = readyChannels.Get().(chan struct{})
		ready = s.ready
	}
	return job, answer, ready
}
