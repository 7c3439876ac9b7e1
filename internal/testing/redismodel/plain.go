package redismodel

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// withTokens runs a command on the plain or the fenced lock; the latter has a token counter next to the hash.
func (r *run) withTokens(part int) lock.Result {
	answer := r.plain(part)
	if r.Kind == lock.Acquire && answer.Outcome == lock.Done {
		answer.Tokens = r.draw(part)
	}
	return answer
}

// plain runs a command on a lock that is a hash with one field.
func (r *run) plain(part int) lock.Result {
	l := &r.parts[part]
	ours := l.holds(r.owner)
	switch r.Kind {
	case lock.Acquire:
		wasEmpty, holder := !l.anyEntry(), r.holder(l)
		if !ours && r.Count == 1 {
			r.place(part)
		}
		switch {
		case l.Free() && r.Count != 1:
			return result(lock.Absent)
		case l.Free() && !r.mayTake(part, false), !l.Free() && !ours:
			if wasEmpty || r.Entry.Term == 0 {
				r.ask(part, holder)
			}
			return r.refuseAndEnter(part)
		}
		r.leaveWaitQueue(l)
		r.set(l, r.Count)
		return lock.Result{Outcome: lock.Done, Alone: wasEmpty}
	case lock.Release:
		switch {
		case !ours && r.Count == 0:
			r.withdraw(part)
			return result(lock.Absent)
		case !ours:
			return result(lock.Absent)
		case r.Count == 0:
			r.leaveWaitQueue(l)
			l.put(r.owner, Counts{})
			r.endTurn(part, false)
		default:
			r.set(l, r.Count)
		}
		return result(lock.Done)
	case lock.Renew:
		if !ours {
			return lock.Result{Outcome: lock.Absent, Taken: !l.Free()}
		}
		r.pexpire(l, r.Lease)
		return result(lock.Done)
	case lock.Keep:
		keeper := r.owner
		keeper.Kept = true
		if !ours && !l.holds(keeper) {
			return lock.Result{Outcome: lock.Absent, Taken: !l.Free()}
		}
		if !ours && r.pttl(l) <= r.Lease {
			return result(lock.Done) // the command is late
		}
		l.put(r.owner, Counts{})
		l.put(keeper, Counts{Exclusive: 1})
		r.pexpire(l, r.Lease)
		return result(lock.Done)
	case lock.Yield:
		return r.yield(part)
	case lock.ForceRelease:
		if !r.evictNamed(part) {
			return result(lock.Done)
		}
		r.publish(Publication{Part: part})
		return lock.Result{Outcome: lock.Done, WasHeld: true}
	}
	panic("no such command")
}

// holder returns the owner of a plain lock; the zero Owner if it is free.
func (r *run) holder(l *Lock) Owner { return r.some(l).Owner }

// ask asks the process of a holder for the lock, which may stay there without a hold.
func (r *run) ask(part int, holder Owner) {
	if holder.Term != 0 && !holder.Kept && r.setup.WaitQueue.OneServer {
		r.publish(Publication{Part: part, To: AskedChannel(holder.Client), Transfer: machine.Transfer{Term: holder.Term}})
	}
}

// names reports whether a forced release names an owner.
func (r *run) names(o Owner) bool { return slices.Contains(r.Owners, r.setup.Name(o)) }

// evictNamed ends the holds of the owners that a forced release names. It reports whether one of them held the lock, and
// then asks the process of that owner for it.
func (r *run) evictNamed(part int) (held bool) {
	l := &r.parts[part]
	holder := r.holder(l)
	for _, h := range l.Holders {
		if r.names(h.Owner) {
			l.put(h.Owner, Counts{})
			held = true
		}
	}
	if held {
		r.ask(part, holder)
	}
	return held
}

// set sets the hold count of the command's owner, and its lease.
func (r *run) set(l *Lock, count int) {
	l.put(r.owner, Counts{Exclusive: count})
	r.pexpire(l, r.Lease)
}

func (r *run) yield(part int) lock.Result {
	l := &r.parts[part]
	if !l.holds(r.owner) {
		r.withdraw(part)
		return result(lock.Absent)
	}
	if r.others(l) == 0 && !r.Forced {
		r.set(l, 1)
		return result(lock.Renewed)
	}
	l.put(r.owner, Counts{})
	return r.yielded(part, false)
}

// draw draws so many tokens, and returns the last.
func (r *run) draw(part int) []int64 {
	l := &r.parts[part]
	if r.Command.Tokens == 0 {
		return nil
	}
	if len(r.Above) > 0 {
		l.Tokens, r.Above = max(l.Tokens, r.Above[0]), r.Above[1:]
	}
	l.Tokens += r.Command.Tokens
	return []int64{l.Tokens}
}
