package lock

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Idle reports whether the lock has nothing to do and no state to keep.
func (l *Lock) Idle() bool {
	_, wakes := l.order.wake(l)
	return l.phase == free && l.queue.Len() == 0 && len(l.background) == 0 && !wakes &&
		l.sub.State == machine.Unsubscribed && l.effects.Len() == 0
}

// FirstWaiter returns the Ref of the first request that waits, or nil.
func (l *Lock) FirstWaiter() any {
	if l.queue.Len() == 0 {
		return nil
	}
	return l.queue.Head().Ref
}

// Summary returns what the actor reads after each event.
func (l *Lock) Summary() machine.Summary {
	first := l.holds.first.ref
	if l.holds.len() == 0 {
		first = l.FirstWaiter()
	}
	return machine.Summary{Holds: l.holds.len(), Waiters: l.queue.Len(), FirstRef: first, Term: l.lease.term, LeaseUntil: l.lease.until}
}

// Snapshot returns the state of the lock in this process.
func (l *Lock) Snapshot() machine.Snapshot {
	first := l.holds.first
	return machine.Snapshot{
		HeldHere: first.id != 0, Count: first.total(), Waiters: l.queue.Len(),
		Until: l.holdUntil(first), Tokens: first.tokens,
	}
}

// Outstanding returns the holders, and the Refs of the requests that await an answer. It is for a lock whose actor has
// failed for good.
func (l *Lock) Outstanding() (holders []machine.Holder, pending []any) {
	var refs machine.Refs
	for h := range l.holds.all() {
		holders = append(holders, machine.Holder{Ref: h.ref, ID: h.id})
	}
	for req := range l.queue.All() {
		refs.Add(req.Ref)
	}
	for _, o := range append([]op{l.main, l.renewal.op}, l.background...) {
		refs.Add(o.ref)
		if o.request != nil && o.kind == opCount {
			refs.Add(o.request.Ref)
		}
	}
	for _, c := range l.pendingCounts {
		refs.Add(c.ref)
		if c.request != nil {
			refs.Add(c.request.Ref)
		}
	}
	for _, e := range l.ensures {
		refs.Add(e.ref)
	}
	for _, e := range l.extensions {
		refs.Add(e.ref)
	}
	refs.AddReplies(&l.effects)
	return holders, refs
}

// CleanupCommands returns the commands that remove everything of this process from Redis. It is for a lock whose actor
// has failed for good.
func (l *Lock) CleanupCommands(now machine.Instant) []Command {
	var all []Command
	leave := func(term uint64, ttl time.Duration) {
		if !slices.ContainsFunc(all, func(c Command) bool { return c.Term == term && c.MaxTTL >= ttl }) {
			all = append(all, Command{Kind: Release, Term: term, MaxTTL: ttl})
		}
	}
	if l.phase != free && l.lease.term != 0 {
		leave(l.lease.term, l.maxTTL())
	}
	if l.main.next != 0 {
		leave(l.main.next, l.maxTTL())
	}
	for _, o := range l.background {
		if o.term != 0 {
			leave(o.term, max(l.maxTTL(), o.until-now))
		}
	}
	for _, take := range l.takes {
		leave(take.term, max(l.maxTTL(), take.lease))
	}
	if q := l.queueInRedis(); q != nil {
		all = append(all, q.cleanup(l)...)
	}
	return all
}
