package core

import (
	"fmt"
	"slices"
	"time"
)

// phase is how the process stands to the key in Redis.
type phase uint8

const (
	// free: nobody here wants the lock.
	free phase = iota
	// contending: somebody here waits, and the lease is not ours.
	contending
	// owned: the lease is ours; a hold is granted, or about to be.
	owned
	// releasing: nobody here holds the lock, and Redis has not yet confirmed its release.
	releasing
)

// Kind is what the decisions depend on besides the requests themselves.
type Kind struct {
	// Tokens is how many fencing counters the lock has. A hold draws from each of them if
	// its ticket is fenced.
	Tokens int
	// Queued: all waiters stand in one queue in Redis, which decides who is next.
	Queued bool
	// Shares: the lock can be held in Shared mode.
	Shares bool
	// Parts: the lock is made of several, and when one of them is lost, others may
	// still have to be released.
	Parts bool
}

// Lock is the state of one named lock in one process, and all that it decides.
//
// It is a value: an event is applied to a copy, which then replaces the original in
// one assignment. An event that panics half way has therefore changed nothing.
type Lock struct {
	cfg  *Config
	kind *Kind
	now  Instant
	// seq numbers the commands, so that a reply finds its command and no other.
	seq uint64
	// spare is the number of the next term.
	spare   uint64
	phase   phase
	closing bool
	// repeats: one owner may wait twice.
	repeats bool

	lease lease
	holds holds
	queue queue
	// lastOwner is the highest owner seen.
	lastOwner Owner

	// main is the command under way about the lease itself.
	main op
	// renewal is the watchdog's, beside it.
	renewal op
	// enrolment is about the queue in Redis, beside both; nil where there is none. It is
	// replaced by every event.
	enrolment *enrolment
	// suspected: the key may have been taken away since the last command was sent whose
	// reply tells.
	suspected bool
	// sides are commands that do not concern the present term: releases of terms
	// that are over, and forced releases.
	sides []op
	// changes is what the holders asked for while main was under way.
	changes []change
	ensures []ensure

	wait waiting
	sub  subscription
	// lost remembers the holds that were lost last, to explain it to a late Release.
	lost loss

	effects []Effect
	taken   int
}

type loss struct {
	ids    []uint64
	reason Reason
}

// mostLost bounds how many are remembered.
const mostLost = 100

// add takes note of one more; what was lost for another reason before is forgotten.
func (l *loss) add(id uint64, reason Reason) {
	if l.reason != reason || len(l.ids) == mostLost {
		*l = loss{reason: reason}
	}
	l.ids = append(l.ids, id)
}

// change is a wish of a holder: one more hold for a ticket, or one less.
type change struct {
	hold   uint64
	mode   Mode
	ticket *Ticket
	ref    any
	// until is when a release that leaves something is answered, confirmed or not.
	until Instant
}

type ensure struct {
	hold  uint64
	ref   any
	until Instant
}

// New returns a lock that nobody wants yet. Before every event that follows,
// SpareTerm must hold a number higher than any that a lock of this name has had.
func New(cfg *Config, kind *Kind) Lock {
	l := Lock{cfg: cfg, kind: kind}
	if kind.Queued {
		l.enrolment = &enrolment{}
	}
	return l
}

// SpareTerm reports whether the lock has the number of its next term.
func (l *Lock) SpareTerm() bool { return l.spare != 0 }

// Refill puts in the number of the next term.
func (l *Lock) Refill(term uint64) { l.spare = term }

// Acquire asks for the lock: a re-entry if the ticket's owner holds it, else a place in the queue.
func (l *Lock) Acquire(now Instant, t Ticket) {
	l.begin(now)
	defer l.settle()
	seenBefore := t.Owner != 0 && t.Owner <= l.lastOwner
	l.lastOwner = max(l.lastOwner, t.Owner)
	own := l.holds.byOwner(t.Owner)
	if t.Try {
		t.Deadline = now + l.cfg.TryTime()
	}
	if l.kind.Queued {
		t.term, l.spare = l.spare, 0
		l.enrolment.top = t.term
	}
	switch {
	case l.closing:
		l.refuse(t.Ref, Closed, "the system is closing")
	case own.id != 0:
		l.reenter(own, &t)
	case t.Try && (l.queue.len() > 0 || l.holds.len() > 0 && !l.mayJoin(&t)):
		l.answer(t.Ref, Answer{Kind: NotGranted, Reason: Held, TTL: l.wait.ttl(l), Detail: l.heldBy()})
	case l.queue.len() >= l.cfg.QueueLimit:
		l.refuse(t.Ref, QueueFull, fmt.Sprintf("%d requests wait for this lock already, and its limit is %d", l.queue.len(), l.cfg.QueueLimit))
	default:
		l.repeats = l.repeats || seenBefore
		l.queue.push(&t)
	}
}

// Release gives back one hold, named by its id, or by its owner if id is 0.
func (l *Lock) Release(now Instant, id uint64, owner Owner, mode Mode, ref any) {
	l.begin(now)
	defer l.settle()
	own := l.holds.byID(id)
	if id == 0 {
		own = l.holds.byOwner(owner)
	}
	switch {
	case own.id != 0:
		l.changes = append(l.changes, change{hold: own.id, mode: mode, ref: ref, until: l.now + l.cfg.CallTimeout})
	case slices.Contains(l.lost.ids, id):
		l.answer(ref, Answer{Kind: NotFreed, Reason: Lost, Detail: "the hold was lost before: " + l.lost.reason.String()})
	default:
		l.answer(ref, Answer{Kind: NotFreed, Reason: NotHeld, Detail: "there is no such hold: it was never granted, or released before, or belongs to somebody else"})
	}
}

// Cancel withdraws the waiting requests of an owner, or the one with that id.
func (l *Lock) Cancel(now Instant, id uint64, owner Owner, ref any) {
	l.begin(now)
	defer l.settle()
	var withdrawn int
	cancel := func(t *Ticket) {
		withdrawn++
		detail := "the request was withdrawn"
		if l.wait.lastErr != "" {
			detail += "; the last try failed: " + l.wait.lastErr
		}
		l.refuse(t.Ref, CancelledByRequest, detail)
	}
	matches := func(t *Ticket) bool { return t.ID == id || id == 0 && owner != 0 && t.Owner == owner }
	if id != 0 {
		if t := l.queue.withdraw(id); t != nil {
			cancel(t)
		}
	} else if owner != 0 {
		for _, t := range l.queue.remove(matches) {
			cancel(t)
		}
	}
	l.withdrawChanges(matches, cancel)
	if l.main.kind == opCount && l.main.ticket != nil && matches(l.main.ticket) {
		cancel(l.main.ticket)
		l.main.ticket = nil
	}
	if ref != nil {
		l.answer(ref, Answer{Kind: Withdrawn, Count: withdrawn})
	}
}

// OwnerGone says that an owner is dead: its requests leave the queue unanswered,
// and its hold is released.
func (l *Lock) OwnerGone(now Instant, owner Owner) {
	l.begin(now)
	defer l.settle()
	if owner == 0 {
		return
	}
	l.queue.remove(func(t *Ticket) bool { return t.Owner == owner })
	if l.main.kind == opCount && l.main.ticket != nil && l.main.ticket.Owner == owner {
		l.main.ticket = nil
	}
	own := l.holds.byOwner(owner)
	if own.id == 0 {
		return
	}
	// However often it was held, it is over: one release ends it, before any other change.
	l.withdrawChanges(func(t *Ticket) bool { return t.Owner == owner }, func(*Ticket) {})
	mode := Shared
	if own.exclusive > 0 {
		mode = Exclusive
	}
	own.counts, own.dead = once(mode), true
	l.holds.update(own)
	l.changes = append([]change{{hold: own.id, mode: mode}}, l.changes...)
}

// ForceRelease frees the lock whoever holds it in that mode. Holders here are told first.
func (l *Lock) ForceRelease(now Instant, mode Mode, ref any) {
	l.begin(now)
	defer l.settle()
	force := op{kind: opForce, ref: ref, mode: mode, lease: l.cfg.Lease, until: now + l.cfg.CallTimeout}
	if l.holds.len() > 0 && l.lease.mode == mode {
		force.heldHere, force.term = true, l.lease.term
		l.lose(ByForce, "the lock was force-released", false)
	}
	l.side(force)
}

// Suspect says that the key may have been taken away: the lock asks Redis as soon as it
// can.
func (l *Lock) Suspect(now Instant) {
	l.begin(now)
	defer l.settle()
	l.suspect()
}

// Ensure answers when the hold's lease is good for at least d from now, renewing
// it if need be; a fixed lease is not renewed.
func (l *Lock) Ensure(now Instant, id uint64, d time.Duration, ref any) {
	l.begin(now)
	defer l.settle()
	most := l.cfg.Lease - Margin(l.cfg.Lease)
	own := l.holds.byID(id)
	left := l.holdUntil(own) - l.now
	switch {
	case own.id == 0:
		reason := NotHeld
		if slices.Contains(l.lost.ids, id) {
			reason = Lost
		}
		l.answer(ref, Answer{Kind: NotDone, Reason: reason, Detail: "the hold is over"})
	case left >= d:
		l.answer(ref, Answer{Kind: Ensured, Until: l.holdUntil(own)})
	case own.until != 0 && own.until-l.now < d:
		l.answer(ref, Answer{Kind: NotDone, Reason: Invalid, Detail: fmt.Sprintf("only %v of the hold are left, and neither a fixed lease nor a max hold is renewed", left)})
	case d > most:
		l.answer(ref, Answer{Kind: NotDone, Reason: Invalid, Detail: fmt.Sprintf("%v were asked for, and a renewed lease is good for %v at most", d, most)})
	default:
		l.ensures = append(l.ensures, ensure{hold: id, ref: ref, until: now + d})
		if l.renewal.kind == opNone {
			l.startRenewal(true)
		} else if !l.renewal.inFlight {
			l.send(&l.renewal)
		}
	}
}

// Signal says that the lock was released somewhere.
func (l *Lock) Signal(now Instant) {
	l.begin(now)
	defer l.settle()
	if l.phase != contending {
		l.news()
		return
	}
	if now < l.wait.deferUntil {
		if l.sub.state != listening {
			return // it may be our own message: which the turns count only if we listened
		}
		if l.wait.turns--; l.wait.turns > 0 {
			return
		}
		l.wait.deferUntil = 0
	}
	l.attemptSoon()
}

// news takes note that the lock may be free, in spite of what the reply will say that is
// under way.
func (l *Lock) news() {
	if l.main.kind == opGrant {
		l.main.stale = true
	}
}

// Subscribed says that no message of the channel is missed from now on, though some
// may have been. term is what the Subscribe named.
func (l *Lock) Subscribed(now Instant, term uint64) {
	l.begin(now)
	defer l.settle()
	if l.sub.state == unsubscribed || l.sub.term != term {
		return
	}
	l.sub.state = listening
	if l.phase != contending {
		l.news()
	} else if now >= l.wait.deferUntil {
		l.attemptSoon()
	}
}

// Tick lets time pass.
func (l *Lock) Tick(now Instant) {
	l.begin(now)
	l.settle()
}

// Close refuses whoever waits, takes the lock from whoever holds it, and releases it.
func (l *Lock) Close(now Instant) {
	l.begin(now)
	defer l.settle()
	if l.closing {
		return
	}
	l.closing = true
	for _, t := range l.queue.remove(func(*Ticket) bool { return true }) {
		l.refuse(t.Ref, Closed, "the system is closing")
	}
	holds := l.holds
	for own := range holds.all() {
		l.endHoldBy(own, Closed, "the system is closing")
	}
}

// Idle reports whether the lock has nothing to do and nothing to remember.
func (l *Lock) Idle() bool {
	return l.phase == free && l.queue.len() == 0 && len(l.sides) == 0 && !l.enrolment.needed(l) &&
		l.sub.state == unsubscribed && l.taken == len(l.effects)
}

// Lend gives the lock room for its effects, if it has none: a lock that is at rest
// needs none, and there may be many.
func (l *Lock) Lend(room []Effect) {
	if l.effects == nil {
		l.effects = room[:0]
	}
}

// Reclaim takes that room back after all effects have been taken; nil if they have not.
func (l *Lock) Reclaim() []Effect {
	if l.taken < len(l.effects) {
		return nil
	}
	room := l.effects
	l.effects, l.taken = nil, 0
	return room
}

// Effects hands out what is to be done. The lock forgets an effect once it is taken.
func (l *Lock) Effects() (next Effect, ok bool) {
	if l.taken == len(l.effects) {
		l.effects, l.taken = l.effects[:0], 0
		return Effect{}, false
	}
	next = l.effects[l.taken]
	l.effects[l.taken] = Effect{}
	l.taken++
	return next, true
}

// Next is the Ref of the first request that waits; nil if none does.
func (l *Lock) Next() any {
	if l.queue.len() == 0 {
		return nil
	}
	return l.queue.head().Ref
}

// Snapshot is what can be said of the lock without asking Redis.
type Snapshot struct {
	HeldHere bool
	// Count is how often the first of the holders has it.
	Count   int
	Waiters int
	// Until is how long that one's hold is good for if nothing is renewed.
	Until  Instant
	Tokens []int64
}

// Snapshot describes the lock as this process knows it.
func (l *Lock) Snapshot() Snapshot {
	first := l.holds.first
	return Snapshot{HeldHere: first.id != 0, Count: first.total(), Waiters: l.queue.len(), Until: l.holdUntil(first), Tokens: first.tokens}
}

// LeaseUntil is how long the lease is good for if it is not renewed.
func (l *Lock) LeaseUntil() Instant { return l.lease.until }

// Holder is a hold as the shell knows it.
type Holder struct {
	Ref any
	ID  uint64
}

// Everyone lists whom the lock still owes something: the holders, and those who
// await an answer. It is for a lock that is given up.
func (l *Lock) Everyone() (holders []Holder, pending []any) {
	add := func(ref any) {
		if several, ok := ref.(refs); ok {
			pending = append(pending, several...)
		} else if ref != nil {
			pending = append(pending, ref)
		}
	}
	for own := range l.holds.all() {
		holders = append(holders, Holder{Ref: own.ref, ID: own.id})
	}
	for _, t := range l.queue.tickets {
		add(t.Ref)
	}
	ops := append([]op{l.main, l.renewal}, l.sides...)
	for _, o := range ops {
		add(o.ref)
		if o.ticket != nil && o.kind == opCount {
			add(o.ticket.Ref)
		}
	}
	for _, c := range l.changes {
		add(c.ref)
		if c.ticket != nil {
			add(c.ticket.Ref)
		}
	}
	for _, e := range l.ensures {
		add(e.ref)
	}
	for _, e := range l.effects[l.taken:] {
		if e.Kind == Reply {
			add(e.Ref)
		}
	}
	return holders, pending
}

// Farewell lists the commands after which nothing of this process is left in Redis.
// It is for a lock that is given up.
func (l *Lock) Farewell(now Instant) []Command {
	var all []Command
	leave := func(term uint64, ttl time.Duration) {
		all = append(all, Command{Kind: Release, Term: term, MaxTTL: ttl})
	}
	if l.phase != free && l.lease.term != 0 {
		leave(l.lease.term, l.maxTTL())
	}
	for _, o := range l.sides {
		if o.kind == opRelease || o.heldHere {
			leave(o.term, max(l.maxTTL(), o.until-now))
		}
	}
	if l.enrolment.needed(l) {
		for _, e := range l.mayHaveTaken() {
			leave(e.Term, l.maxTTL())
		}
		all = append(all, Command{Kind: Enrol, Top: l.enrolment.top, MaxTTL: l.maxTTL()})
	}
	return all
}

func (l *Lock) answer(ref any, a Answer) {
	if several, ok := ref.(refs); ok {
		for _, one := range several {
			l.answer(one, a)
		}
		return
	}
	if ref != nil {
		l.effects = append(l.effects, Effect{Kind: Reply, Ref: ref, Answer: a})
	}
}

func (l *Lock) refuse(ref any, reason Reason, detail string) {
	l.answer(ref, Answer{Kind: NotGranted, Reason: reason, TTL: -1, Detail: detail})
}

func (l *Lock) heldBy() string {
	if l.holds.len() > 0 {
		return "the lock is held in this process"
	}
	if l.wait.holder != "" {
		return "the lock is held by " + l.wait.holder
	}
	return "others wait for the lock already"
}
