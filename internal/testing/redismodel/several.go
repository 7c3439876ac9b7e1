package redismodel

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// several runs a command on all parts of a MultiLock: one script takes all or none, and other commands run on
// each part.
func (r *run) several() lock.Result {
	yields := r.Kind == lock.Yield
	switch {
	case r.Kind == lock.Acquire && r.Count == 1:
		return r.takeAll()
	case yields: // a MultiLock yields even if no other client is seen to wait
		r.Kind, r.Count = lock.Release, 0
	}
	whole := result(lock.Done)
	for i := range r.Parts() {
		one := r.part(i)
		whole.WasHeld = whole.WasHeld || one.WasHeld
		if one.Outcome == lock.Absent || one.Outcome == lock.Refused {
			whole.Outcome, whole.Taken = lock.Absent, whole.Taken || one.Taken || one.Outcome == lock.Refused
		}
	}
	if yields && !slices.Contains(r.setup.Kinds, Fair) {
		for i := range r.Parts() {
			r.enterAnew(i)
		}
	}
	return whole
}

// part runs the command on one part, adapted to its kind.
func (r *run) part(i int) lock.Result {
	whole := r.Command
	if r.Mode = machine.Exclusive; r.setup.Kinds[i] == ReadPart {
		r.Mode, r.Count, r.Shared = machine.Shared, 0, r.Count
	}
	if r.setup.Kinds[i] != Fenced {
		r.Tokens = 0
	}
	one := r.one(i)
	r.Command = whole
	return one
}

// takeAll takes all parts, or none. The first pass changes nothing.
func (r *run) takeAll() lock.Result {
	for i := range r.Parts() {
		if refusal, refused := r.refuses(i); refused {
			r.enterAll()
			return refusal
		}
	}
	answer := result(lock.Done)
	for i := range r.Parts() {
		l := &r.parts[i]
		held, lease, first := l.Of(r.owner), r.Lease, l.Free()
		r.leaveWaitQueue(l)
		switch kind := r.setup.Kinds[i]; {
		case kind == ReadPart:
			if !l.Free() {
				lease = max(lease, r.pttl(l)) // other readers may have a longer one
			}
			l.setLease(r.owner, 1, r.end(r.Lease))
			held.Shared = 1
		case kind == Fenced:
			answer.Tokens = append(answer.Tokens, r.draw(i)...)
		case kind == Fair && l.Free():
			l.Queue = nil // all its waiters are dead
		}
		if r.setup.Kinds[i] != ReadPart {
			held.Exclusive = 1
		}
		l.put(r.owner, held)
		r.pexpire(l, lease)
		if r.setup.Kinds[i] == ReadPart {
			r.transferNext(i, first)
		}
	}
	return answer
}

// refuses reports whether a part is held by another owner, or another waiter in its queue comes first.
func (r *run) refuses(i int) (refusal lock.Result, refused bool) {
	l, reads := &r.parts[i], r.setup.Kinds[i] == ReadPart
	held := l.Of(r.owner)
	if r.setup.Kinds[i] != Fair {
		r.place(i)
	}
	switch {
	case l.Free():
		for _, w := range l.Queue {
			if w.Timeout > r.Clock() {
				return r.refused(r.client, w.Timeout-r.Clock(), Field{}), true
			}
		}
		if r.mayTake(i, reads) {
			return lock.Result{}, false
		}
		refusal = r.refusal(r.client, l)
		if l.Free() {
			refusal.TTL = max(r.left(r.reservedUntil(l)), time.Millisecond)
		}
		return refusal, true
	case reads && (held.Shared > 0 || !l.Written() && !r.writerAhead(l)), !reads && held.Exclusive > 0:
		return lock.Result{}, false
	}
	return r.refusal(r.client, l), true
}

// askPart asks the holder of a part, as an acquire of that part alone would.
func (r *run) askPart(i int) {
	l := &r.parts[i]
	if r.setup.Kinds[i] <= Fenced && r.busy(i) && (r.Entry.Term == 0 || !l.anyEntry()) {
		r.ask(i, r.holder(l))
	}
}
