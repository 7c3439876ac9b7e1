package lock

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// redisOrder is the order of the waiters of all processes, in one queue in Redis. While the process contends, its tries
// also list its waiters; at other times a command of its own does.
type redisOrder struct {
	// sentRevision is the revision of the local queue that was last sent.
	sentRevision uint64
	// registered says that the queue in Redis may have entries of this process.
	registered bool
	// lastListed is the number of the last command that listed the waiters.
	lastListed uint64
	// mustResend says that the command lastListed has failed, or that Redis may carry out an earlier command after it,
	// so the waiters have to be listed again.
	mustResend bool
	// unanswered says that a command that listed the waiters was not answered, and may be carried out after the next
	// one.
	unanswered bool
	// overlapped says that the command lastListed was under way together with an earlier command. If lastListed takes
	// the lock for a waiter, the earlier command may come later and add the waiter's entry again.
	overlapped bool
	// nextAt is the time at which the process confirms again that the waiters are alive.
	nextAt machine.Instant
	// longestLease is the longest lease of the waiters that may be in the queue in Redis. Redis may have granted it to
	// one of them without the process knowing.
	longestLease time.Duration
	// top is the highest term that has had an entry.
	top uint64
	// placed are the terms that were listed last, in the order of their entries. A waiter that has come back, after its
	// owner held the lock, has an entry behind those that came meanwhile.
	placed []uint64
}

// syncing is the command that only lists the waiters.
type syncing struct {
	op
	// behind is the term of the hold behind which the command lists the waiters.
	behind uint64
}

// maxEntries bounds how many waiters of a process have an entry in Redis.
const maxEntries = 100

// minTries is the least number of times that the departure of waiters is sent to Redis, even after a pause of the
// process that was longer than the time for that.
const minTries = 3

// clone returns a copy, for one event.
func (q *redisOrder) clone() *redisOrder {
	own := *q
	return &own
}

// enter gives every waiter a term of its own, for its entry.
func (q *redisOrder) enter(l *Lock, req *waiter) {
	req.term = l.takeTerm()
	q.top = req.term
}

func (q *redisOrder) termToContend(*Lock) uint64 { return 0 }

// channel returns the term of the first entry of this process. Redis publishes on the channel of that term that the
// lock may be free.
func (q *redisOrder) channel(l *Lock) (term uint64, reusable bool) {
	if l.queue.Len() == 0 {
		return 0, false
	}
	for _, term := range q.placed {
		if l.waiterOf(term) != nil {
			return term, false
		}
	}
	return l.queue.Head().term, false
}

// grant grants the lease to the waiter that Redis has chosen.
func (q *redisOrder) grant(l *Lock, o op, r Result) {
	l.beginTerm(r.OwnTerm)
	o.request, o.mode, o.lease, o.fixed = l.waiterOf(r.OwnTerm), machine.Exclusive, l.cfg.Watchdog, false
	if o.request != nil {
		o.lease, o.fixed = l.leaseOf(o.request)
		if l.queue.Len() == 1 {
			q.mustResend = q.mustResend || q.overlapped
			q.noteEmptied(l, o.seq, 0) // its entry was the last of this process
		}
	} else {
		l.lease.longest = q.longestLease // which the waiter that has left may have asked for
	}
	l.noteLease(o, r)
	if o.request != nil && l.grantTaken(o) {
		l.refuseTries(machine.Held, l.heldBy()) // Redis prefers waiters with an entry
	}
}

// canHandOff: Redis decides which waiter is next.
func (q *redisOrder) canHandOff(*Lock, *waiter) bool { return false }

func (q *redisOrder) handOff(l *Lock, ref any) { l.prepareGrant(ref) }

func (q *redisOrder) answerHandOff(l *Lock, o op, r Result) {
	if r.Freed {
		l.answer(o.ref, machine.Answer{Kind: machine.Freed, HandedOff: r.Outcome == Done})
	} else {
		l.answerRelease(o)
	}
}

func (q *redisOrder) wake(l *Lock) (at machine.Instant, ok bool) {
	if l.sync.kind != opNone {
		return l.sync.Due, true
	}
	return q.nextAt, l.phase != contending && q.needed(l)
}

// waiterOf finds the request that waits as that term; nil if there is none. Terms grow along the queue.
func (l *Lock) waiterOf(term uint64) *waiter {
	req, found := l.queue.Search(func(req *waiter) bool { return req.term >= term })
	if !found || req.term != term {
		return nil
	}
	return req
}

// entries returns the entries of the first waiters.
func (q *redisOrder) entries(l *Lock) []QueueEntry {
	entries := make([]QueueEntry, 0, min(l.queue.Len(), maxEntries))
	for _, req := range l.queue.Front(maxEntries) {
		lease, _ := l.leaseOf(req)
		entries = append(entries, QueueEntry{Term: req.term, Try: req.Try, Lease: lease})
	}
	return entries
}

// needed reports whether the queue in Redis has to be refreshed, or emptied.
func (q *redisOrder) needed(l *Lock) bool {
	return q.registered || l.sync.kind != opNone || l.queue.Len() > 0
}

// changed reports whether the waiters have changed since they were last sent to Redis, or have to be sent again. While
// tries fail, only the pause between them decides when to send the waiters again.
func (q *redisOrder) changed(l *Lock) bool {
	again := q.mustResend && l.sync.kind == opNone && !lists(&l.main) && (l.phase != contending || l.wait.Tries == 0)
	return again || q.sentRevision != l.queue.Revision()
}

// lists reports whether a command about the lease lists the waiters.
func lists(o *op) bool { return o.kind == opAcquire || o.kind == opGrant || o.kind == opRelease }

// noteUnanswered notes that a command is unanswered.
func (q *redisOrder) noteUnanswered(o *op) {
	q.unanswered = q.unanswered || o.kind == opSyncQueue || lists(o)
}

// register lists the waiters in each try, and in each release that is waited for.
func (q *redisOrder) register(l *Lock, o *op, c *Command) {
	switch {
	case o.kind == opAcquire:
		c.Term = 0 // there is nothing to release
	case o.kind == opGrant, o.kind == opSyncQueue, o.kind == opRelease && o == &l.main:
	default:
		return
	}
	changed := q.changed(l)
	if c.Take = c.Kind == Acquire; !c.Take {
		c.Behind = l.lease.term // if Redis carries it out after the release, it adds no waiters
		if o == &l.sync.op {
			l.sync.behind = c.Behind
		}
	}
	c.Kind, c.Entries, c.Top = SyncQueue, q.entries(l), q.top
	o.listed = c.Entries
	q.sentRevision, q.lastListed, q.placed = l.queue.Revision(), o.seq, place(q.placed, c.Entries)
	// The replies do not tell in which order Redis has carried out two commands that were under way together.
	overlapsDifferently := func(other *op) bool { return other != o && other.InFlight && !slices.Equal(other.listed, o.listed) }
	q.mustResend = q.unanswered || lists(&l.main) && overlapsDifferently(&l.main) || overlapsDifferently(&l.sync.op)
	overlaps := func(other *op) bool { return other != o && other.InFlight && len(other.listed) > 0 }
	q.overlapped = overlaps(&l.main) || overlaps(&l.sync.op)
	q.unanswered = false
	q.registered = q.registered || l.queue.Len() > 0
	for _, req := range l.queue.Front(maxEntries) {
		q.longestLease = max(q.longestLease, req.Lease)
	}
	q.nextAt = l.now + l.jitter(l.cfg.Poll)
	if changed {
		o.until = l.longestTTL()
	}
}

// place returns the terms of entries that wait, in the order of their places: new ones are behind those that were
// placed.
func place(before []uint64, entries []QueueEntry) []uint64 {
	var added, placed []uint64
	for _, e := range entries {
		if !e.Try {
			added = append(added, e.Term)
		}
	}
	for _, term := range before {
		if i, found := slices.BinarySearch(added, term); found {
			placed, added = append(placed, term), slices.Delete(added, i, i+1)
		}
	}
	return append(placed, added...)
}

// refresh sends a command with the waiters, if one is due.
func (q *redisOrder) refresh(l *Lock) {
	if !q.needed(l) || l.phase == contending || l.sync.kind != opNone || !q.changed(l) && l.now < q.nextAt {
		return
	}
	l.sync.op = op{kind: opSyncQueue, lease: l.cfg.Watchdog, until: l.longestTTL()}
	l.send(&l.sync.op)
}

func (l *Lock) syncCommand(_ *op, c *Command) { c.Kind = SyncQueue }

// synced handles the reply to the command that only lists the waiters.
func (q *redisOrder) synced(l *Lock, r Result) {
	switch {
	case r.Outcome != Failed:
		if r.OwnTerm != l.sync.behind { // that hold is no orphan, but may have ended since
			q.releaseOrphan(l, r)
		}
		q.noteEmptied(l, l.sync.seq, len(l.sync.listed))
		l.sync = syncing{}
	case r.Transient && (l.now < l.sync.until || l.sync.Tries < minTries || q.changed(l)):
		l.retryLater(&l.sync.op, r)
	default: // the entries that remain count as dead soon
		q.registered = l.queue.Len() > 0
		l.sync = syncing{}
	}
}

// noteEmptied clears registered if the command with that number left no entries of this process, and no command that
// lists waiters may be carried out after it.
func (q *redisOrder) noteEmptied(l *Lock, seq uint64, entries int) {
	if entries > 0 || seq != q.lastListed || q.sentRevision != l.queue.Revision() || q.mustResend {
		return
	}
	lists := func(o *op) bool { return o.InFlight && o.seq != seq && len(o.listed) > 0 }
	if q.mustResend = lists(&l.main) || lists(&l.sync.op); !q.mustResend {
		q.registered, q.longestLease = false, 0
	}
}

// releaseOrphan releases the lock if a command took it for a waiter that had left. It comes before noteEmptied, which
// forgets the longest lease of waiters.
func (q *redisOrder) releaseOrphan(l *Lock, r Result) {
	if r.OwnTerm != 0 && r.OwnTerm != l.lease.term && l.waiterOf(r.OwnTerm) == nil {
		l.cleanUpOwn(r)
	}
}

// released converts the reply to a SyncQueue with a release.
func (q *redisOrder) released(l *Lock, o op, r Result) Result {
	if o.kind != opRelease {
		return r
	}
	if r.Outcome == Failed {
		q.mustResend = true // if it is not tried again
		return r
	}
	q.releaseOrphan(l, r)
	q.noteEmptied(l, o.seq, len(o.listed))
	if r.Outcome = Absent; r.Freed {
		r.Outcome = Done
	}
	return r
}

// cleanup returns commands that release the terms of waiters which may hold the lock without a reply that says so, and
// a command that removes all entries.
func (q *redisOrder) cleanup(l *Lock) []Command {
	if !q.needed(l) {
		return nil
	}
	var entries []QueueEntry
	switch {
	case l.main.InFlight && (l.main.kind == opAcquire || l.main.kind == opGrant):
		entries = l.main.listed
	case l.wait.traces == mayRemain:
		entries = q.entries(l)
	}
	var all []Command
	for _, e := range entries {
		all = append(all, Command{Kind: Release, Term: e.Term, MaxTTL: l.maxTTL()})
	}
	return append(all, Command{Kind: SyncQueue, Top: q.top, MaxTTL: l.maxTTL()})
}
