package lock

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// release ends the lease in Redis.
func (l *Lock) release(ref any) {
	l.phase = releasing
	l.renewal = renewal{}
	l.start(op{kind: opRelease, lease: l.cfg.Watchdog, ref: ref})
}

// releaseInstead releases the lease after a command whose outcome is not known.
func (l *Lock) releaseInstead(r Result) {
	if r.Unsure {
		l.noteUnanswered(&l.main) // before it becomes a release
	}
	// A yield may have been carried out: then it has added an entry, which gets the lock in its turn.
	if term := cmp.Or(l.wait.transfer.Term, l.main.next); term != 0 {
		l.cleanUp(term)
		l.wait.transfer = machine.Transfer{}
	}
	l.main.kind, l.main.counts, l.main.request, l.main.next = opRelease, counts{}, nil, 0
	l.retryLater(&l.main, r)
	l.phase = releasing
}

func (l *Lock) releaseCommand(o *op, c *Command) {
	c.Kind, c.MaxTTL = Release, o.until-l.now
}

func (l *Lock) releaseReplied(o op, r Result) {
	if q := l.queueInRedis(); q != nil {
		r = q.released(l, o, r)
	}
	switch {
	case r.Outcome == Failed && r.Transient:
		l.retryLater(&l.main, r)
		l.wait.LastErr = r.Err.Error()
		l.refuseTries(machine.Unavailable, l.wait.LastErr)
		return
	case r.Outcome == Failed:
		reason, detail := r.Why()
		l.effects.Refuse(o.ref, machine.NotFreed, reason, detail)
		l.leaveToExpire(l.longestTTL())
	case r.Outcome == Absent:
		l.answerRelease(o)
	default:
		l.answer(o.ref, machine.Answer{Kind: machine.Freed})
	}
	l.afterRelease()
}

// answerRelease answers a release that did not find the lease in Redis: it was lost before, unless an earlier try has
// released it.
func (l *Lock) answerRelease(o op) {
	if o.Unsure {
		l.answer(o.ref, machine.Answer{Kind: machine.Freed})
		return
	}
	l.answer(o.ref, machine.Answer{
		Kind: machine.NotFreed, Reason: machine.Lost, Noticed: true,
		Detail: "its release has found that its key was gone, or belonged to another owner",
	})
}

// afterRelease resets the state after a term.
func (l *Lock) afterRelease() {
	if l.main.InFlight {
		l.noteUnanswered(&l.main)
	}
	l.main, l.phase, l.suspected = op{}, free, false
	l.beginTerm(0)
}

// cleanUp releases a term of this lease in the background.
func (l *Lock) cleanUp(term uint64) { l.cleanUpWithin(term, l.maxTTL()) }

// cleanUpWithin releases an ended term in the background. Its key may be in Redis for that long.
func (l *Lock) cleanUpWithin(term uint64, ttl time.Duration) {
	l.inBackground(op{kind: opRelease, term: term, lease: l.cfg.Watchdog, until: l.now + max(ttl, l.cfg.Watchdog)})
}

// cleanUpOwn releases an ended term, if a reply says that this term has the lock.
func (l *Lock) cleanUpOwn(r Result) { l.cleanUpWithin(r.OwnTerm, max(l.maxTTL(), r.TTL)) }

// leaveToExpire reports that a key was not released and expires by itself.
func (l *Lock) leaveToExpire(until machine.Instant) {
	l.effects.Add(machine.Effect{Kind: machine.LeaveToExpire, Answer: machine.Answer{Until: until}})
}

// releaseInBackground ends the wait for a release to be confirmed; the release continues in the background.
func (l *Lock) releaseInBackground() {
	answer := func(detail string) {
		l.effects.Refuse(l.main.ref, machine.NotFreed, machine.Unavailable, detail)
	}
	if l.main.kind == opKeep {
		answer("Redis has not confirmed that the lock is kept for its minimum time, which is still being tried")
		until := max(l.main.until, l.now+l.cfg.Watchdog) // if the key is not kept by then, it has expired
		l.inBackground(op{kind: opKeep, term: l.lease.term, until: until, particulars: l.main.particulars})
	} else {
		answer(fmt.Sprintf(
			"Redis has not confirmed the release, which is still being tried; the key expires by itself within %v",
			max(l.lease.length, l.lease.longest)))
		l.cleanUp(l.lease.term)
	}
	l.afterRelease()
}

// force frees the lock if one of the owners holds it in that mode. Local holders are notified first.
func (l *Lock) force(mode machine.Mode, owners machine.Owners, ref any) {
	l.lease.lingerUntil = 0 // a hold that begins before the reply would not be ended
	o := op{kind: opForce, ref: ref, mode: mode, lease: l.cfg.Watchdog, until: l.now + l.cfg.CallTimeout}
	o.owners = owners.Fields
	if meant := owners.Fields == nil || owners.Term == l.lease.term; meant && l.holds.len() > 0 && l.lease.mode == mode {
		o.term, o.keyEnds = l.lease.term, l.longestTTL()
		l.lose(machine.Forced, "the lock was force-released", false)
	}
	l.inBackground(o)
}

func (l *Lock) forceCommand(o *op, c *Command) { c.Kind, c.Owners = ForceRelease, o.owners }

func (l *Lock) forceTimeout(o *op) time.Duration { return min(l.cfg.CallTimeout, o.until-l.now) }

// forceReplied answers a forced release.
func (l *Lock) forceReplied(o op, r Result) {
	heldHere := o.term != 0
	switch {
	case r.Outcome == Failed:
		reason, detail := r.Why()
		l.effects.Refuse(o.ref, machine.NotDone, reason, detail)
	case r.WasHeld || heldHere:
		l.answer(o.ref, machine.Answer{Kind: machine.ForceReleased, Count: 1})
	default:
		l.answer(o.ref, machine.Answer{Kind: machine.ForceReleased})
	}
	if heldHere && !r.WasHeld {
		// It failed, or it came after a change of mode and found the other mode.
		l.cleanUpWithin(o.term, o.keyEnds-l.now)
	}
	l.suspect() // it may have hit a term that began meanwhile
}
