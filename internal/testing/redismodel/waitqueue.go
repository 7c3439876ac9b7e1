package redismodel

import (
	"math"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// WaitQueue are the settings of the wait queue; see protocol.WaitQueue.
type WaitQueue struct {
	OpenTime, OpenEvery time.Duration
	OneServer           bool
}

// Entry is a client's entry in the wait queue.
type Entry struct {
	Client Client
	lock.Entry
	// Seq is the number of the command that added or last confirmed the entry.
	Seq uint64
	// Until is the time at which the entry expires unless the client confirms it.
	Until machine.Instant
	// Lapsed: the reservation for a MultiLock has lasted too long, so other clients may take the lock until the
	// MultiLock tries again.
	Lapsed bool
	// Since is the time since which the free lock is reserved for a MultiLock, whose entry is the first. It gets no
	// transfer.
	Since machine.Instant
	// Arrived decides the place.
	Arrived machine.Instant
	// isNew: the command adds the entry if it is refused.
	isNew bool
}

// maxReserved is the longest time for which a free lock is reserved for a MultiLock.
const maxReserved = time.Minute

func (p *Entry) reservedUntil() machine.Instant { return p.Since + min(p.TTL/2, maxReserved) }

// turns replaces the term in the names of channels that only Lockkeeper uses.
const turns, asked = math.MaxUint64, math.MaxUint64 - 1

// TurnChannel returns the channel on which a client receives transfers.
func TurnChannel(c Client) Owner { return Owner{Client: c, Term: turns} }

// AskedChannel returns the channel on which a client is asked for locks.
func AskedChannel(c Client) Owner { return Owner{Client: c, Term: asked} }

// Waiters is the channel to which clients of Lockkeeper subscribe besides the lock's own. The difference of
// both counts is the number of foreign clients.
var Waiters = Owner{Client: -1, Term: turns}

// expireWaitQueue removes expired entries. Redis keeps them until a script reads them, with the same effect.
func (l *Lock) expireWaitQueue(now machine.Instant) {
	if l.WaitQueueEnds != 0 && now >= l.WaitQueueEnds {
		l.Entries, l.OpenUntil, l.Turns, l.WaitQueueEnds = nil, 0, 0, 0
	}
	dead := func(p Entry) bool { return now >= p.Until }
	if slices.ContainsFunc(l.Entries, dead) {
		l.Entries = slices.DeleteFunc(slices.Clone(l.Entries), dead)
	}
}

// hasWaitQueue reports whether the wait queue is in Redis.
func (l *Lock) hasWaitQueue() bool { return l.anyEntry() || l.OpenUntil != 0 || l.Turns > 0 }

// anyEntry reports whether an entry is in Redis.
func (l *Lock) anyEntry() bool {
	return slices.ContainsFunc(l.Entries, func(p Entry) bool { return !p.isNew })
}

// soon is the time at which an empty wait queue expires.
func (r *run) soon() machine.Instant { return r.end(r.setup.WaitQueue.OpenTime + time.Second) }

// touch renews the TTL of the wait queue before a write.
func (r *run) touch(l *Lock) { r.lasts(l, r.soon()) }

func (r *run) lasts(l *Lock, until machine.Instant) {
	if !l.hasWaitQueue() {
		l.WaitQueueEnds = 0
	}
	l.WaitQueueEnds = max(l.WaitQueueEnds, until)
}

func (r *run) dropEntry(l *Lock, c Client) {
	i := slices.IndexFunc(l.Entries, func(p Entry) bool { return p.Client == c })
	place, any := r.vacated[l]
	switch {
	case i < 0:
		return
	case l.Entries[i].isNew:
		l.Entries = slices.Delete(slices.Clone(l.Entries), i, i+1)
		return
	case l.Entries[i].Mode == machine.Exclusive && (!any || i < place):
		r.vacated[l] = i
	case any && i < place:
		r.vacated[l]--
	}
	l.Entries = slices.Delete(slices.Clone(l.Entries), i, i+1)
	if len(l.Entries) == 0 && l.hasWaitQueue() {
		l.WaitQueueEnds = r.soon()
	}
}

// leaveWaitQueue removes the entry of the command's client, and reports whether there was one.
func (r *run) leaveWaitQueue(l *Lock) bool {
	for _, p := range l.Entries {
		if p.Client == r.client && p.Term <= r.owner.Term {
			r.dropEntry(l, r.client)
			return true
		}
	}
	return false
}

// enter adds or confirms the entry of the command, unless the command is a late one of an earlier term. busy:
// others hold another part of a MultiLock.
func (r *run) enter(part int, busy bool) {
	if r.Entry.Term == 0 {
		return
	}
	l, p := &r.parts[part], r.newEntry(part)
	i := slices.IndexFunc(l.Entries, func(p Entry) bool { return p.Client == r.client })
	if i >= 0 && l.Entries[i].Term > p.Term {
		return
	}
	r.lasts(l, p.Until)
	if i < 0 {
		l.insert(p)
		return
	}
	p.Arrived = l.Entries[i].Arrived
	if p.Since, p.Lapsed = l.Entries[i].Since, l.Entries[i].Lapsed; p.Lapsed && !busy {
		p.Since, p.Lapsed = 0, false
	}
	l.Entries = slices.Clone(l.Entries)
	l.Entries[i] = p
}

// newEntry returns an entry for the command. Its place follows from the time for which the client has waited.
func (r *run) newEntry(part int) Entry {
	p := Entry{Client: r.client, Entry: r.Entry, Seq: r.Seq, Until: r.end(r.Entry.TTL), Arrived: max(r.now-r.Entry.Waited, 0)}
	p.Waited = 0
	if p.Reserves {
		if p.Mode = machine.Exclusive; r.setup.Kinds[part] == ReadPart {
			p.Mode = machine.Shared
		}
	}
	return p
}

func (l *Lock) insert(p Entry) {
	i := slices.IndexFunc(l.Entries, func(other Entry) bool { return other.Arrived > p.Arrived })
	if i < 0 {
		i = len(l.Entries)
	}
	l.Entries = slices.Insert(slices.Clone(l.Entries), i, p)
}

// place gives a client that asks for a MultiLock a place by the time for which it has waited, if it has no entry.
func (r *run) place(part int) {
	l := &r.parts[part]
	own := func(p Entry) bool { return p.Client == r.client }
	if r.Entry.Waited != 0 && !slices.ContainsFunc(l.Entries, own) {
		p := r.newEntry(part)
		p.isNew = true
		l.insert(p)
	}
}

// enterAll adds the entries of a MultiLock to the wait queues of its parts. A client that lacks an entry in
// one of them gets a new place in all: with different orders, MultiLocks would wait for each other.
func (r *run) enterAll() {
	if r.Entry.Term == 0 {
		for i := range r.Parts() {
			r.askPart(i)
			if r.busy(i) && !r.parts[i].Written() {
				r.transferUnblocked(i)
			}
		}
		return
	}
	has := func(p Entry) bool { return p.Client == r.client && !p.isNew }
	whole, busy := true, 0
	for i := range r.Parts() {
		if r.setup.Kinds[i] != Fair {
			r.place(i)
		}
		if r.busy(i) {
			busy++
		}
		whole = whole && (r.setup.Kinds[i] == Fair || slices.ContainsFunc(r.parts[i].Entries, has))
	}
	for i := range r.Parts() {
		r.askPart(i)
		if r.setup.Kinds[i] == Fair {
			continue
		}
		if !whole && slices.ContainsFunc(r.parts[i].Entries, has) {
			r.stepBack(i)
		} else if r.busy(i) && !r.parts[i].Written() {
			r.transferUnblocked(i)
		}
		if whole {
			r.enter(i, busy > 1 || busy == 1 && !r.busy(i))
		} else {
			r.enterAnew(i)
		}
	}
}

// busy reports whether others hold a part.
func (r *run) busy(part int) bool {
	l := &r.parts[part]
	held := l.Of(r.owner)
	if r.setup.Kinds[part] == WritePart {
		return !l.Free() && held.Exclusive == 0
	}
	return !l.Free() && held == Counts{}
}

func (r *run) enterAnew(part int) {
	l := &r.parts[part]
	late := func(p Entry) bool { return p.Client == r.client && p.Term > r.Entry.Term }
	if r.Entry.Term != 0 && !slices.ContainsFunc(l.Entries, late) {
		var ends machine.Instant
		if l.hasWaitQueue() {
			ends = l.WaitQueueEnds // the script overwrites the entry
		}
		r.dropEntry(l, r.client)
		r.enter(part, false)
		l.WaitQueueEnds = max(l.WaitQueueEnds, ends)
	}
}

// refuseAndEnter adds the entry of the command, and returns the holder, or for how long the lock is left to
// others.
func (r *run) refuseAndEnter(part int) lock.Result {
	l := &r.parts[part]
	refusal := r.refusal(r.client, l)
	if l.Free() {
		refusal.TTL = max(r.left(r.reservedUntil(l)), time.Millisecond)
	} else if l.OpenUntil != 0 && r.Kind == lock.Acquire {
		l.OpenUntil = 0 // a foreign client has had the lock
	}
	r.enter(part, false)
	return refusal
}

// asks reports whether the entry belongs to the client that asks for the lock by this command.
func (r *run) asks(p Entry) bool { return r.Kind == lock.Acquire && p.Client == r.client }

// eachEntry calls each for the entries until it returns false. It skips entries that cannot get a transfer
// yet, and removes those that no longer can.
func (r *run) eachEntry(l *Lock, each func(Entry) (more bool)) { r.each(l, l.Entries, each) }

func (r *run) each(l *Lock, entries []Entry, each func(Entry) (more bool)) {
	for _, p := range entries {
		switch {
		case r.asks(p):
			if !each(p) {
				return
			}
		case p.Reserves:
			if !p.Lapsed && !each(p) {
				return
			}
		case !p.Listens:
		case r.setup.WaitQueue.OneServer && r.Subscribers(TurnChannel(p.Client)) == 0:
			r.dropEntry(l, p.Client)
		case !each(p):
			return
		}
	}
}

// ahead reports whether another entry is before the entry of the client that asks.
func (r *run) ahead(l *Lock) (ahead bool) {
	r.eachEntry(l, func(p Entry) bool {
		ahead = !r.asks(p)
		return false
	})
	return ahead
}

// writerAhead reports whether a writer's entry is before it.
func (r *run) writerAhead(l *Lock) (ahead bool) {
	r.eachEntry(l, func(p Entry) bool {
		ahead = !r.asks(p) && p.Mode == machine.Exclusive
		return !r.asks(p) && !ahead
	})
	return ahead
}

// outside reports whether the command's client waits without a subscription to transfers.
func (r *run) outside() bool {
	return r.Entry.Term != 0 && !r.Entry.Listens && !r.Entry.Reserves
}

// mayTake reports whether the client may take a free lock. If not, the lock is transferred to the first
// entries.
func (r *run) mayTake(part int, shared bool) bool {
	l := &r.parts[part]
	if l.OpenUntil > r.now {
		switch {
		case r.outside() && slices.ContainsFunc(l.Entries, func(p Entry) bool { return p.Client == r.client && !p.isNew }):
			return true
		case !r.Notified:
			return false
		}
		l.OpenUntil = 0
	}
	r.endReservation(l)
	if !r.ahead(l) {
		return true
	}
	r.transferFound(part)
	return shared && !l.Free() && !l.Written() && !r.writerAhead(l)
}

// reserving returns the index of the first entry, if it belongs to another client's MultiLock.
func (r *run) reserving(l *Lock) (i int, ok bool) {
	r.eachEntry(l, func(p Entry) bool {
		i = slices.Index(l.Entries, p)
		ok = p.Reserves && !r.asks(p)
		return false
	})
	return i, ok
}

// endReservation ends a reservation that has lasted too long: the holder of another lock of that MultiLock
// may wait for this one.
func (r *run) endReservation(l *Lock) {
	i, ok := r.reserving(l)
	if !ok || l.Entries[i].Since == 0 || r.now < l.Entries[i].reservedUntil() {
		return
	}
	l.Entries = slices.Clone(l.Entries)
	l.Entries[i].Lapsed = true
	r.touch(l)
}

// reservedUntil returns until when a free lock is reserved for others.
func (r *run) reservedUntil(l *Lock) machine.Instant {
	if l.OpenUntil > r.now {
		return l.OpenUntil
	}
	if i, ok := r.reserving(l); ok {
		return l.Entries[i].reservedUntil()
	}
	return r.now
}

// others returns the number of other clients that wait for the lock.
func (r *run) others(l *Lock) int {
	foreign, entries := r.waiting(l)
	return foreign + entries
}

// waiting counts foreign clients, and entries of other clients. It makes sure that the first entry can get a
// transfer.
func (r *run) waiting(l *Lock) (foreign, entries int) {
	r.eachEntry(l, func(p Entry) bool { return p.Client == r.client })
	for _, p := range l.Entries {
		switch {
		case p.Client == r.client, p.Lapsed:
		case p.Listens, p.Reserves:
			entries++
		default:
			foreign++
		}
	}
	return foreign + r.foreignListeners(), entries
}

// foreignListeners returns the number of foreign clients that are seen to listen.
func (r *run) foreignListeners() int {
	if !r.setup.WaitQueue.OneServer {
		return 0
	}
	return max(r.Subscribers(Owner{})-r.Subscribers(Waiters), 0)
}

func (e *Encoder) waitQueue(l *Lock) {
	e.Number(int64(len(l.Entries)))
	for _, p := range l.Entries {
		e.Owner(Owner{Client: p.Client, Term: p.Term})
		e.Number(int64(p.Mode))
		e.Number(p.Tokens)
		e.Number(int64(p.TTL))
		e.Bool(p.Listens)
		e.Bool(p.Reserves)
		e.Bool(p.Lapsed)
		e.Instant(p.Since)
		e.Instant(p.Until)
		if e.Placed != nil {
			e.Number(e.Placed(p.Client, p.Seq))
		}
	}
	if l.WaitQueueEnds != 0 {
		e.Instant(max(l.OpenUntil, 1))
		e.Number(int64(l.Turns))
		e.Instant(l.WaitQueueEnds)
	}
}
