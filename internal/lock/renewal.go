package lock

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// renewal is the watchdog's command.
type renewal struct {
	op
	// immediate says that the command is not batched with others.
	immediate bool
	// earlier are the tries whose replies are late. A late reply still counts, from the time at which its try was sent.
	earlier []try
}

// try is one sending of a renewal.
type try struct {
	seq    uint64
	sentAt machine.Instant
	lease  time.Duration
}

// dropRenewal forgets the renewal under way.
func (l *Lock) dropRenewal() {
	if l.renewal.InFlight {
		l.noteUnanswered(&l.renewal.op)
	}
	l.renewal = renewal{}
}

// isRenewed reports whether the lease is renewed. A fixed lease is renewed up to its end if it is shared, since
// Redisson's renewals of other readers shorten the TTL of them all. But a renewal must not overtake a change that sets
// a longer TTL.
func (l *Lock) isRenewed() bool {
	return l.main.kind != opExtend && (!l.lease.fixed || l.lease.mode == machine.Shared && l.main.kind != opCount)
}

// startRenewal sends a renewal. An immediate renewal is not batched with others.
func (l *Lock) startRenewal(immediate bool) {
	l.renewal = renewal{
		op: op{kind: opRenew, term: l.lease.term, counts: l.lease.counts, mode: l.lease.mode}, immediate: immediate,
	}
	l.send(&l.renewal.op)
}

// awaitRenewal renews the lease now, for a holder that needs it to be valid for longer.
func (l *Lock) awaitRenewal(e ensure) {
	l.ensures = append(l.ensures, e)
	if l.main.kind == opExtend {
		return // extendReplied renews the lease if that is still needed
	}
	if l.renewal.kind == opNone {
		l.startRenewal(true)
	} else if !l.renewal.InFlight {
		l.send(&l.renewal.op)
	}
}

func (l *Lock) renewCommand(o *op, c *Command) {
	l.suspected = false
	o.lease = l.countLease(nil, false)
	c.Kind, c.Immediate = Renew, l.renewal.immediate || o.Tries > 0 || !l.lease.fixed && l.lease.length < l.cfg.Watchdog
}

// renewTimeout leaves time for another try in what is left of the lease.
func (l *Lock) renewTimeout(*op) time.Duration { return l.cfg.Timeout(max(l.lease.until-l.now, 0)) }

// suspect notes that the key may have been taken away. A successful reply to a command under way proves nothing, since
// Redis may have carried out that command earlier.
func (l *Lock) suspect() {
	l.suspected, l.staleBefore = l.phase == owned || l.main.InFlight, l.seq
}

// checkSuspected renews a suspected lease that has holders, to find out whether it still exists.
func (l *Lock) checkSuspected() {
	if l.suspected && l.holds.len() > 0 && !l.renewal.InFlight && (l.isRenewed() || l.main.kind == opNone) {
		l.startRenewal(true)
	}
}

// retryOverdueRenewal schedules another try of a renewal whose reply is late. The process may be too busy to read
// replies, and the next reply would be late as well, so a late reply still counts.
func (l *Lock) retryOverdueRenewal(r Result) {
	o := &l.renewal
	o.earlier = machine.AddUnanswered(o.earlier, try{o.seq, o.sentAt, o.lease})
	l.renewalReplied(r)
}

// handleLateRenewal reports whether r is the late reply to an earlier try of the renewal, and handles it. A failure
// changes nothing, since the renewal has been sent again.
func (l *Lock) handleLateRenewal(seq uint64, r Result) bool {
	o := &l.renewal
	i := slices.IndexFunc(o.earlier, func(t try) bool { return t.seq == seq })
	if i < 0 {
		return false
	}
	late := *o
	late.seq, late.sentAt, late.lease = seq, o.earlier[i].sentAt, o.earlier[i].lease
	switch {
	case r.Outcome == Failed:
	case r.Outcome == Done && o.InFlight:
		o.earlier = o.earlier[i+1:]
		l.noteRenewal(late.op) // a later try has no reply yet
	default:
		l.renewal = late
		l.renewalReplied(r)
	}
	return true
}

// noteRenewal notes that a renewal has succeeded, and answers the requests that await it.
func (l *Lock) noteRenewal(o op) {
	l.lease.noteTTL(&o, l.now, l.cfg)
	l.wait.LastErr = ""
	var more []ensure
	for _, e := range l.ensures {
		if until := l.holdUntil(l.holds.byID(e.hold)); until >= e.until {
			l.answer(e.ref, machine.Answer{Kind: machine.Ensured, Until: until})
		} else {
			more = append(more, e)
		}
	}
	l.ensures = more
}

func (l *Lock) renewalReplied(r Result) {
	o := l.renewal
	switch r.Outcome {
	case Done:
		l.renewal = renewal{}
		if l.noteRenewal(o.op); l.ensures != nil {
			l.startRenewal(true) // this renewal was sent before those requests came
		}
	case Absent:
		l.loseByResult(r)
	case Failed:
		reason, detail := r.Why()
		l.retryLater(&l.renewal.op, r)
		l.refuseTries(reason, detail) // they wait for a renewal in order to join
		l.ensures = failIf(l, l.ensures, func(ensure) bool { return true }, machine.Unavailable, detail)
		warn := false
		if l.wait.LastErr, warn = l.lease.atRisk.Failed(&r.Failure, l.wait.LastErr); !warn {
			return
		}
		for h := range l.holds.all() {
			l.effects.Add(machine.Effect{Kind: machine.NotifyAtRisk, Ref: h.ref, Term: l.lease.term, Answer: machine.Answer{
				HoldID: h.id, Until: l.holdUntil(h), Tokens: h.tokens, Detail: "the lease could not be renewed: " + detail,
			}})
		}
	}
}
