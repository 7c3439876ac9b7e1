package actors

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// measure notes a measurement for the end of the step; see child.measured.
func (c *keyActor) measure(i instrument, of subject, what word, n int64) {
	if c.rt.metrics != nil {
		c.measured = append(c.measured, measurement{sample{i, what, of}, n})
	}
}

// giveMeasured gives the metrics what was noted.
func (c *keyActor) giveMeasured() {
	c.rt.metrics.add(c.measured...)
	c.measured = c.measured[:0]
}

// measureAnswer measures the answer to a request that was made at a time.
func (s *lockState) measureAnswer(by replier, a lock.Answer, since lock.Instant) {
	switch of := subjectOf(by.kind()); a.Kind {
	case lock.Granted:
		s.measure(grants, of, grantVia(a), 1)
		s.measureWait(by, of, granted, since)
	case lock.NotGranted:
		s.measure(refusals, of, word(a.Reason), 1)
		s.measureWait(by, of, refused, since)
	}
}

// measureWait measures a wait, unless it was that of a standby, which may last for days.
func (s *lockState) measureWait(by replier, of subject, result word, since lock.Instant) {
	if !by.leads() {
		s.measure(waitTime, of, result, int64(s.now-since))
	}
}

// Standbys counts requests that begin to wait to lead, or cease to.
func (r *Runtime) Standbys(kind messages.Kind, n int64) {
	r.metrics.add(measurement{sample{instrument: standbys, of: subjectOf(kind)}, n})
}

// wayOf is the way in which a lock came to its holder.
func grantVia(a lock.Answer) word {
	switch {
	case a.Count > 1:
		return byReentry
	case a.HandedOn:
		return byHandOff
	case a.Transferred:
		return byTransfer
	}
	return byRedis
}

func (s *lockState) measureLoss(by replier, reason lock.Reason) {
	if reason != lock.Closed {
		s.measure(losses, subjectOf(by.kind()), word(reason), 1)
	}
}

// gauges are what the metrics were told of the holds and the waiters of one lock.
type gauges struct {
	kind           subject
	holds, waiters int
}

// gauge ends the measuring of a step with how many hold the lock and how many wait for it. It compares,
// since holds and waiters come and go in many ways. Whoever uses a plain lock of that name as a
// fenced one, too, is counted by the kind that was there first.
func (s *lockState) gauge() {
	if s.rt.metrics == nil {
		return
	}
	held, waiting, first := s.lock.Load()
	was := &s.gauges
	if was.holds == 0 && was.waiters == 0 && first != nil {
		was.kind = subjectOf(first.(replier).kind())
	}
	if held != was.holds {
		s.measure(holds, was.kind, 0, int64(held-was.holds))
	}
	if waiting != was.waiters {
		s.measure(waiters, was.kind, 0, int64(waiting-was.waiters))
	}
	was.holds, was.waiters = held, waiting
	s.giveMeasured()
}

// measureAnswer measures the answer to a request.
func (s *permitState) measureAnswer(q *PermitRequest, a *semaphore.Answer) {
	if s.rt.metrics == nil || q.Op != PermitAcquire {
		return
	}
	of, result := s.key.subject(), granted
	switch {
	case a.Kind == semaphore.Refused:
		result = refused
		s.measure(refusals, of, word(a.Reason), 1)
	case a.HandedOn:
		s.measure(grants, of, byHandOff, 1)
	default:
		s.measure(grants, of, byRedis, 1)
	}
	s.measure(waitTime, of, result, int64(s.rt.Now()-q.from))
}

// gauge ends the measuring of a step with how many wait. It compares, since they come and go in many ways.
func (s *permitState) gauge() {
	if s.rt.metrics == nil {
		return
	}
	if now := s.pool.Waiters(); now != s.waiters {
		s.measure(waiters, s.key.subject(), 0, int64(now-s.waiters))
		s.waiters = now
	}
	s.giveMeasured()
}

// turnedAway counts a request that no lock has seen.
func (m *metrics) countRefused(by replier, reason lock.Reason) {
	if by.asked() == OpAcquire {
		m.add(measurement{sample{refusals, word(reason), subjectOf(by.kind())}, 1})
	}
}

// permitsTurnedAway counts a request that no pool has seen.
func (m *metrics) permitsTurnedAway(q *PermitRequest, reason lock.Reason) {
	if q.Op == PermitAcquire {
		m.add(measurement{sample{refusals, word(reason), q.key().subject()}, 1})
	}
}

// changed adds to what is counted up and down.
func (m *metrics) changed(i instrument, n int64) { m.add(measurement{sample{instrument: i}, n}) }

// outcome is the result of what Redis was asked.
func outcome(err *redisio.Error, otherwise word) word {
	switch {
	case err == nil:
		return otherwise
	case err.Transient:
		return word(lock.Unavailable)
	}
	return word(lock.Rejected)
}

// watch has what becomes of the calls to Redis measured.
func (m *metrics) watch() (w redisio.Watch) {
	if m == nil {
		return w
	}
	w.Called = func(script string, took time.Duration, err *redisio.Error) {
		m.called(script, outcome(err, done), took)
	}
	renewal := map[string]word{"renewed": renewed, "gone": word(lock.Gone), "taken": word(lock.Taken)}
	w.Renewed = func(result string, err *redisio.Error) {
		m.add(measurement{sample{renewals, outcome(err, renewal[result]), 0}, 1})
	}
	w.Reconnected = func() { m.changed(reconnects, 1) }
	return w
}
