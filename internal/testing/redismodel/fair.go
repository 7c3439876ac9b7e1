package redismodel

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// Waiter is an entry in the queue of a fair lock.
type Waiter struct {
	Owner
	// Timeout is the time from which it counts as dead, on the server's clock.
	Timeout time.Duration
}

// queueReserve is the time for which Redis keeps the queue after its last waiter counts as dead.
const queueReserve = 10 * time.Minute

// latest returns when the last of all waiters counts as dead.
func latest(queue []Waiter, now time.Duration) time.Duration {
	for _, w := range queue {
		now = max(now, w.Timeout)
	}
	return now
}

// fair runs a command on the fair lock: the plain lock with a queue.
func (r *run) fair(part int) lock.Result {
	switch {
	case r.Kind == lock.SyncQueue:
		return r.syncQueue(part, Owner{Client: r.client, Term: r.Term}, r.Take, r.Top, r.Entries)
	case r.Kind == lock.Acquire && r.Count == 1:
		return r.syncQueue(part, Owner{}, true, 0, []lock.QueueEntry{{Term: r.Term, Lease: r.Lease, Try: true}})
	case r.Kind == lock.Release && r.Count == 0:
		if !r.syncQueue(part, r.owner, false, 0, nil).Freed {
			return result(lock.Absent)
		}
		return result(lock.Done)
	case r.Kind == lock.ForceRelease:
		return r.forceFair(part)
	}
	return r.plain(part)
}

// queueRun is one run of the sync_queue script.
type queueRun struct {
	*run
	l *Lock
	// mayTake: the command may take the lock.
	mayTake bool
	holder  Owner
	// taken is the owner that has taken the lock.
	taken Owner
	left  time.Duration
	// listed are the leases of the waiters that the client lists.
	listed map[Owner]time.Duration
	stay   []Waiter
}

func (r *run) syncQueue(part int, ends Owner, mayTake bool, top uint64, entries []lock.QueueEntry) lock.Result {
	l, now := &r.parts[part], r.Clock()
	e := &queueRun{run: r, l: l, mayTake: mayTake, listed: make(map[Owner]time.Duration, len(entries))}
	freed := ends.Term != 0 && l.holds(ends)
	if freed {
		l.put(ends, Counts{})
	}
	if !l.Free() {
		e.holder = l.Holders[0].Owner
	}
	e.left = r.pttl(l)
	for _, entry := range entries {
		e.listed[Owner{Client: r.client, Term: entry.Term}] = entry.Lease
	}
	if lease, ours := e.listed[e.holder]; ours { // the reply to an earlier take was lost
		e.taken = e.holder
		if e.left < lease {
			e.left = lease
			r.pexpire(l, lease)
		}
		delete(e.listed, e.holder)
	}
	before := l.Queue
	last := e.walk(now, top)
	e.join(now, last, entries)
	l.Queue = e.stay
	l.QueueEnds = r.end(max(last, latest(l.Queue, now)) - now + queueReserve)

	var head Waiter
	if len(e.stay) > 0 {
		head = e.stay[0]
	}
	var first Waiter
	if len(before) > 0 {
		first = before[0]
	}
	_, ours := e.listed[head.Owner]
	foreign := len(e.stay) > 0 && !ours
	if !ours && e.holder == (Owner{}) && (ends.Term != 0 || head.Owner != first.Owner) {
		r.publish(Publication{Part: part, To: head.Owner}) // without a queue, to MultiLocks
	}
	answer := lock.Result{Outcome: lock.Done, OwnTerm: e.taken.Term}
	switch {
	case e.taken != Owner{}:
	case e.holder != Owner{}:
		answer = r.refused(r.client, e.left, Field{Owner: e.holder})
	case foreign:
		answer = r.refused(r.client, max(head.Timeout-now, time.Millisecond), Field{})
	default:
		answer = r.refused(r.client, 0, Field{})
	}
	answer.Freed = freed
	return answer
}

func (e *queueRun) open() bool { return len(e.stay) == 0 && e.holder == Owner{} && e.mayTake }

func (e *queueRun) take(o Owner) {
	e.l.put(o, Counts{Exclusive: 1})
	e.left = e.listed[o]
	e.pexpire(e.l, e.left)
	e.holder, e.taken = o, o
	delete(e.listed, o)
}

// walk removes waiters that are dead, or no longer wait, and moves the others up by the gaps. It returns the
// last timeout.
func (e *queueRun) walk(now time.Duration, top uint64) (last time.Duration) {
	timeout := e.setup.WaiterTimeout
	var dead []Client
	last = now
	var gap, shift time.Duration
	for _, w := range e.l.Queue {
		_, listed := e.listed[w.Owner]
		w.Timeout -= shift
		first, goes, until := len(e.stay) == 0, false, time.Duration(0)
		switch {
		case listed:
			if goes = e.open(); goes {
				e.take(w.Owner)
			}
			w.Timeout = last + timeout
		case w.Client == e.client && w.Term <= top:
			goes = true
		case first && w.Timeout <= now:
			goes, dead = true, append(dead, w.Client)
		case slices.Contains(dead, w.Client):
			goes = e.Subscribers(w.Owner) == 0
		case first && e.holder == Owner{} && w.Client != e.client && w.Timeout > now+timeout && e.Subscribers(w.Owner) == 0:
			until = now + timeout // its timeout may still include the TTL of a holder that has left
		}
		if goes {
			gap += timeout
			continue
		}
		if gap > 0 && !listed {
			closed := min(gap, max(w.Timeout-last-timeout, 0))
			shift, gap = shift+closed, 0
			w.Timeout -= closed
		}
		last = max(last, w.Timeout)
		if until != 0 {
			w.Timeout = until // but not of those behind it
		}
		e.stay = append(e.stay, w)
	}
	return last
}

// join adds the waiters that are new, or takes the lock for one of them.
func (e *queueRun) join(now, last time.Duration, entries []lock.QueueEntry) {
	for _, entry := range entries {
		o := Owner{Client: e.client, Term: entry.Term}
		if _, waits := e.listed[o]; entry.Try || !waits || slices.ContainsFunc(e.stay, func(w Waiter) bool { return w.Owner == o }) {
			continue
		}
		if e.open() {
			e.take(o)
			continue
		}
		if behind := (Owner{Client: e.client, Term: e.Behind}); !e.mayTake && e.Behind != 0 && e.holder != behind {
			continue // it is late: the lock has been released since
		}
		if last == now {
			last = now + max(e.left, 0)
		}
		last += e.setup.WaiterTimeout
		e.stay = append(e.stay, Waiter{o, last})
	}
	for _, entry := range entries {
		if e.open() {
			e.take(Owner{Client: e.client, Term: entry.Term})
		}
	}
}

func (r *run) forceFair(part int) lock.Result {
	l := &r.parts[part]
	held, evicted := r.evictNamed(part), l.evict(r.Clock())
	if held || evicted {
		var first Waiter
		if len(l.Queue) > 0 {
			first = l.Queue[0]
		}
		r.publish(Publication{Part: part, To: first.Owner})
	}
	return lock.Result{Outcome: lock.Done, WasHeld: held}
}

// evict removes dead waiters from the head of the queue.
func (l *Lock) evict(now time.Duration) (evicted bool) {
	for len(l.Queue) > 0 && l.Queue[0].Timeout <= now {
		l.Queue, evicted = l.Queue[1:], true
	}
	return evicted
}
