package model

import (
	"github.com/lockkeeper-go/lockkeeper/core"
)

// several carries a command out on all parts of a MultiLock: one script takes all or
// none; anything else each of them does for itself.
func (r *run) several() core.Result {
	switch {
	case r.Kind == core.Acquire && r.Count == 1:
		return r.takeAll()
	case r.Kind == core.Yield: // who waits for which part is not asked
		r.Kind, r.Count = core.Release, 0
	}
	whole := result(core.Done)
	for i := range r.Parts() {
		one := r.part(i)
		whole.WasHeld = whole.WasHeld || one.WasHeld
		if one.Outcome == core.Absent || one.Outcome == core.Refused {
			whole.Outcome, whole.Taken = core.Absent, whole.Taken || one.Taken || one.Outcome == core.Refused
		}
	}
	return whole
}

// part carries the command out on one part, as it has to see it.
func (r *run) part(i int) core.Result {
	whole := r.Command
	if r.Mode = core.Exclusive; r.setup.Kinds[i] == ReadPart {
		r.Mode, r.Count, r.Shared = core.Shared, 0, r.Count
	}
	if r.setup.Kinds[i] != Fenced {
		r.Tokens = 0
	}
	one := r.one(i)
	r.Command = whole
	return one
}

// takeAll takes all parts, or none. The first pass changes nothing.
func (r *run) takeAll() core.Result {
	for i := range r.Parts() {
		if refusal, refused := r.refuses(i); refused {
			return refusal
		}
	}
	answer := result(core.Done)
	for i := range r.Parts() {
		l := &r.parts[i]
		held := l.Of(r.owner)
		lease := r.Lease
		switch r.setup.Kinds[i] {
		case Fenced:
			answer.Tokens = append(answer.Tokens, r.draw(i)...)
			held.Exclusive = 1
		case Fair:
			if l.Free() {
				l.queue = nil // all that is in it is dead
			}
			held.Exclusive = 1
		case WritePart:
			r.withdraw(l)
			held.Exclusive = 1
		case ReadPart:
			if !l.Free() {
				lease = max(lease, r.pttl(l)) // others may read under a longer one
			}
			l.setLease(r.owner, 1, r.end(r.Lease))
			held.Shared = 1
		default:
			held.Exclusive = 1
		}
		l.put(r.owner, held)
		r.pexpire(l, lease)
	}
	return answer
}

// refuses reports whether somebody has a part, or waits for it in its queue.
func (r *run) refuses(i int) (refusal core.Result, refused bool) {
	l, kind := &r.parts[i], r.setup.Kinds[i]
	held := l.Of(r.owner)
	switch {
	case l.Free() && kind == Fair:
		for _, w := range l.queue {
			if w.Timeout > r.Clock() {
				return r.refused(r.client, w.Timeout-r.Clock(), Field{}), true
			}
		}
		return core.Result{}, false
	case l.Free():
		return core.Result{}, false
	case kind == ReadPart:
		if held.Shared > 0 || !l.Written() && !l.announced(r.client) {
			return core.Result{}, false
		}
	case held.Exclusive > 0:
		return core.Result{}, false
	}
	return r.refusal(r.client, l), true
}
