package lock

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// noteUnanswered remembers that an unanswered command may still arrive.
func (l *Lock) noteUnanswered(o *op) {
	if o.term != 0 && o.term == l.lease.term {
		l.lease.unanswered.Add(o.lease)
	}
	switch o.kind {
	case opAcquire, opGrant, opCount:
		mode := machine.Shared
		if o.counts.exclusive > 0 {
			mode = machine.Exclusive
		}
		if o.term != 0 && o.term == l.lease.term {
			l.lease.unansweredModes[mode] = true
		}
		l.noteTake(o, o.term)
	case opYield:
		l.noteTake(o, o.next)
	}
}

// noteUnansweredTry is noteUnanswered for a command that is followed by another try. The queue in Redis may get the
// waiters of both, in any order.
func (l *Lock) noteUnansweredTry(o *op) {
	l.noteUnanswered(o)
	if q := l.queueInRedis(); q != nil {
		q.noteUnanswered(o)
	}
}

// unansweredTake is an unanswered command which may still take the key, or add an entry to the wait queue, for a term.
type unansweredTake struct {
	seq, term uint64
	lease     time.Duration
}

// noteTake remembers an unansweredTake. The terms of a fair lock are 0 here and not remembered, since the next command
// about its queue deals with them.
func (l *Lock) noteTake(o *op, term uint64) {
	if term != 0 {
		l.takes = machine.AddUnanswered(l.takes, unansweredTake{o.seq, term, o.lease})
	}
}

// handleLateReply handles a reply that nothing awaits. If the command has taken the key for a term that is over, the
// key is released, since no process would know that it holds the key. The entry of such a term is removed, since the
// lock would be transferred to it.
func (l *Lock) handleLateReply(seq uint64, r Result) {
	i := slices.IndexFunc(l.takes, func(t unansweredTake) bool { return t.seq == seq })
	if i < 0 {
		return
	}
	t := l.takes[i]
	l.takes = slices.Delete(slices.Clone(l.takes), i, i+1)
	if (r.Outcome == Done || r.Outcome == Refused && l.features.WaitQueue) && t.term != l.lease.term {
		l.cleanUpWithin(t.term, t.lease)
	}
}

// modeMayChange reports whether an unanswered command might change the lease from mode m: as a reader it would admit
// others together with a writer, and as a writer it would end a read hold.
func (l *lease) modeMayChange(m machine.Mode) bool { return l.unansweredModes[m.Other()] }

// isInDoubt reports whether an unanswered command might change a lease of that length and mode.
func (l *lease) isInDoubt(length time.Duration, m machine.Mode) bool {
	return l.unanswered.MayCutShort(length) || l.modeMayChange(m)
}

// noteTTL notes that o has set the TTL. A fixed lease is never shortened.
func (l *lease) noteTTL(o *op, now machine.Instant, cfg *machine.Config) {
	l.renewAt = o.sentAt + cfg.RenewAfter(now-o.sentAt)
	l.atRisk = false
	if l.fixed && o.kind == opRenew {
		return // its end stays
	}
	if until := machine.TrustedUntil(o.sentAt, o.lease); until > l.until {
		l.until, l.length = until, o.lease
	}
}

// left returns the rest of the TTL in Redis, as far as the process knows.
func (l *lease) left(now machine.Instant) time.Duration {
	return max(l.until+machine.Margin(l.length)-now, time.Millisecond)
}

// handOffUntil returns the time until which the lease may pass to another holder without being renewed.
func (l *lease) handOffUntil(watchdog time.Duration) machine.Instant {
	return l.until - min(l.length, watchdog)/3
}

// holdUntil returns the end of a hold's validity without a renewal.
func (l *Lock) holdUntil(h hold) machine.Instant {
	if end := h.end(); end != 0 {
		return min(end, l.lease.until)
	}
	return l.lease.until
}

// longestTTL returns the time until which a key of this lease may be in Redis, even if a command arrives late.
func (l *Lock) longestTTL() machine.Instant { return l.now + l.maxTTL() }

// maxTTL returns the time from now until longestTTL.
func (l *Lock) maxTTL() time.Duration {
	longest := max(l.cfg.Watchdog, l.lease.length, l.lease.longest)
	if q := l.queueInRedis(); q != nil {
		longest = max(longest, q.longestLease)
	}
	return longest
}
