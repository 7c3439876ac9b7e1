package actors

import (
	"context"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// measure notes a measurement for the end of the step.
func (c *lockState) measure(i instrument, of subject, what word, n int64) {
	if c.rt.metrics != nil {
		c.measured = append(c.measured, measurement{sample{i, what, of}, n})
	}
}

// giveMeasured gives the metrics what was noted.
func (c *lockState) giveMeasured() {
	c.rt.metrics.add(c.measured...)
	c.measured = c.measured[:0]
}

// answered is what is measured and traced of a request after its answer, when the Call may be in use again.
type answered struct {
	kind   messages.Kind
	leads  bool
	since  lock.Instant
	parent context.Context
}

func (s *lockState) about(call *Call) answered {
	of := answered{kind: call.kind(), leads: call.Leads, since: call.from}
	if s.rt.cfg.Tracer != nil {
		of.parent = call.requester().parent(call)
	}
	return of
}

// measureAnswer measures the answer to a request.
func (s *lockState) measureAnswer(of answered, a *lock.Answer) {
	switch kind := subjectOf(of.kind); a.Kind {
	case lock.Granted:
		s.measure(grants, kind, grantVia(a), 1)
		s.measureWait(of, granted)
	case lock.NotGranted:
		s.measure(refusals, kind, word(a.Reason), 1)
		s.measureWait(of, refused)
	}
}

// measureWait measures a wait, unless it was that of a standby, which may last for days.
func (s *lockState) measureWait(of answered, result word) {
	if !of.leads {
		s.measure(waitTime, subjectOf(of.kind), result, int64(s.now-of.since))
	}
}

// Standbys counts requests that begin to wait to lead, or cease to.
func (r *Runtime) Standbys(kind messages.Kind, n int64) {
	r.metrics.add(measurement{sample{instrument: standbys, of: subjectOf(kind)}, n})
}

// wayOf is the way in which a lock came to its holder.
func grantVia(a *lock.Answer) word {
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

func (s *lockState) measureLoss(kind messages.Kind, reason lock.Reason) {
	if reason != lock.Closed {
		s.measure(losses, subjectOf(kind), word(reason), 1)
	}
}

// gauges are what the metrics were told of the holds and the waiters of one lock.
type gauges struct {
	kind           subject
	holds, waiters int
}

// gauge ends the measuring of a step with how many hold the lock and how many wait for it. It compares,
// since holds and waiters come and go in many ways. A plain lock that is used as a
// fenced one, too, is counted by the kind that was there first.
func (s *lockState) gauge() {
	if s.rt.metrics == nil {
		return
	}
	held, waiting, first := s.lock.Load()
	was := &s.gauges
	if was.holds == 0 && was.waiters == 0 && first != nil {
		was.kind = subjectOf(first.(*Call).kind())
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

// countRefused counts a request that no lock has seen.
func (m *metrics) countRefused(kind messages.Kind, reason lock.Reason) {
	m.add(measurement{sample{refusals, word(reason), subjectOf(kind)}, 1})
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
