package observe

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Lock observes one lock, semaphore or latch. Only its actor may use it.
type Lock struct {
	o *Observer
	// label names the lock to people.
	label string
	// measured are the measurements of a step, for the metrics at its end. The slice is used again, so that a grant
	// allocates nothing.
	measured []measurement
	counted  counted
	events   events
	// wait says when a long wait is logged next.
	wait long
	// hold says when a long hold is logged next.
	hold long
}

// Lock returns a Lock for a lock of the System. label names it to people.
func (o *Observer) Lock(label string) Lock { return Lock{o: o, label: label} }

// Label names the lock to people.
func (l *Lock) Label() string { return l.label }

// Request is a request, or the hold that it was granted.
type Request struct {
	Kind messages.Kind
	// Leads: the request waits or waited to lead, which may last for days.
	Leads bool
	// Since is the time of the request or, after a grant, of the grant.
	Since machine.Instant
	// Parent is the context with the span that the spans of the request belong to; nil if there is none.
	Parent context.Context
}

// Hold describes a hold for a line in the log.
type Hold struct {
	Kind messages.Kind
	// Ref identifies the hold in its lock.
	Ref any
	// Client is the client part of the owner field in Redis.
	Client string
	// Term is the number in the owner field.
	Term uint64
	// Permit is the id of a permit, which has no owner field; nil for a lock.
	Permit fmt.Stringer
	// Age is the time for which the hold has lasted.
	Age time.Duration
	// Holder is the actor that has the hold; nil if it is a goroutine.
	Holder fmt.Stringer
}

// args are the attributes of a line about a hold.
func (l *Lock) args(h Hold) []any {
	args := []any{"lock", l.label, "kind", h.Kind}
	if h.Permit != nil {
		args = append(args, "permit", h.Permit.String())
	} else {
		args = append(args, "owner", fmt.Sprintf("%s:%d", h.Client, h.Term), "term", h.Term)
	}
	args = append(args, "age", rounded(h.Age))
	if h.Holder != nil {
		args = append(args, "holder", h.Holder.String())
	}
	return args
}

// Answered observes the answer to a request, which has been delivered. now is the time of the answer.
func (l *Lock) Answered(r Request, now machine.Instant, a *machine.Answer) {
	l.measureAnswer(r, now, a)
	l.traceAnswer(r, a)
	switch {
	case a.Reason == machine.NoPermits && a.Kind != machine.NotDone: // not of an Inspect, which needs none
		l.o.unset.refused(l.o, l.label, a.Detail)
	case a.Noticed: // for an operator this is a loss like any other
		l.measureLoss(r.Kind, machine.Gone)
		l.o.host.Warn("lease lost", "lock", l.label, "kind", r.Kind, "reason", messages.Reason_REASON_GONE, "detail", a.Detail)
	}
}

// Lost observes that a hold is lost. closing says that Close takes the holds from their holders.
func (l *Lock) Lost(h Hold, reason machine.Reason, detail string, closing bool) {
	l.measureLoss(h.Kind, reason)
	l.logLoss(h, reason, detail, closing)
	l.note(h.Ref, "lost", reasonAttribute, reasonWord(reason))
}

// closeLines is the number of holds ended by Close that are logged one by one.
const closeLines = 10

// logLoss logs that a hold was lost. The loss of a hold that Close ended needs no attention.
func (l *Lock) logLoss(h Hold, reason machine.Reason, detail string, closing bool) {
	level := slog.LevelWarn
	if reason == machine.Closed {
		level = slog.LevelInfo
		if closing && l.o.closedHolds.Add(1) > closeLines {
			return // Closed logs how many
		}
	}
	l.o.host.Log(level, "lease lost", append(l.args(h), "reason", messages.Reason(reason), "detail", detail)...)
}

// Closed logs how many holds that Close has ended are not logged one by one.
func (o *Observer) Closed() {
	if more := o.closedHolds.Load() - closeLines; more > 0 {
		o.host.Log(slog.LevelInfo, "Close has ended more holds", "more", more)
	}
}

// AtRisk observes that a lease ends after left if no renewal succeeds by then.
func (l *Lock) AtRisk(h Hold, left time.Duration, detail string) {
	l.measure(risks, subjectOf(h.Kind), 0, 1)
	l.note(h.Ref, "at_risk", "", "")
	l.o.host.Warn("lease at risk", append(l.args(h), "left", rounded(left), "detail", detail)...)
}

// HoldEnded observes that a hold has ended after that time, in whatever way. ref identifies the hold in its lock.
func (l *Lock) HoldEnded(r Request, ref any, after time.Duration) {
	l.measure(holdTime, subjectOf(r.Kind), 0, int64(after))
	l.traceHold(r, ref)
}
