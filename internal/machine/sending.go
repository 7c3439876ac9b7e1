package machine

import (
	"errors"
	"time"
)

// Failure is why a command failed.
type Failure struct {
	// Err is nil if the command did not fail.
	Err error
	// Transient says that the command failed for now, and not permanently.
	Transient bool
	// Unsure says that the script may have run all the same.
	Unsure bool
	// Unconfirmed says that the script has run, but too few replicas are known to have what it wrote.
	Unconfirmed bool
}

// NoReply is the failure of a command whose reply did not come in time.
var NoReply = Failure{Err: errors.New("no reply from Redis in time"), Transient: true, Unsure: true}

// IsNoReply reports whether the failure says only that no reply came.
func (f *Failure) IsNoReply() bool { return f.Err != nil && f.Err.Error() == NoReply.Err.Error() }

// Why returns the reason and the detail of the refusals that a failure leads to.
func (f *Failure) Why() (Reason, string) {
	switch {
	case !f.Transient:
		return Rejected, f.Err.Error()
	case f.Unconfirmed:
		return NotReplicated, f.Err.Error()
	}
	return Unavailable, f.Err.Error()
}

// Sending is the state of a command that is sent, and sent again, until its outcome is known or does not matter.
type Sending struct {
	// InFlight says that the command was sent, and there is no reply yet.
	InFlight bool
	// Unsure says that an earlier try may have been carried out.
	Unsure bool
	// Tries counts the tries that have failed.
	Tries int
	// Last is the failure of the last try.
	Last Failure
	// Due is the time from which the reply is late, or at which the command is sent again.
	Due Instant
}

// Sent notes a try whose reply is awaited until a deadline.
func (s *Sending) Sent(deadline Instant) { s.InFlight, s.Due = true, deadline+ReplyGrace }

// Failed notes that the last try has failed. The next one is due after a pause.
func (s *Sending) Failed(now Instant, f Failure, pause time.Duration) {
	s.InFlight, s.Unsure, s.Last, s.Due = false, s.Unsure || f.Unsure, f, now+pause
	s.Tries++
}

// Rejected reports whether Redis permanently rejected the last try that has an outcome.
func (s *Sending) Rejected() bool { return s.Last.Err != nil && !s.Last.Transient }

// Overdue returns the failure of a try whose reply is late, to be handled like a failure that Redis replies; or it
// reports that another try is due. until ends the tries; 0 for no end.
func (s *Sending) Overdue(now, until Instant) (f *Failure, due bool) {
	switch {
	case s.Due == 0 || now < s.Due:
		return nil, false
	case s.InFlight:
		return &NoReply, false
	case until != 0 && now >= until: // the process was stopped, or the machine slept
		last := s.Last
		last.Transient = true
		return &last, false
	}
	return nil, true
}
