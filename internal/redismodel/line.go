package redismodel

import (
	"math"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// Line are the settings of the line, as protocol.Line has them.
type WaitQueue struct {
	OpenTime, OpenEvery time.Duration
	SeesListeners       bool
}

// Place is a client's place in the line of processes.
type Entry struct {
	Client Client
	lock.Entry
	// Seq is the number of the command that took the place or confirmed it last.
	Seq uint64
	// Until is when the client counts as dead, if nothing is heard of it before.
	Until lock.Instant
	// The place of a MultiLock reserves: it gets no transfer. While it is the first, the free lock is
	// kept for it, which began at Since. Lapsed: that lasted too long, so that others may take the lock
	// until it tries again.
	Lapsed bool
	Since  lock.Instant
}

// turns stands in place of a term in the names of channels that are ours alone.
const turns = math.MaxUint64

// TurnChannel is the channel on which a client hears of transfers.
func TurnChannel(c Client) Owner { return Owner{c, turns} }

// Waiters is the channel that our clients subscribe to beside the lock's own, so that it can be
// told how many of those who listen there are others.
var Waiters = Owner{-1, turns}

// expireLine forgets dead places. Redis keeps them until it meets them; nobody can tell.
func (l *Lock) expireWaitQueue(now lock.Instant) {
	if l.LineEnds != 0 && now >= l.LineEnds {
		l.Line, l.OpenUntil, l.Turns, l.LineEnds = nil, 0, 0, 0
	}
	dead := func(p Entry) bool { return now >= p.Until }
	if slices.ContainsFunc(l.Line, dead) {
		l.Line = slices.DeleteFunc(slices.Clone(l.Line), dead)
	}
}

// touch is a write to the line. Redis soon forgets a line in which nobody stands.
func (r *run) touch(l *Lock) {
	var lasts time.Duration
	for _, p := range l.Line {
		lasts = max(lasts, p.TTL)
	}
	if len(l.Line) == 0 {
		lasts = r.setup.Line.OpenTime + time.Second
	}
	l.LineEnds = r.end(lasts)
}

func (r *run) dropEntry(l *Lock, c Client) {
	l.Line = slices.DeleteFunc(slices.Clone(l.Line), func(p Entry) bool { return p.Client == c })
	r.touch(l)
}

// leaveLine takes the command's owner out of the line, and reports whether it stood there.
func (r *run) leaveWaitQueue(l *Lock) bool {
	for _, p := range l.Line {
		if p.Client == r.client && p.Term <= r.owner.Term {
			r.dropEntry(l, r.client)
			return true
		}
	}
	return false
}

// giveWay takes an owner that does not hold the lock out of the line. If the free lock was kept for it, the
// next get it.
func (r *run) giveWay(part int) {
	l := &r.parts[part]
	reserved := slices.ContainsFunc(l.Line, func(p Entry) bool { return p.Client == r.client && p.Reserves })
	if r.leaveWaitQueue(l) && reserved && l.Free() && l.OpenUntil <= r.now {
		r.passOn(part, false)
	}
}

// giveUp does the same for good. A yield of several locks that takes a place again does not give up.
func (r *run) giveUp(part int) {
	if r.Entry.Term == 0 {
		r.giveWay(part)
		return
	}
	r.leaveWaitQueue(&r.parts[part])
}

// enter takes the place that the command asks for, or confirms it. busy: others hold another part of
// a MultiLock. A late command of a term that
// is over does not.
func (r *run) enter(l *Lock, busy bool) {
	if r.Entry.Term == 0 {
		return
	}
	p := Entry{Client: r.client, Entry: r.Entry, Seq: r.Seq, Until: r.end(r.Entry.TTL)}
	i := slices.IndexFunc(l.Line, func(p Entry) bool { return p.Client == r.client })
	switch {
	case i < 0:
		l.Line = append(slices.Clip(l.Line), p)
	case l.Line[i].Term > p.Term:
		return
	default:
		if p.Since, p.Lapsed = l.Line[i].Since, l.Line[i].Lapsed; p.Lapsed && !busy {
			p.Since, p.Lapsed = 0, false
		}
		l.Line = slices.Clone(l.Line)
		l.Line[i] = p
	}
	r.touch(l)
}

// enterAll takes the places of a MultiLock in the lines of its parts. Whoever has no place in one
// of the lines goes to the end of all: with different orders, MultiLocks would wait for each other.
func (r *run) enterAll() {
	if r.Entry.Term == 0 {
		return
	}
	whole, busy := true, 0
	for i := range r.Parts() {
		if r.busy(i) {
			busy++
		}
		has := func(p Entry) bool { return p.Client == r.client }
		whole = whole && (r.setup.Kinds[i] == Fair || slices.ContainsFunc(r.parts[i].Line, has))
	}
	for i := range r.Parts() {
		switch {
		case r.setup.Kinds[i] == Fair:
		case whole:
			r.enter(&r.parts[i], busy > 1 || busy == 1 && !r.busy(i))
		default:
			r.giveWay(i)
			r.enterAtEnd(&r.parts[i])
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

func (r *run) enterAtEnd(l *Lock) {
	late := func(p Entry) bool { return p.Client == r.client && p.Term > r.Entry.Term }
	if r.Entry.Term != 0 && !slices.ContainsFunc(l.Line, late) {
		r.dropEntry(l, r.client)
		r.enter(l, false)
	}
}

// refuseAndEnter tells the command who has the lock, or for how long it is left to others.
func (r *run) refuseAndEnter(l *Lock) lock.Result {
	refusal := r.refusal(r.client, l)
	if l.Free() {
		refusal.TTL = max(r.left(r.keptUntil(l)), time.Millisecond)
	} else if l.OpenUntil != 0 && r.Kind == lock.Acquire {
		l.OpenUntil = 0 // somebody outside the line has had a turn
		r.touch(l)
	}
	r.enter(l, false)
	return refusal
}

// asks reports whether a place is that of the client which asks for the lock by this command.
func (r *run) asks(p Entry) bool { return r.Kind == lock.Acquire && p.Client == r.client }

// look goes along the line, as it was, until it is told to stop. It leaves out those who cannot
// get a transfer yet, and removes those who cannot any more.
func (r *run) look(l *Lock, each func(Entry) (more bool)) {
	for _, p := range l.Line {
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
		case r.setup.Line.SeesListeners && r.Subscribers(TurnChannel(p.Client)) == 0:
			r.dropEntry(l, p.Client)
		case !each(p):
			return
		}
	}
}

// ahead reports whether somebody stands in the line before the client that asks.
func (r *run) ahead(l *Lock) (ahead bool) {
	r.look(l, func(p Entry) bool {
		ahead = !r.asks(p)
		return false
	})
	return ahead
}

// writerAhead reports whether a writer does.
func (r *run) writerAhead(l *Lock) (ahead bool) {
	r.look(l, func(p Entry) bool {
		ahead = !r.asks(p) && (p.Mode == lock.Exclusive || p.Reserves)
		return !r.asks(p) && !ahead
	})
	return ahead
}

// outside reports whether the command's client waits, and hears of no transfer.
func (r *run) outside() bool {
	return r.Entry.Term != 0 && !r.Entry.Listens && !r.Entry.Reserves
}

// mayTake reports whether it is the client's turn to take a free lock. If not, the lock passes
// on to those whose turn it is.
func (r *run) mayTake(part int, shared bool) bool {
	l := &r.parts[part]
	if l.OpenUntil > r.now {
		switch {
		case r.outside():
			return true
		case !r.Notified:
			return false
		}
		l.OpenUntil = 0
		r.touch(l)
	}
	r.endReservation(l)
	if !r.ahead(l) {
		return true
	}
	r.passOn(part, false)
	return shared && !l.Free() && !l.Written() && !r.writerAhead(l)
}

// reserving is the first place in the line, if it is that of a MultiLock of others.
func (r *run) reserving(l *Lock) (i int, ok bool) {
	r.look(l, func(p Entry) bool {
		i = slices.Index(l.Line, p)
		ok = p.Reserves && !r.asks(p)
		return false
	})
	return i, ok
}

// endReservation ends one that has lasted too long: its user may hold another of its locks, and
// wait for this one.
func (r *run) endReservation(l *Lock) {
	i, ok := r.reserving(l)
	if !ok || l.Line[i].Since == 0 || r.now < l.Line[i].Since+l.Line[i].TTL/2 {
		return
	}
	l.Line = slices.Clone(l.Line)
	l.Line[i].Lapsed = true
	r.touch(l)
}

// keptUntil is when a free lock is not kept for others any more.
func (r *run) keptUntil(l *Lock) lock.Instant {
	if l.OpenUntil > r.now {
		return l.OpenUntil
	}
	if i, ok := r.reserving(l); ok {
		return l.Line[i].Since + l.Line[i].TTL/2
	}
	return r.now
}

// others is how many other clients wait for the lock.
func (r *run) others(l *Lock) int {
	strangers, places := r.waiting(l)
	return strangers + places
}

// waiting counts the other clients outside the line and in it. Of those in it, it makes sure
// that the first can get a transfer.
func (r *run) waiting(l *Lock) (strangers, places int) {
	r.look(l, func(p Entry) bool { return p.Client == r.client })
	for _, p := range l.Line {
		switch {
		case p.Client == r.client, p.Lapsed:
		case p.Listens, p.Reserves:
			places++
		default:
			strangers++
		}
	}
	if r.setup.Line.SeesListeners {
		strangers += max(r.Subscribers(Owner{})-r.Subscribers(Waiters), 0)
	}
	return strangers, places
}

// passOnOrOpen passes a lock on that has just become free, or leaves it to clients outside the
// line if it is their turn. It reports whether it has done that.
func (r *run) passOnOrOpen(part int, written bool) bool {
	l := &r.parts[part]
	strangers, places := r.waiting(l)
	yields := r.Kind == lock.Yield
	switch {
	case yields && r.Forced, places > 0 && r.isOpenTime(), strangers > 0 && (places > 0 || yields) && l.Turns*strangers >= places:
		l.OpenUntil, l.Turns = r.end(r.setup.Line.OpenTime), 0
		r.touch(l)
		r.publish(Publication{Part: part, All: written})
		return true
	case places > 0 && strangers > 0:
		l.Turns++
		r.touch(l)
	}
	r.passOn(part, written)
	return false
}

// isOpenTime reports whether it is time to leave the lock to clients outside the line that cannot be
// seen.
func (r *run) isOpenTime() bool {
	s := &r.setup.Line
	return s.OpenEvery > 0 && r.Clock()%s.OpenEvery < min(s.OpenTime, s.OpenEvery/100)
}

// yielded passes on a lock that its holder has yielded, and puts the holder at the end of the line.
func (r *run) yielded(part int, written bool) lock.Result {
	answer := result(lock.Done)
	// Nothing is passed on to the holder itself.
	own := func(p Entry) bool { return p.Client == r.client && p.Term <= max(r.owner.Term, r.Entry.Term) }
	if l := &r.parts[part]; slices.ContainsFunc(l.Line, own) {
		r.dropEntry(l, r.client)
	}
	if r.passOnOrOpen(part, written) {
		answer.Others = 1
	}
	r.enterAtEnd(&r.parts[part])
	return answer
}

// passOn transfers a free lock to the first of the line, or to all readers before the first writer.
// If readers hold the lock, more readers may join them.
func (r *run) passOn(part int, written bool) {
	l := &r.parts[part]
	r.look(l, func(p Entry) bool {
		switch {
		case r.asks(p):
			return !p.Reserves && (p.Mode == lock.Shared || !p.Listens)
		case p.Reserves || p.Mode == lock.Exclusive && !l.Free():
			return false
		}
		r.transfer(part, p)
		return p.Mode == lock.Shared
	})
	if !l.Free() {
		return
	}
	if i, ok := r.reserving(l); ok && l.Line[i].Since == 0 {
		l.Line = slices.Clone(l.Line)
		l.Line[i].Since = r.now
		r.touch(l)
	}
	if r.Kind != lock.Acquire { // else nothing has become free
		r.publish(Publication{Part: part, All: written})
	}
}

// transfer makes a place's client the holder.
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
	r.publish(Publication{Part: part, To: TurnChannel(p.Client), Transfer: lock.Transfer{Term: p.Term, Seq: p.Seq, Tokens: tokens}})
}

func (e *Encoder) waitQueue(l *Lock) {
	e.Number(int64(len(l.Line)))
	for _, p := range l.Line {
		e.Owner(Owner{p.Client, p.Term})
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
	if l.LineEnds != 0 {
		e.Instant(max(l.OpenUntil, 1))
		e.Number(int64(l.Turns))
		e.Instant(l.LineEnds)
	}
}
