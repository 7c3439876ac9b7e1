package redismodel

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// How a lock is passed on to the clients in its wait queue.

// passOn transfers a free lock to the first entry, or to all readers before the first writer. If readers hold
// the lock, more readers may join them. It returns the clients of the MultiLocks that may, which get no transfer; they
// are woken if readers get the free lock.
func (r *run) passOn(part int, written bool) (mayJoin []Client) {
	l := &r.parts[part]
	free := l.Free()
	r.eachEntry(l, func(p Entry) bool {
		switch {
		case r.asks(p) && p.Reserves:
			return p.Mode == machine.Shared && !l.Free()
		case r.asks(p):
			return p.Mode == machine.Shared || !p.Listens
		case p.Reserves && p.Mode == machine.Shared && !l.Free():
			mayJoin = append(mayJoin, p.Client)
			return true
		case p.Reserves || p.Mode == machine.Exclusive && !l.Free():
			return false
		}
		r.transfer(part, p)
		return p.Mode == machine.Shared
	})
	if free && len(mayJoin) > 0 {
		r.publish(Publication{Part: part})
	}
	if !l.Free() {
		return mayJoin
	}
	if i, ok := r.reserving(l); ok && l.Entries[i].Since == 0 {
		l.Entries = slices.Clone(l.Entries)
		l.Entries[i].Since = r.now
		r.touch(l)
	}
	if r.Kind != lock.Acquire { // an acquire frees nothing
		r.publish(Publication{Part: part, All: written})
	}
	return nil
}

// passOnToReaders passes on a lock that a reader has just taken. If the reader is the first, MultiLocks that may join it
// are woken.
func (r *run) passOnToReaders(part int, first bool) {
	if mayJoin := r.passOn(part, false); first && len(mayJoin) > 0 {
		r.publish(Publication{Part: part})
	}
}

// transfer makes the client of an entry the holder.
func (r *run) transfer(part int, p Entry) {
	l := &r.parts[part]
	to := run{Server: r.Server, client: p.Client, owner: Owner{p.Client, p.Term}, Command: lock.Command{Lease: p.TTL, Tokens: p.Tokens}}
	if r.setup.Kinds[part] == ReadWrite {
		to.hold(l, once(p.Mode))
	} else {
		to.set(l, 1)
	}
	tokens := to.draw(part)
	r.dropEntry(l, p.Client)
	r.publish(Publication{Part: part, To: TurnChannel(p.Client), Transfer: machine.Transfer{Term: p.Term, Seq: p.Seq, Tokens: tokens}})
}

// passOnOrOpen passes on a lock that has just become free, or leaves it to foreign clients when they are due.
// It reports whether the lock is left to them.
func (r *run) passOnOrOpen(part int, written bool) bool {
	l := &r.parts[part]
	foreign, entries := r.waiting(l)
	yields := r.Kind == lock.Yield
	switch {
	case yields && r.Forced, entries > 0 && r.isOpenTime(), foreign > 0 && (entries > 0 || yields) && l.Turns*foreign >= entries:
		l.OpenUntil, l.Turns = r.end(r.setup.WaitQueue.OpenTime), 0
		r.touch(l)
		r.publish(Publication{Part: part, All: written})
		return true
	case entries > 0 && foreign > 0:
		l.Turns++
		r.touch(l)
	}
	r.passOn(part, written)
	return false
}

// isOpenTime reports whether it is time to leave the lock to foreign clients that cannot be seen.
func (r *run) isOpenTime() bool {
	s := &r.setup.WaitQueue
	return s.OpenEvery > 0 && r.Clock()%s.OpenEvery < min(s.OpenTime, s.OpenEvery/100)
}

// yielded passes on a lock that its holder has yielded, and adds the holder's entry at the end.
func (r *run) yielded(part int, written bool) lock.Result {
	answer := result(lock.Done)
	// The holder itself gets no transfer.
	own := func(p Entry) bool { return p.Client == r.client && p.Term <= max(r.owner.Term, r.Entry.Term) }
	if l := &r.parts[part]; slices.ContainsFunc(l.Entries, own) {
		r.dropEntry(l, r.client)
	}
	if r.passOnOrOpen(part, written) {
		answer.Others = 1
	}
	r.enterAtEnd(part)
	return answer
}

// passFree passes on a lock that is free and not left to others.
func (r *run) passFree(part int) {
	if l := &r.parts[part]; l.Free() && l.OpenUntil <= r.now {
		r.passOn(part, false)
	}
}

// passReservation removes the entry of a client that does not hold the lock. If the free lock was kept for it, the next
// client gets it, or a message that it is kept for it now.
func (r *run) passReservation(part int) {
	l := &r.parts[part]
	reserved := slices.ContainsFunc(l.Entries, func(p Entry) bool { return p.Client == r.client && p.Reserves })
	if r.leaveWaitQueue(l) && reserved {
		if r.passFree(part); l.Free() && l.OpenUntil <= r.now {
			r.publish(Publication{Part: part})
		}
	}
}

// withdraw removes the entry of a client that stops waiting, or whose hold has expired before its release came, and
// passes on the free lock, unless others were before it. The yield of a MultiLock that adds an entry again does not.
func (r *run) withdraw(part int) {
	l := &r.parts[part]
	if r.Kind != lock.Yield && r.Entry.Term != 0 || len(l.Entries) == 0 {
		r.leaveWaitQueue(l)
		return
	}
	first, own := false, func(p Entry) bool { return p.Client == r.client }
	if slices.ContainsFunc(l.Entries, own) {
		r.eachEntry(l, func(p Entry) bool {
			first = own(p)
			return false
		})
	}
	if left := r.leaveWaitQueue(l); first || !left {
		r.passFree(part)
	}
}

// withdrawBesideReaders removes the entry of a client that stops waiting while readers hold the lock. A writer may have
// kept others behind it from joining them.
func (r *run) withdrawBesideReaders(part int) {
	l := &r.parts[part]
	before := l.Entries
	i := slices.IndexFunc(before, func(p Entry) bool { return p.Client == r.client })
	if !r.leaveWaitQueue(l) {
		return
	}
	mayJoin := r.passOn(part, false)
	joins := func(p Entry) bool { return slices.Contains(mayJoin, p.Client) }
	if before[i].Mode == machine.Exclusive && slices.ContainsFunc(before[i:], joins) {
		r.publish(Publication{Part: part})
	}
}
