package redismodel

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Written reports whether a writer holds the lock.
func (l *Lock) Written() bool {
	for _, h := range l.Holders {
		if h.Exclusive > 0 {
			return true
		}
	}
	return false
}

// readWrite runs a command on the read/write lock: a hash with a field for each holder, and a key next to it
// for the lease of each read hold.
func (r *run) readWrite(part int) lock.Result {
	l := &r.parts[part]
	held := l.Of(r.owner)
	ours := l.holds(r.owner)
	switch {
	case r.Kind == lock.Acquire, r.Kind == lock.Release && r.Count+r.Shared > 0:
		return r.setReadWrite(part)
	case r.Kind == lock.Release && !ours, r.Kind == lock.Yield && !ours:
		r.withdraw(part)
		return result(lock.Absent)
	case r.Kind == lock.Release:
		r.leaveWaitQueue(l)
		if written := held.Exclusive > 0; r.empty(l, r.owner) {
			r.endTurn(part, written)
		}
		return result(lock.Done)
	case r.Kind == lock.Renew:
		if !ours {
			return lock.Result{Outcome: lock.Absent, Taken: !l.Free()}
		}
		for n := range held.Shared {
			l.setLease(r.owner, n+1, r.end(r.Lease))
		}
		r.keepFor(l, r.pttl(l))
		return result(lock.Done)
	case r.Kind == lock.Yield:
		if r.others(l) > 0 || r.Forced {
			if written := held.Exclusive > 0; r.empty(l, r.owner) {
				return r.yielded(part, written)
			}
			r.leaveToYield(l)
			r.transferUnblocked(part)
			r.enterAnew(part)
			return result(lock.Done)
		}
		r.hold(l, Counts{min(held.Exclusive, 1), 1 - min(held.Exclusive, 1)})
		return result(lock.Renewed)
	case r.Kind == lock.CountWaiters:
		others := r.others(l)
		if _, entries := r.waiting(l); entries > 0 && !l.Free() && !l.Written() {
			r.transferUnblocked(part)
			others = r.others(l)
		}
		return lock.Result{Outcome: lock.Done, Others: others}
	case r.Kind == lock.ForceRelease:
		if l.Free() || l.Written() != (r.Mode == machine.Exclusive) {
			return result(lock.Done)
		}
		return r.forceReadWrite(part)
	}
	panic("no such command")
}

// forceReadWrite ends the holds of the owners that a forced release names.
func (r *run) forceReadWrite(part int) lock.Result {
	l := &r.parts[part]
	written, forced := l.Written(), result(lock.Done)
	var last Owner
	for _, h := range l.Holders {
		if r.names(h.Owner) {
			l.dropLeases(h)
			l.put(h.Owner, Counts{})
			last, forced.WasHeld = h.Owner, true
		}
	}
	if forced.WasHeld && r.empty(l, last) {
		r.publish(Publication{Part: part, All: written})
	}
	return forced
}

// setReadWrite takes the lock for an owner, or changes its counts.
func (r *run) setReadWrite(part int) lock.Result {
	l, want := &r.parts[part], Counts{r.Count, r.Shared}
	held := l.Of(r.owner)
	ours, written, free := l.holds(r.owner), l.Written(), l.Free()
	if r.Kind == lock.Release && !ours {
		return result(lock.Absent)
	}
	upgrade := ours && held.Exclusive == 0 && want.Exclusive > 0
	if upgrade {
		free = r.empty(l, r.owner)
	}
	var granted bool
	switch {
	case free && upgrade:
		granted = true
	case free:
		if want.Exclusive+want.Shared > 1 {
			return result(lock.Absent)
		}
		r.place(part)
		granted = r.mayTake(part, want.Shared > 0)
	case ours:
		granted = !upgrade
	default:
		r.place(part)
		granted = !written && want == (Counts{Shared: 1}) && !r.writerAhead(l)
		if granted {
			l.OpenUntil = 0 // a foreign client has had the lock
		}
	}
	if !granted {
		if joins := !free && !ours && !written && want == (Counts{Shared: 1}); joins {
			r.transferUnblocked(part)
		}
		return r.refuseAndEnter(part)
	}
	if r.Kind == lock.Acquire {
		r.leaveWaitQueue(l)
	}
	first := l.Free()
	r.hold(l, want)
	if held.Exclusive > 0 && want.Exclusive == 0 {
		r.publish(Publication{Part: part, All: true})
		r.transferNext(part, false)
	} else if !ours && want.Exclusive == 0 {
		r.transferNext(part, first)
	}
	return result(lock.Done)
}

// hold sets the counts of the command's owner, and their lease.
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
	r.keepFor(l, left)
}

// keepFor sets the TTL, of which left remained, to the command's lease. Others that hold the lock keep a longer one.
func (r *run) keepFor(l *Lock, left time.Duration) {
	if len(l.Holders) == 1 {
		r.pexpire(l, r.Lease)
	} else {
		r.pexpire(l, max(left, r.Lease))
	}
}

// empty ends all holds of an owner. It reports whether the lock is free now: readers without a live lease are
// dead.
func (s *Server) empty(l *Lock, o Owner) bool {
	l.dropLeases(Holder{o, l.Of(o)})
	l.put(o, Counts{})
	var longest time.Duration
	for _, r := range l.ReadLeases {
		if r.N <= l.Of(r.Owner).Shared {
			longest = max(longest, s.left(r.Until))
		}
	}
	if longest > 0 {
		s.pexpire(l, longest)
		return false
	}
	l.Holders = nil
	return true
}

func (l *Lock) dropLeases(h Holder) {
	for n := range h.Shared {
		l.setLease(h.Owner, n+1, 0)
	}
}
