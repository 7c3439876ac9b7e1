package expirable

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

const (
	tooFew   = "too few permits are free; see lockkeeper inspect"
	beingSet = "the number of permits is being set, which takes up to Config.Watchdog"
)

// expire ends requests that have waited for too long.
func (s *Semaphore) expire() {
	for _, req := range s.queue.RemoveExpired(s.now, machine.MaxExpired) {
		switch {
		case s.main.Last.Err != nil: // no Acquire is sent before that is over
			reason, detail := s.main.Last.Why()
			s.refuse(req, reason, detail)
		case s.wait.LastErr != "":
			s.refuse(req, s.wait.lastReason, s.wait.LastErr)
		case req.Try, !s.wait.Refused && len(s.holds) == 0:
			s.refuse(req, machine.Unavailable, s.cfg.NoAnswer())
		default:
			s.refuse(req, machine.TimedOut, tooFew)
		}
	}
	s.expireBack()
	s.expireSets()
}

// tryUnreserved makes a try due when the request for which Redis may reserve permits has left: other requests may have
// waited for these permits, also in other processes.
func (s *Semaphore) tryUnreserved() {
	if s.reserved != 0 && s.queue.Len() > 0 && s.queue.Head().ID != s.reserved && !s.wait.defers && s.wait.Tries == 0 {
		s.wait.NextAt = s.now
	}
}

// mayTry reports whether an Acquire is due: for the requests that wait or, if none does, to end a reservation.
func (s *Semaphore) mayTry() bool {
	if s.queue.Len() == 0 {
		return s.reserved != 0 && (s.wait.Tries == 0 || s.now >= s.wait.NextAt)
	}
	return s.now >= s.wait.NextAt
}

// refuseTries refuses the tries of an Acquire that could not serve them, and the tries behind a request that waits.
func (s *Semaphore) refuseTries(asked []*Request) {
	first, waits := s.queue.FirstWaiting()
	for _, req := range s.queue.RemoveTries(func(req *Request) bool {
		return req.ID <= asked[len(asked)-1].ID || waits && req.ID > first.ID
	}) {
		s.refuse(req, machine.Held, tooFew)
	}
}
