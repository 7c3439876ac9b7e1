package redismodel

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// How a lock is transferred to the clients in its wait queue.

// transferNext transfers a free lock to the first entry, or to all readers before the first writer. If readers hold the lock,
// more readers may join them. MultiLocks that may then join get no transfer: they are woken if readers get the free
// lock, if reading begins with this command, or if a writer before them has left. begun: the free lock is reserved for
// a MultiLock from now on.
func (r *run) transferNext(part int, begins bool) (begun bool) {
	l := &r.parts[part]
	begins = begins || l.Free()
	wakes := false
	r.eachEntry(l, func(p Entry) bool {
		switch {
		case r.asks(p) && p.Reserves:
			return p.Mode == machine.Shared && !l.Free()
		case r.asks(p):
			return p.Mode == machine.Shared || !p.Listens
		case p.Reserves && p.Mode == machine.Shared && !l.Free():
			wakes = wakes || begins || r.unblocked(l, p)
			return true
		case p.Reserves || p.Mode == machine.Exclusive && !l.Free():
			return false
		}
		r.transferTo(part, p)
		return p.Mode == machine.Shared
	})
	if wakes {
		r.publish(Publication{Part: part})
	}
	if !l.Free() {
		return false
	}
	i, ok := r.reserving(l)
	if begun = ok && l.Entries[i].Since == 0; begun {
		l.Entries = slices.Clone(l.Entries)
		l.Entries[i].Since = r.now
		r.touch(l)
	}
	return begun
}

// unblocked reports whether a writer before an entry has left since the command began.
func (r *run) unblocked(l *Lock, p Entry) bool {
	place, any := r.vacated[l]
	return any && slices.Index(l.Entries, p) >= place
}

// transferUnblocked lets others join the readers that hold a lock, if a writer that has gone kept them from it.
func (r *run) transferUnblocked(part int) {
	if _, any := r.vacated[&r.parts[part]]; any {
		r.transferNext(part, false)
	}
}

// transferFound transfers a lock that was found free: its hold has expired, or its key was deleted. A MultiLock for which it
// is reserved from now on is woken.
func (r *run) transferFound(part int) {
	if r.transferNext(part, false) {
		r.publish(Publication{Part: part})
	}
}

// transferTo makes the client of an entry the holder.
func (r *run) transferTo(part int, p Entry) {
	l := &r.parts[part]
	to := run{
		Server: r.Server, client: p.Client, owner: Owner{Client: p.Client, Term: p.Term},
		Command: lock.Command{Lease: p.TTL, Tokens: p.Tokens},
	}
	if r.setup.Kinds[part] == ReadWrite {
		to.hold(l, once(p.Mode))
	} else {
		to.set(l, 1)
	}
	tokens := to.draw(part)
	r.dropEntry(l, p.Client)
	r.publish(Publication{Part: part, To: TurnChannel(p.Client), Transfer: machine.Transfer{Term: p.Term, Seq: p.Seq, Tokens: tokens}})
}

// endTurn transfers a lock that has just become free, or leaves it to foreign clients when they are due.
// It reports whether the lock is left to them.
func (r *run) endTurn(part int, written bool) bool {
	l := &r.parts[part]
	foreign, entries := r.waiting(l)
	yields := r.Kind == lock.Yield
	leaves := entries > 0 || yields || r.foreignListeners() > 0
	switch {
	case yields && r.Forced, entries > 0 && r.isOpenTime(), foreign > 0 && leaves && l.Turns*foreign >= entries:
		r.touch(l)
		l.OpenUntil, l.Turns = r.end(r.setup.WaitQueue.OpenTime), 0
		r.publish(Publication{Part: part, All: written})
		return true
	case entries > 0 && foreign > 0:
		l.Turns++
		r.touch(l)
	}
	if r.transferNext(part, false); l.Free() {
		r.publish(Publication{Part: part, All: written})
	}
	return false
}

// isOpenTime reports whether it is time to leave the lock to foreign clients that cannot be seen.
func (r *run) isOpenTime() bool {
	s := &r.setup.WaitQueue
	return s.OpenEvery > 0 && r.Clock()%s.OpenEvery < min(s.OpenTime, s.OpenEvery/100)
}

// yielded transfers a lock that its holder has yielded, and adds the holder's entry at the end.
func (r *run) yielded(part int, written bool) lock.Result {
	answer := result(lock.Done)
	r.leaveToYield(&r.parts[part])
	if r.endTurn(part, written) {
		answer.Others = 1
	}
	r.enterAnew(part)
	return answer
}

// leaveToYield removes the entry of the holder: it gets no transfer.
func (r *run) leaveToYield(l *Lock) {
	own := func(p Entry) bool { return p.Client == r.client && p.Term <= max(r.owner.Term, r.Entry.Term) }
	if slices.ContainsFunc(l.Entries, own) {
		r.dropEntry(l, r.client)
	}
}

// isFree reports whether a lock is free, and not left to others.
func (r *run) isFree(l *Lock) bool { return l.Free() && l.OpenUntil <= r.now }

// transferFree transfers a lock that is free and not left to others. If no client gets it, that is published.
func (r *run) transferFree(part int) {
	l := &r.parts[part]
	if !r.isFree(l) {
		return
	}
	if r.transferNext(part, false); l.Free() {
		r.publish(Publication{Part: part})
	}
}

// stepBack removes the entry of a client, and transfers the lock to clients that it has kept waiting: a writer those
// behind it from joining readers, and the first those behind it from the free lock. It reports whether there was one.
func (r *run) stepBack(part int) (left bool) {
	l := &r.parts[part]
	reading := r.busy(part) && !l.Written()
	place := slices.IndexFunc(l.Entries, func(p Entry) bool { return p.Client == r.client })
	first := !reading && place >= 0
	if first {
		r.each(l, l.Entries[:place], func(Entry) bool {
			first = false
			return false
		})
	}
	switch left = r.leaveWaitQueue(l); {
	case left && reading:
		r.transferNext(part, false)
	case reading:
		r.transferUnblocked(part)
	case left && first:
		r.transferFree(part)
	}
	return left
}

// withdraw removes the entry of a client that stops waiting, or whose hold has expired before its release came, and
// transfers the free lock, unless others were before it. The yield of a MultiLock adds an entry again.
func (r *run) withdraw(part int) {
	l := &r.parts[part]
	reading := !l.Free() && !l.Written()
	if r.Kind != lock.Yield && r.Entry.Term != 0 && !reading {
		if r.leaveWaitQueue(l); r.isFree(l) {
			r.transferFound(part)
		}
		return
	}
	some := len(l.Entries) > 0
	if !r.stepBack(part) && !reading && some {
		r.transferFree(part)
	}
}
