package model

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// Written reports whether a writer holds the lock.
func (l *Lock) Written() bool {
	for _, h := range l.holders {
		if h.Exclusive > 0 {
			return true
		}
	}
	return false
}

// readWrite is the read/write lock: a hash with a field for each holder, a key beside it
// for the lease of each read hold, and the announcement of a waiting writer.
func (r *run) readWrite(part int) core.Result {
	l := &r.parts[part]
	held := l.Of(r.owner)
	ours := l.holds(r.owner)
	switch {
	case r.Kind == core.Acquire, r.Kind == core.Release && r.Count+r.Shared > 0:
		return r.setReadWrite(part)
	case r.Kind == core.Release:
		if r.withdraw(l); !ours {
			return result(core.Absent)
		}
		r.leave(part)
		return result(core.Done)
	case r.Kind == core.Renew:
		if !ours {
			return core.Result{Outcome: core.Absent, Taken: !l.Free()}
		}
		for n := range held.Shared {
			l.setLease(r.owner, n+1, r.end(r.Lease))
		}
		r.pexpire(l, max(r.pttl(l), r.Lease))
		return result(core.Done)
	case r.Kind == core.Yield:
		if !ours {
			return result(core.Absent)
		}
		if others := r.others(l); others > 0 || r.Open {
			r.withdraw(l)
			r.leave(part)
			return core.Result{Outcome: core.Done, Others: others}
		}
		if held.Exclusive > 0 {
			r.hold(l, Counts{Exclusive: 1})
		} else {
			r.hold(l, Counts{Shared: 1})
		}
		return result(core.Kept)
	case r.Kind == core.Look:
		return core.Result{Outcome: core.Done, Others: r.others(l)}
	case r.Kind == core.ForceRelease:
		if l.Free() || l.Written() != (r.Mode == core.Exclusive) {
			return result(core.Done)
		}
		r.publish(Publication{Part: part, All: l.Written()})
		for _, h := range l.holders {
			l.dropLeases(h)
		}
		l.holders = nil
		return core.Result{Outcome: core.Done, WasHeld: true}
	}
	panic("no such command")
}

// setReadWrite is how an owner gets the lock, and how its counts change.
func (r *run) setReadWrite(part int) core.Result {
	l, want := &r.parts[part], Counts{r.Count, r.Shared}
	held := l.Of(r.owner)
	ours, written, free := l.holds(r.owner), l.Written(), l.Free()
	if r.Kind == core.Release && !ours {
		return result(core.Absent)
	}
	upgrade := ours && held.Exclusive == 0 && want.Exclusive > 0
	if upgrade {
		free = r.empty(l, r.owner)
	}
	var granted bool
	switch {
	case free:
		if !upgrade && want.Exclusive+want.Shared > 1 {
			return result(core.Absent)
		}
		granted = true
	case ours:
		granted = !upgrade
	default:
		granted = !written && want == Counts{Shared: 1} && !l.announced(r.client)
	}
	if granted {
		r.withdraw(l)
		r.hold(l, want)
		if held.Exclusive > 0 && want.Exclusive == 0 {
			r.publish(Publication{Part: part, All: true})
		}
		return result(core.Done)
	}
	if want.Exclusive > 0 && r.Announce {
		l.writer, l.writerUntil = r.owner, r.end(r.setup.Announcement)
	}
	return r.refusal(r.client, l)
}

// hold sets how often the command's owner holds the lock, and for how long.
func (r *run) hold(l *Lock, c Counts) {
	before, left := l.Of(r.owner).Shared, r.pttl(l)
	l.put(r.owner, c)
	for n := range max(c.Shared, before) {
		if n < c.Shared {
			l.setLease(r.owner, n+1, r.end(r.Lease))
		} else {
			l.setLease(r.owner, n+1, 0)
		}
	}
	if len(l.holders) == 1 {
		r.pexpire(l, r.Lease)
	} else {
		r.pexpire(l, max(left, r.Lease))
	}
}

// leave ends all that the command's owner holds.
func (r *run) leave(part int) {
	l := &r.parts[part]
	if written := l.Of(r.owner).Exclusive > 0; r.empty(l, r.owner) {
		r.publish(Publication{Part: part, All: written})
	}
}

// empty ends all that an owner holds. It reports whether the lock is free now: without a
// live lease all who are left are dead.
func (s *Server) empty(l *Lock, o Owner) bool {
	l.dropLeases(Holder{o, l.Of(o)})
	l.put(o, Counts{})
	var longest time.Duration
	for _, r := range l.leases {
		if r.N <= l.Of(r.Owner).Shared {
			longest = max(longest, s.left(r.Until))
		}
	}
	if longest > 0 {
		s.pexpire(l, longest)
		return false
	}
	l.holders = nil
	return true
}

func (l *Lock) dropLeases(h Holder) {
	for n := range h.Shared {
		l.setLease(h.Owner, n+1, 0)
	}
}

// withdraw ends the owner's announcement.
func (r *run) withdraw(l *Lock) {
	if l.writer == r.owner {
		l.writer = Owner{}
	}
}

// announced reports whether a writer of another client waits.
func (l *Lock) announced(mine Client) bool { return l.writer != Owner{} && l.writer.Client != mine }

// others is how many other clients wait for the lock.
func (r *run) others(l *Lock) int {
	seen := r.Subscribers(Owner{})
	if r.Subscribed {
		seen--
	}
	if l.announced(r.client) {
		return max(seen, 1)
	}
	return max(seen, 0)
}
