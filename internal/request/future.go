package request

import (
	"context"
	"sync"
)

// Future passes the answer to a Call to its caller. Usually the answer arrives before the caller waits, since lock
// actors run on their senders' goroutines. Only a caller that has to wait needs a channel.
type Future struct {
	mu       sync.Mutex // guards the fields below
	errand   Errand
	answer   *Outcome
	answered bool          // the answer has been put: no errand may follow
	left     bool          // the caller will not look again
	ready    chan struct{} // signalled once, when an answer or an errand arrives; nil while the caller does not wait
}

// Errand is a command that the lock actor gives a caller to run.
type Errand interface {
	// Run runs the command on the goroutine that calls it.
	Run(within context.Context)
	// HandBack returns the command of an Errand that was not run.
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
// run, since the caller may have left before it looks again. It reports whether the caller may look at the answer.
func (f *Future) Complete(answer *Outcome) (unrun Errand, taken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	unrun, f.errand = f.errand, nil
	f.answered = true
	if f.left {
		return unrun, false
	}
	f.answer = answer
	f.signal()
	return unrun, true
}

// Leave gives up. It returns the answer if the answer has come; a later answer is not taken.
func (f *Future) Leave() (answer Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.ready = true, nil
	if f.answer != nil {
		answer, f.answer = *f.answer, nil
	}
	return answer
}

// Offer brings an errand, if the answer is still to come; with waiting, only if the caller is waiting at this moment.
// It reports whether it has brought the errand.
func (f *Future) Offer(errand Errand, waiting bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answered || f.errand != nil || waiting && f.ready == nil {
		return false
	}
	f.errand = errand
	f.signal()
	return true
}

func (f *Future) signal() {
	if f.ready != nil {
		f.ready <- struct{}{}
		f.ready = nil
	}
}

// Await waits for an errand, or for the answer, which the caller frees. It returns neither if ended is closed
// first.
func (f *Future) Await(ended <-chan struct{}) (errand Errand, answer *Outcome) {
	for {
		errand, answer, ready := f.poll()
		if errand != nil || answer != nil {
			return errand, answer
		}
		if ended == nil {
			<-ready // costs half as much as a select
		} else {
			select {
			case <-ready:
			case <-ended:
				return nil, nil // the channel may still be signalled, so no other Future may use it
			}
		}
		readyChannels.Put(ready)
	}
}

// poll returns the errand or the answer that is there, or a channel that is signalled when one comes.
func (f *Future) poll() (errand Errand, answer *Outcome, ready chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.errand != nil:
		errand, f.errand = f.errand, nil
	case f.answer != nil:
		answer, f.answer = f.answer, nil
	default:
		f.ready = readyChannels.Get().(chan struct{})
		ready = f.ready
	}
	return errand, answer, ready
}
