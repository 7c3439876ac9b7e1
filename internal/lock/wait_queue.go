package lock

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Entry is a process's entry in the wait queue of a lock. The first process of the queue gets the lock by a transfer.
type Entry struct {
	// Term is the term under which the process waits.
	Term uint64
	// Mode is the mode that the process wants.
	Mode machine.Mode
	// Tokens is the number of fencing tokens that a transfer draws for it.
	Tokens int64
	// TTL is the time that the entry lasts without being confirmed, and the length of a lease that is transferred to it.
	// Processes may differ in it, and each trusts a transfer for its own TTL.
	TTL time.Duration
	// Listens says that the process receives transfers. Package kinds sets it.
	Listens bool
	// Reserves says that the lock is one of several that are taken together: it cannot be transferred, and stays free
	// while this entry is the first. Package protocol sets it.
	Reserves bool
	// Waited is the time that the process has waited, if several scripts take the locks together. It decides the place of
	// a new entry. Package backend sets it.
	Waited time.Duration
}

// confirmation is a command that may have added or confirmed the entry in the wait queue.
type confirmation struct {
	seq    uint64
	sentAt machine.Instant
	mode   machine.Mode
	tokens int64
}

// maxConfirmations is the number of those commands that are remembered. A transfer that names an older one is not
// trusted, and the next try finds the lock held.
const maxConfirmations = 3

// confirmations are the last of those commands, in order. A change makes a new list.
type confirmations []confirmation

func (all confirmations) plus(one confirmation) confirmations {
	return append(slices.Clip(all[max(len(all)-maxConfirmations+1, 0):]), one)
}

func (all confirmations) without(match func(confirmation) bool) confirmations {
	return slices.DeleteFunc(slices.Clone(all), match)
}

// bySeq finds the command with that number.
func (all confirmations) bySeq(seq uint64) (one confirmation, found bool) {
	for _, one := range all {
		if one.seq == seq {
			return one, true
		}
	}
	return one, false
}

// takeEntry makes a command add or confirm the entry of that term, for the first request that does not only try.
func (l *Lock) takeEntry(c *Command, term uint64) {
	if !l.features.WaitQueue {
		return
	}
	c.Notified = l.wait.cause == messagesCame
	first, found := l.queue.FirstWaiting()
	if !found {
		return
	}
	c.Entry = Entry{Term: term, Mode: first.Mode, Tokens: l.tokens.toDraw(l.queue.Fenced()), TTL: l.cfg.TransferTTL()}
}

// poll returns the longest time between two tries of a waiter. Its entry must be confirmed before it expires.
func (l *Lock) poll() time.Duration {
	if l.features.WaitQueue {
		return l.cfg.EntryTimeout() / 2
	}
	return l.cfg.Poll
}

// lacksEntry reports whether the next try is to add an entry, since no command has.
func (l *Lock) lacksEntry() bool { return l.features.WaitQueue && len(l.wait.sent) == 0 }

// noteEntrySent remembers a command that adds or confirms the entry.
func (l *Lock) noteEntrySent(o *op, c *Command) {
	if o.kind == opYield {
		l.wait.sent = nil // the entry belongs to another term
	}
	l.wait.sent = l.wait.sent.plus(confirmation{seq: o.seq, sentAt: o.sentAt, mode: c.Entry.Mode, tokens: c.Entry.Tokens})
}

// forgetBefore forgets the commands before a try that was refused. A transfer that names one of them is over: the try
// would have found the lock held by its own term, unless the lock was taken away in between, or the try was for a
// writer, which ends a read hold of its own term. The message of such a transfer may still come.
func (l *Lock) forgetBefore(o op) {
	if l.features.Parts {
		return // a lock with parts gets no transfers
	}
	before := len(l.wait.sent)
	l.wait.sent = l.wait.sent.without(func(c confirmation) bool { return c.seq < o.seq })
	if len(l.wait.sent) < before {
		l.wait.traces = mayRemain // an entry that the try has not confirmed stays
	}
}

// Transferred makes this process the owner of a lock that another process has transferred to it.
func (l *Lock) Transferred(now machine.Instant, t machine.Transfer) {
	defer l.begin(now).settle()
	switch {
	case t.Term != l.lease.term && t.Term != l.main.next:
		// The transfer was for waiters that have left, or for a term that is over.
		if !slices.ContainsFunc(l.background, func(o op) bool { return o.term == t.Term }) {
			l.cleanUp(t.Term)
		}
	case l.phase == contending && l.main.InFlight, t.Term != l.lease.term:
		if t.Term != l.wait.transfer.Term || t.Seq > l.wait.transfer.Seq { // else t is over, and its message late
			l.wait.transfer = t
		}
	case l.phase == contending:
		l.takeTransfer(t)
	}
}

// takeTransfer begins the lease. The transfer was made after the command that it names was carried out, so the key
// lives for at least the TTL of a transfer from the time at which that command was sent. A later time would not be
// safe, since a transfer may have expired, and another process taken the lock, before its message arrives.
func (l *Lock) takeTransfer(t machine.Transfer) {
	l.wait.transfer = machine.Transfer{}
	by, known := l.wait.sent.bySeq(t.Seq)
	lease := l.cfg.TransferTTL()
	if l.cfg.Replicated || !known || t.Seq <= l.staleBefore || machine.TrustedUntil(by.sentAt, lease) <= l.now ||
		l.lease.isInDoubt(l.cfg.Watchdog, by.mode) { // the renewal sets that TTL
		l.attemptSoon() // the try finds the lock held, and gets a lease that can be trusted
		return
	}
	l.phase = owned
	l.order.grant(l,
		op{kind: opAcquire, mode: by.mode, lease: lease, sentAt: by.sentAt, particulars: particulars{draws: by.tokens}},
		Result{Outcome: Done, Tokens: t.Tokens})
	l.wait, l.lease.transferred = waiting{}, true
	// The TTL of a transfer is short: unless the turn is over soon, it is renewed at once.
	l.lease.renewAt = l.now + min((l.lease.until-l.now)/6, 2*l.cfg.HandOffLimit)
}
