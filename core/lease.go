package core

import (
	"errors"
	"fmt"
	"time"
)

var errNoReply = errors.New("no reply from Redis in time")

// lease is the process's right to the key in Redis.
type lease struct {
	// term is the number in the owner field, fresh for every term.
	term uint64
	// length is the TTL it was last given; fixed says that it is not renewed.
	length time.Duration
	fixed  bool
	// longest is the longest TTL that a command of this term has asked for, whatever
	// became of it.
	longest time.Duration
	// counts is how it is held in Redis, and mode how it is meant to be held.
	counts counts
	mode   Mode
	// closed: others wait, so that nobody may join those who share it; lookAt is when to
	// see whether they still do, after so many looks.
	closed bool
	lookAt Instant
	looks  int
	tokens tokens
	// until is how long the lease is trusted: from when the last command that
	// set the TTL was sent, never from when its reply came, and less the margin.
	until   Instant
	renewAt Instant
	atRisk  bool
	// tenureEnd is when the process must look whether others wait; openAt is when
	// it must give way even if it sees nobody.
	tenureEnd Instant
	openAt    Instant
	// doubt is the shortest TTL that a command of this term may still set, late,
	// although it was given up; 0 if there is none.
	doubt time.Duration
	// stray: one may still make the lease exclusive, or shared; by that mode.
	stray [2]bool
}

// givenUp takes note of a command that may still arrive.
func (l *Lock) givenUp(o *op) {
	if o.term != 0 && o.term == l.lease.term && (l.lease.doubt == 0 || o.lease < l.lease.doubt) {
		l.lease.doubt = o.lease
	}
	switch o.kind {
	case opAcquire, opGrant, opCount:
		mode := Shared
		if o.counts.exclusive > 0 {
			mode = Exclusive
		}
		if o.term != 0 && o.term == l.lease.term {
			l.lease.stray[mode] = true
		}
	}
}

// straying reports whether a late command might give the lease the other mode: as a
// reader it would let others in beside a writer, as a writer it would end a read hold.
func (l *Lock) straying(m Mode) bool { return l.lease.stray[Shared-m] }

// doubtful reports whether a late command might cut short a lease of that length: then
// the term must not be used for it.
func (l *Lock) doubtful(lease time.Duration) bool {
	return l.lease.doubt != 0 && l.lease.doubt < lease
}

// dropRenewal forgets the renewal under way.
func (l *Lock) dropRenewal() {
	if l.renewal.inFlight {
		l.givenUp(&l.renewal)
	}
	l.renewal = op{}
}

// extend takes note that o has set the TTL. A fixed lease is never shortened.
func (l *Lock) extend(o op) {
	l.lease.renewAt = o.sentAt + l.cfg.Renewal
	l.lease.atRisk = false
	if l.lease.fixed && o.kind == opRenew {
		return // its end stays
	}
	if until := o.sentAt + o.lease - Margin(o.lease); until > l.lease.until {
		l.lease.until, l.lease.length = until, o.lease
	}
}

// holdUntil is how long a hold is good for if nothing is renewed.
func (l *Lock) holdUntil(own hold) Instant {
	if own.until != 0 {
		return min(own.until, l.lease.until)
	}
	return l.lease.until
}

// renewed reports whether the lease is renewed. A fixed one is, as far as it goes, if it
// is shared: Redisson's renewals of other readers cut the TTL of them all. But no such
// renewal must overtake a change that sets a longer TTL.
func (l *Lock) renewed() bool {
	return !l.lease.fixed || l.lease.mode == Shared && l.main.kind != opCount
}

func (l *Lock) startRenewal(hurry bool) {
	l.renewal = op{kind: opRenew, term: l.lease.term, counts: l.lease.counts, mode: l.lease.mode, lease: l.countLease(nil, false), hurry: hurry}
	l.send(&l.renewal)
}

// suspect takes note that the key may have been taken away, also from what the command
// under way takes or renews: its reply may be older.
func (l *Lock) suspect() {
	l.suspected = l.phase == owned || l.main.inFlight
}

// findOut renews a lease that is suspected, if it has holders, to see whether it is still
// there.
func (l *Lock) findOut() {
	if l.suspected && l.holds.len() > 0 && !l.renewal.inFlight && (l.renewed() || l.main.kind == opNone) {
		l.startRenewal(true)
	}
}

func (l *Lock) renewalReplied(r Result) {
	o := l.renewal
	switch r.Outcome {
	case Done:
		l.renewal = op{}
		l.extend(o)
		l.wait.lastErr = ""
		var more []ensure
		for _, e := range l.ensures {
			if until := l.holdUntil(l.holds.byID(e.hold)); until >= e.until {
				l.answer(e.ref, Answer{Kind: Ensured, Until: until})
			} else {
				more = append(more, e)
			}
		}
		if l.ensures = more; more != nil {
			l.startRenewal(true) // this one was sent before they were asked for
		}
	case Absent:
		l.loseByResult(r)
	case Failed:
		reason, detail := failure(r)
		l.again(&l.renewal, r)
		l.refuseTries(reason, detail) // they would join when it has succeeded
		l.failEnsures(0, Unavailable, detail)
		l.wait.lastErr = detail
		if l.lease.atRisk {
			return
		}
		l.lease.atRisk = true
		for own := range l.holds.all() {
			l.effects = append(l.effects, Effect{Kind: TellAtRisk, Ref: own.ref, Answer: Answer{
				HoldID: own.id, Until: l.holdUntil(own), Tokens: own.tokens, Detail: "the lease could not be renewed: " + detail,
			}})
		}
	}
}

func failure(r Result) (Reason, string) {
	if r.Transient {
		return Unavailable, r.Err.Error()
	}
	return Rejected, r.Err.Error()
}

func (l *Lock) tellLost(own hold, reason Reason, detail string) {
	l.effects = append(l.effects, Effect{Kind: TellLost, Ref: own.ref, Answer: Answer{
		HoldID: own.id, Reason: reason, Tokens: own.tokens, Detail: detail,
	}})
	l.failEnsures(own.id, Lost, detail)
}

// lose ends the lease and with it the holds, whose holders are told. clean says that
// the key may still be ours in Redis.
func (l *Lock) lose(reason Reason, detail string, clean bool) {
	l.dropRenewal()
	lost := l.holds
	for own := range lost.all() {
		l.tellLost(own, reason, detail)
	}
	if o := l.main; o.joins() {
		l.queue.insert(o.ticket) // it has had no share yet
	} else if o.kind == opCount {
		l.refuseCount(Lost, detail)
	}
	for _, c := range l.changes {
		if c.ticket != nil {
			l.refuse(c.ticket.Ref, Lost, detail)
		} else {
			l.answer(c.ref, Answer{Kind: NotFreed, Reason: Lost, Detail: detail})
		}
	}
	l.changes = nil
	for own := range lost.all() {
		l.lost.add(own.id, reason)
		l.over(own)
	}
	if clean {
		l.cleanUp(l.lease.term)
	}
	l.afterRelease()
}

func (l *Lock) loseByResult(r Result) {
	if r.Taken || r.Outcome == Refused {
		l.lose(Taken, "the key belongs to somebody else now", l.kind.Parts)
		return
	}
	l.lose(Gone, "the key is gone from Redis: it was deleted, evicted or flushed, or it expired", l.kind.Parts)
}

// lapse ends what time has ended.
func (l *Lock) lapse() {
	switch l.phase {
	case owned:
		if l.holds.len() > 0 && l.now >= l.lease.until {
			l.lose(Expired, l.expiry(), true)
			return
		}
		holds := l.holds
		for own := range holds.all() {
			if own.until != 0 && l.now >= own.until {
				l.endHoldBy(own, own.ends, own.expiry())
			}
		}
	case releasing:
	default:
		return
	}
	// Between two holds, or after the last: the reply under way may still come.
	if l.holds.len() == 0 && l.now >= l.lease.until && !l.main.inFlight {
		l.giveUpTerm()
	}
}

func (h *hold) expiry() string {
	if h.ends == MaxHold {
		return "the hold has reached its max hold"
	}
	return "its fixed lease is over"
}

func (l *Lock) expiry() string {
	if l.lease.fixed {
		return fmt.Sprintf("its fixed lease of %v is over", l.lease.length)
	}
	if l.wait.lastErr == "" {
		return "no renewal was made in time: the process was stopped, asleep or too busy"
	}
	return "no renewal succeeded in time: " + l.wait.lastErr
}

// giveUpTerm stops waiting for a release to be confirmed; it goes on in the background.
func (l *Lock) giveUpTerm() {
	l.answer(l.main.ref, Answer{Kind: NotFreed, Reason: Unavailable,
		Detail: fmt.Sprintf("Redis has not confirmed the release, which is still being tried; the key expires by itself within %v", l.lease.length)})
	l.cleanUp(l.lease.term)
	l.afterRelease()
}
