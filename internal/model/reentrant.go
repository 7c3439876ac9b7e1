package model

import "github.com/lockkeeper-go/lockkeeper/core"

// reentrant is the plain lock, and the fenced one: an acquire that draws tokens has a
// counter beside the hash.
func (r *run) reentrant(part int) core.Result {
	answer := r.plain(part)
	if r.Kind == core.Acquire && answer.Outcome == core.Done {
		answer.Tokens = r.draw(part)
	}
	return answer
}

// plain is a hash with one field.
func (r *run) plain(part int) core.Result {
	l := &r.parts[part]
	ours := l.holds(r.owner)
	switch r.Kind {
	case core.Acquire:
		switch {
		case l.Free() && r.Count != 1:
			return result(core.Absent)
		case !l.Free() && !ours:
			return r.refusal(r.client, l)
		}
		r.set(l, r.Count)
		return result(core.Done)
	case core.Release:
		switch {
		case !ours:
			return result(core.Absent)
		case r.Count == 0:
			l.put(r.owner, Counts{})
			r.publish(Publication{Part: part})
		default:
			r.set(l, r.Count)
		}
		return result(core.Done)
	case core.Renew:
		if !ours {
			return core.Result{Outcome: core.Absent, Taken: !l.Free()}
		}
		r.pexpire(l, r.Lease)
		return result(core.Done)
	case core.Yield:
		return r.yield(part)
	case core.ForceRelease:
		if l.Free() {
			return result(core.Done)
		}
		l.holders = nil
		r.publish(Publication{Part: part})
		return core.Result{Outcome: core.Done, WasHeld: true}
	}
	panic("no such command")
}

// set has the owner hold the lock so often, for the lease.
func (r *run) set(l *Lock, count int) {
	l.put(r.owner, Counts{Exclusive: count})
	r.pexpire(l, r.Lease)
}

func (r *run) yield(part int) core.Result {
	l := &r.parts[part]
	if !l.holds(r.owner) {
		return result(core.Absent)
	}
	others := r.Subscribers(Owner{})
	if r.Subscribed {
		others--
	}
	if others > 0 || r.Open {
		l.put(r.owner, Counts{})
		r.publish(Publication{Part: part})
		return core.Result{Outcome: core.Done, Others: max(others, 0)}
	}
	r.set(l, 1)
	return result(core.Kept)
}

// draw reserves tokens; only the last is told.
func (r *run) draw(part int) []int64 {
	l := &r.parts[part]
	if r.Command.Tokens == 0 {
		return nil
	}
	l.tokens += r.Command.Tokens
	return []int64{l.tokens}
}
