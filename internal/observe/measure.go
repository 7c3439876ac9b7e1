package observe

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// measure notes a measurement for the end of the step.
func (l *Lock) measure(i instrument, of subject, what word, n int64) {
	if l.o.metrics != nil {
		l.measured = append(l.measured, measurement{sample{i, what, of}, n})
	}
}

// giveMeasured gives the noted measurements to the metrics.
func (l *Lock) giveMeasured() {
	l.o.metrics.add(l.measured...)
	l.measured = l.measured[:0]
}

// measureAnswer measures the answer to a request.
func (l *Lock) measureAnswer(r Request, now machine.Instant, a *machine.Answer) {
	switch kind := subjectOf(r.Kind); a.Kind {
	case machine.Granted:
		l.measure(grants, kind, grantVia(a), 1)
		l.measureWait(r, now, granted)
	case machine.NotGranted:
		l.measure(refusals, kind, word(a.Reason), 1)
		l.measureWait(r, now, refused)
	}
}

// measureWait measures the wait of a request, but not of a standby, whose wait may last for days.
func (l *Lock) measureWait(r Request, now machine.Instant, result word) {
	if !r.Leads {
		l.measure(waitTime, subjectOf(r.Kind), result, int64(now-r.Since))
	}
}

// grantVia is the way in which a lock came to its holder.
func grantVia(a *machine.Answer) word {
	switch {
	case a.Count > 1:
		return byReentry
	case a.HandedOff:
		return byHandOff
	case a.Transferred:
		return byTransfer
	}
	return byRedis
}

func (l *Lock) measureLoss(kind messages.Kind, reason machine.Reason) {
	if reason != machine.Closed {
		l.measure(losses, subjectOf(kind), word(reason), 1)
	}
}

// counted are the numbers of holds and waiters of one lock that the metrics include.
type counted struct {
	kind           subject
	holds, waiters int
}

// StepEnded ends the measuring of a step. held is the number of holds, waiting the number of waiters, and kind the kind
// of the first of them. StepEnded compares with the last numbers, since holds and waiters come and go in many ways. If
// a plain lock is also used as a fenced lock, both are counted by the kind that was there first.
func (l *Lock) StepEnded(held, waiting int, kind messages.Kind) {
	was := &l.counted
	if was.holds == 0 && was.waiters == 0 {
		was.kind = subjectOf(kind)
	}
	if held != was.holds {
		l.measure(holds, was.kind, 0, int64(held-was.holds))
	}
	if waiting != was.waiters {
		l.measure(waiters, was.kind, 0, int64(waiting-was.waiters))
	}
	was.holds, was.waiters = held, waiting
	l.giveMeasured()
}

// Called measures the call of a script, and how long it took.
func (o *Observer) Called(script string, took time.Duration, end CallEnd) {
	o.metrics.called(script, end.word(done), took)
}

// Renewed measures a lease that was to be renewed. If the call was served, result is "renewed", "gone" or "taken".
func (o *Observer) Renewed(result string, end CallEnd) {
	o.metrics.add(measurement{sample{renewals, end.word(renewalWords[result]), 0}, 1})
}

var renewalWords = map[string]word{"renewed": renewed, "gone": word(machine.Gone), "taken": word(machine.Taken)}

// Reconnected measures a connection for subscriptions that replaces a broken connection.
func (o *Observer) Reconnected() { o.metrics.changed(reconnects, 1) }
