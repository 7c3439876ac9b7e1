package lock

import (
	"slices"
	"time"
)

// Place is a process's place in the line of processes that wait for a lock. The process whose turn
// it is gets the lock by a transfer.
type Entry struct {
	// Term is the term under which the process waits.
	Term uint64
	// Mode is how it wants the lock, and Tokens how many fencing tokens a transfer draws for it.
	Mode   Mode
	Tokens int64
	// TTL is how long the place is kept without being confirmed, and how long a lease is that is
	// transferred to it. Processes may differ in it, and each trusts a transfer for its own.
	TTL time.Duration
	// Listens says that the process hears of transfers. The lock actor fills it in.
	Listens bool
	// Reserves says that the lock is one of several that are taken together: it cannot be
	// transferred, and is left free while this place is the first. Package protocol fills it in.
	Reserves bool
}

// Transfer says that another process has made this one the holder of the lock, under the term of
// its place in the line.
type Transfer struct {
	Term uint64
	// Seq is the number of the command that took the place or confirmed it last.
	Seq uint64
	// Tokens are the highest tokens drawn, one per counter.
	Tokens []int64
}

// placed is a command that may have taken a place in the line, or confirmed it.
type queued struct {
	seq    uint64
	sentAt Instant
	mode   Mode
	tokens int64
}

// mostPlaced is how many of those commands are remembered. A transfer that names an older one is
// not trusted, and the next try finds the lock held.
const maxQueued = 3

// takePlace makes a command take a place in the line as that term, for the first request that
// waits for more than one reply.
func (l *Lock) takeEntry(c *Command, term uint64) {
	if !l.kind.WaitQueue {
		return
	}
	first, found := l.queue.waiters.Patient()
	if !found {
		return
	}
	c.Entry = Entry{Term: term, Mode: first.Mode, Tokens: l.reserve(), TTL: l.cfg.TransferTTL()}
}

// poll is the longest time between two tries of a waiter. Its place in the line must be confirmed
// before it is lost.
func (l *Lock) poll() time.Duration {
	if l.kind.WaitQueue {
		return l.cfg.EntryTimeout() / 2
	}
	return l.cfg.Poll
}

// placeSent remembers a command that takes a place.
func (l *Lock) entrySent(o *op, c *Command) {
	sent := l.wait.sent
	if o.kind == opYield {
		sent = nil // the place is that of another term
	}
	sent = sent[max(len(sent)-maxQueued+1, 0):]
	l.wait.sent = append(slices.Clip(sent), queued{seq: o.seq, sentAt: o.sentAt, mode: c.Entry.Mode, tokens: c.Entry.Tokens})
}

// placeRefused forgets a command that was certainly not carried out.
func (l *Lock) entryRefused(seq uint64) {
	l.wait.sent = slices.DeleteFunc(slices.Clone(l.wait.sent), func(p queued) bool { return p.seq == seq })
}

// Transferred takes over a lock that another process has transferred to this one.
func (l *Lock) Transferred(now Instant, t Transfer) {
	l.begin(now)
	defer l.settle()
	switch {
	case t.Term != l.lease.term && t.Term != l.main.next:
		// It was for waiters that have left, or for a term that was given up.
		if !slices.ContainsFunc(l.background, func(o op) bool { return o.term == t.Term }) {
			l.cleanUp(t.Term)
		}
	case l.phase == contending && l.main.inFlight, t.Term != l.lease.term:
		l.wait.transfer = t
	case l.phase == contending:
		l.takeTransfer(t)
	}
}

// takeTransfer makes the lease ours. The transfer was made after the command that it names was
// carried out, so the key lives for the TTL of a transfer from when that command was sent.
// Anything later would not be safe: a transfer may have expired, and another process taken the
// lock, before the message about it arrives.
func (l *Lock) takeTransfer(t Transfer) {
	l.wait.transfer = Transfer{}
	i := slices.IndexFunc(l.wait.sent, func(p queued) bool { return p.seq == t.Seq })
	lease := l.cfg.TransferTTL()
	if l.cfg.Replicated || i < 0 || t.Seq <= l.staleBefore || l.wait.sent[i].sentAt+lease-Margin(lease) <= l.now ||
		l.mayBeCutShort(l.cfg.Watchdog) || // the renewal sets that TTL
		l.modeMayChange(l.wait.sent[i].mode) {
		l.attemptSoon() // which finds the lock held, and gets a lease that can be trusted
		return
	}
	by := l.wait.sent[i]
	l.phase = owned
	l.order.taken(l, op{kind: opAcquire, mode: by.mode, lease: lease, sentAt: by.sentAt, reserved: by.tokens}, Result{Outcome: Done, Tokens: t.Tokens})
	l.wait, l.lease.transferred = waiting{}, true
	// The TTL of a transfer is short: unless the turn is over soon, it is renewed at once.
	l.lease.renewAt = l.now + min((l.lease.until-l.now)/6, 2*l.cfg.HandOffLimit)
}
