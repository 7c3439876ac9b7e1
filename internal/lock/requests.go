package lock

import (
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Acquire asks for the lock. It is a re-entry if the request's owner holds the lock; otherwise the request joins the
// queue.
func (l *Lock) Acquire(now machine.Instant, request machine.Request) {
	req := &waiter{Request: request}
	defer l.begin(now).settle()
	seenBefore := req.Owner != 0 && req.Owner <= l.lastOwner
	l.lastOwner = max(l.lastOwner, req.Owner)
	h := l.holds.byOwner(req.Owner)
	if req.Try {
		req.Deadline = now + l.cfg.TryTime()
	}
	if q := l.queueInRedis(); q != nil {
		q.enter(l, req)
	}
	switch {
	case l.closing:
		l.refuse(req.Ref, machine.Closed, machine.Closing)
	case h.id != 0:
		l.reenter(h, req)
	case req.Try && (l.queue.Len() > 0 || l.holds.len() > 0 && !l.mayJoin(req)):
		l.answer(req.Ref, l.held())
	case l.queue.Len() >= l.cfg.QueueLimit:
		l.refuse(req.Ref, machine.QueueFull,
			fmt.Sprintf("%d requests wait for this lock already, and its limit is %d", l.queue.Len(), l.cfg.QueueLimit))
	default:
		l.ownersMayRepeat = l.ownersMayRepeat || seenBefore
		l.queue.Push(req)
	}
}

// Release releases one hold.
func (l *Lock) Release(now machine.Instant, r machine.Release) {
	id := r.ID
	if h := l.holds.byID(id); r.DropsMinimum && h.id != 0 {
		h.keepUntil = h.keepAgainUntil
		l.holds.update(h)
	}
	// The owner means its present hold, and not a hold that begin may grant to it because the present hold has expired.
	if h := l.holds.byOwner(r.Owner); h.id != 0 {
		id = h.id
	}
	defer l.begin(now).settle()
	h := l.holds.byID(id)
	switch {
	case h.id != 0:
		l.pendingCounts = append(l.pendingCounts, countChange{hold: h.id, mode: r.Mode, ref: r.Ref, until: l.now + l.cfg.CallTimeout})
	case l.lost.Why(id) != 0:
		l.effects.Refuse(r.Ref, machine.NotFreed, machine.Lost, "the hold was lost before: "+l.lost.Why(id).String())
	default:
		l.effects.Refuse(r.Ref, machine.NotFreed, machine.NotHeld,
			"there is no such hold: it was never granted, is over, or belongs to another owner")
	}
}

// Cancel withdraws the waiting requests of an owner, or the request with that id.
func (l *Lock) Cancel(now machine.Instant, id uint64, owner machine.Owner, ref any) {
	defer l.begin(now).settle()
	detail := machine.WasWithdrawn
	if l.wait.LastErr != "" {
		detail += "; the last try failed: " + l.wait.LastErr
	}
	withdrawn := l.withdraw(id, owner)
	for _, req := range withdrawn {
		l.refuse(req.Ref, machine.CancelledByRequest, detail)
	}
	l.answer(ref, machine.Answer{Kind: machine.Withdrawn, Count: len(withdrawn)})
}

// OwnerGone refuses the requests of an owner that has died, and releases its hold. Another actor may have sent a
// request on the owner's behalf.
func (l *Lock) OwnerGone(now machine.Instant, owner machine.Owner) {
	l.takeWork()
	orphans := l.withdraw(0, owner) // before begin, which may end an expired hold and grant the lock to one of them
	defer l.begin(now).settle()
	for _, req := range orphans {
		l.refuse(req.Ref, machine.CancelledByRequest, machine.OwnerDied)
	}
	h := l.holds.byOwner(owner)
	if h.id == 0 {
		return
	}
	// One release ends the hold, for all of its counts, and before any other change.
	mode := machine.Shared
	if h.exclusive > 0 {
		mode = machine.Exclusive
	}
	h.counts, h.ownerDied = once(mode), true
	l.holds.update(h)
	l.pendingCounts = append([]countChange{{hold: h.id, mode: mode}}, l.pendingCounts...)
}

// ForceRelease frees the lock if one of the owners holds it in that mode. Local holders are notified first.
func (l *Lock) ForceRelease(now machine.Instant, mode machine.Mode, owners machine.Owners, ref any) {
	defer l.begin(now).settle()
	l.force(mode, owners, ref)
}

// Ensure answers when the hold's lease is valid for at least d from now, and renews it if necessary; a fixed lease is
// not renewed.
func (l *Lock) Ensure(now machine.Instant, id uint64, d time.Duration, ref any) {
	defer l.begin(now).settle()
	longest := l.cfg.Watchdog - machine.Margin(l.cfg.Watchdog)
	h := l.holds.byID(id)
	left := l.holdUntil(h) - l.now
	switch {
	case h.id == 0:
		l.answerOver(id, ref)
	case left >= d:
		l.answer(ref, machine.Answer{Kind: machine.Ensured, Until: l.holdUntil(h)})
	case h.end() != 0 && h.end()-l.now < d:
		l.effects.Refuse(ref, machine.NotDone, machine.Invalid,
			fmt.Sprintf("only %v of the hold are left, and neither a fixed lease nor a max hold is renewed", left))
	case d > longest:
		l.effects.Refuse(ref, machine.NotDone, machine.Invalid,
			fmt.Sprintf("%v were asked for, and a renewed lease is good for %v at most", d, longest))
	default:
		l.awaitRenewal(ensure{hold: id, ref: ref, until: now + d, by: l.now + l.cfg.TryTime()})
	}
}

// answerOver answers a request about the lease of a hold that is over.
func (l *Lock) answerOver(id uint64, ref any) {
	a := machine.Answer{Kind: machine.NotDone, Reason: machine.NotHeld, Detail: "the hold is over"}
	if why := l.lost.Why(id); why != 0 {
		a.Reason, a.Detail = machine.Lost, "the hold was lost before: "+why.String()
	}
	l.answer(ref, a)
}

// Suspect reports that the key may have been taken away. The lock asks Redis as soon as it can.
func (l *Lock) Suspect(now machine.Instant) {
	defer l.begin(now).settle()
	l.suspect()
}

// Tick lets time pass.
func (l *Lock) Tick(now machine.Instant) {
	l.begin(now).settle()
}

// Close refuses the waiters, ends all holds, and releases the lock.
func (l *Lock) Close(now machine.Instant) {
	defer l.begin(now).settle()
	if l.closing {
		return
	}
	l.closing = true
	for _, req := range l.queue.Remove(func(*waiter) bool { return true }) {
		l.refuse(req.Ref, machine.Closed, machine.Closing)
	}
	holds := l.holds
	for h := range holds.all() {
		l.revokeHold(h, machine.Closed, machine.Closing)
	}
}

// Signal reports that some process has released the lock.
func (l *Lock) Signal(now machine.Instant) {
	defer l.begin(now).settle()
	if l.countRelease() {
		l.attemptSoon()
	}
}

// Subscribed reports that the subscription with the term of a Subscribe is confirmed. Earlier messages may have been
// missed. A process that defers to others after its own turn needs none of them; one that defers at the request of
// Redis may have missed the end of the deferral.
func (l *Lock) Subscribed(now machine.Instant, term uint64) {
	defer l.begin(now).settle()
	if !l.sub.Confirm(term) {
		return
	}
	if !l.isDeferred() || l.wait.cause == byRedis {
		l.attemptSoon()
	}
}
