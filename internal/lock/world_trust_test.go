package lock_test

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redismodel"
)

// The rules about all processes, and what Redis says.

// check compares what the processes trust with what Redis says: who trusts a lease must
// have it, and who trusts an exclusive hold is alone.
func (w *world) check() {
	var trusted [redismodel.MostParts]int
	var exclusive [redismodel.MostParts]*hold
	for i := range w.processes {
		p := &w.processes[i]
		until := p.lock.LeaseUntil()
		if p.dead || p.stalled || len(p.holds) == 0 || w.now >= until {
			continue
		}
		owner := w.owner(i, p.lock.Term())
		held, end, ok := w.heldInRedis(owner)
		f := w.factOf(owner)
		if !ok {
			if !f.keyLost || until > f.keyLostAt+w.longest() {
				w.violated("p%d trusts %v until %v, but Redis has %+v", i, owner, until, w.redis.Parts())
			}
			continue
		}
		if f.keyLost && f.late {
			continue // a late command has taken it again, for as long as it would
		}
		if f.keyLost {
			w.factFor(owner).keyLost = false
		}
		if end < until {
			w.violated("p%d trusts %v until %v, but the key expires at %v", i, owner, until, end)
		}
		for k := range p.holds {
			h := &p.holds[k]
			if h.bound != 0 && w.now >= h.bound {
				continue
			}
			writes := p.writes(h)
			if writes && held.exclusive == 0 {
				w.violated("p%d: %v is exclusive, but in Redis it is held %v", i, h, held)
			}
			for part := range w.redis.Parts() {
				if p.part >= 0 && p.part != part {
					continue
				}
				if trusted[part]++; writes {
					exclusive[part] = h
				}
			}
		}
		w.checkCount(i, owner, held)
	}
	for part, h := range exclusive {
		if h != nil && trusted[part] > 1 {
			w.violated("%v is exclusive, but %d trust their holds", h, trusted[part])
		}
	}
	w.checkQueue()
	w.checkEntries()
	w.checkAwake()
}

// writes reports whether a holder believes to be alone. While it gives that up it does not.
func (p *process) writes(h *hold) bool {
	n := h.counts.exclusive
	for _, r := range p.requests {
		if r.what == release && r.hold == h.id && r.mode == lock.Exclusive {
			n--
		}
	}
	return n > 0 && !h.dead
}

// has tells how an owner holds the lock, if it does, and until when the key lives.
func (w *world) heldInRedis(o redismodel.Owner) (held counts, until lock.Instant, ok bool) {
	only := w.partOf(o.Client)
	for i := range w.redis.Parts() {
		if only >= 0 && only != i {
			continue
		}
		l := w.redis.Part(i)
		each := l.Of(o)
		if each == (redismodel.Counts{}) {
			return counts{}, 0, false
		}
		if end := l.Lasts(o); until == 0 || end < until {
			until = end
		}
		held = counts{each.Exclusive, each.Shared}
	}
	return held, until, true
}

// partOf is the part that a client wants; -1 is the lock with all its parts.
func (w *world) partOf(c redismodel.Client) int {
	i := slices.IndexFunc(w.processes, func(p process) bool { return p.client == c })
	return w.processes[i].part
}

// checkCount compares the counts in Redis with the holders' while nothing is under way. Those
// who share a lease count as one, with their re-entries on top.
func (w *world) checkCount(i int, o redismodel.Owner, held counts) {
	for k := range w.net {
		if m := &w.net[k]; m.p == i && m.kind <= reply && m.command.Term == o.Term {
			return
		}
	}
	var want counts
	sharers := 0
	for _, h := range w.processes[i].holds {
		want = want.plus(lock.Exclusive, h.counts.exclusive).plus(lock.Shared, h.counts.shared)
		if h.counts.shared > 0 {
			sharers++
		}
	}
	want.shared -= max(sharers-1, 0)
	if want.exclusive == 0 && w.processes[i].lock.StaysWriter() {
		want.exclusive = held.exclusive
	}
	if f := w.factOf(o); !f.countUncertain && !f.countRefused && want != held {
		w.violated("%v holds %v times, but in Redis it is %v", o, want, held)
	}
}

// checkQueue compares the queue in Redis with those who wait, while nothing is under way and
// nothing has gone wrong.
func (w *world) checkQueue() {
	if !w.kind.Queued || w.any(lost, late, loading, rejected, full, frozen, restart, slow, paused, deleted, forced, kill, giveUp, crash) {
		return
	}
	for i := range w.processes {
		if w.underWay(i, command, reply, delayedRequest) > 0 {
			continue
		}
		p, queue := &w.processes[i], w.redis.Part(0).Queue
		stands := 0
		for _, r := range p.requests {
			if o := w.owner(i, r.term); r.what == acquire && !p.reenters(r) {
				if stands++; !slices.ContainsFunc(queue, func(waiter redismodel.Waiter) bool { return waiter.Owner == o }) {
					w.violated("p%d: %v waits, and is not in the queue", i, o)
				}
			}
		}
		for _, waiter := range queue {
			if waiter.Client == p.client && !w.factOf(waiter.Owner).mayReappear {
				stands--
			}
		}
		if stands < 0 {
			w.violated("p%d: somebody stands in the queue and does not wait: %v", i, queue)
		}
	}
}

// watchQueue compares the queue of a fair lock with what it was: who has got the lock must
// have been the first; and who has left, of whom leaves is true, must not wait any more.
func (w *world) watchQueue(before *redismodel.Server, leaves func(redismodel.Owner) bool) {
	if !w.kind.Queued {
		return
	}
	was, is := before.Part(0), w.redis.Part(0)
	stands := func(l *redismodel.Lock, o redismodel.Owner) int {
		return slices.IndexFunc(l.Queue, func(w redismodel.Waiter) bool { return w.Owner == o })
	}
	arrive := func(o redismodel.Owner) {
		if f := w.factFor(o); f.arrived == 0 {
			f.arrived = len(w.facts)
		}
	}
	for _, h := range is.Holders {
		if was.Of(h.Owner) == (redismodel.Counts{}) {
			arrive(h.Owner)
			w.checkTurn(h.Owner, was.Queue, stands(was, h.Owner))
			w.factFor(h.Owner).exempt = true // it has had its turn, even if it never hears of it
		}
	}
	for _, waiter := range is.Queue {
		arrive(waiter.Owner)
	}
	for _, waiter := range was.Queue {
		switch o := waiter.Owner; {
		case stands(is, o) >= 0, is.Of(o) != (redismodel.Counts{}):
		case !leaves(o):
			w.factFor(o).exempt = true
		default:
			// An owner's request may become a re-entry meanwhile.
			if r := w.waiterOf(o); r.what == acquire && r.req.Owner == 0 {
				w.violated("%v, which is %v, loses its place", o, r)
			}
		}
	}
}

// checkTurn checks, when somebody takes the lock, that nobody has come before: neither of those
// who stood before it in the queue and were alive, nor any who should have stood there.
func (w *world) checkTurn(taker redismodel.Owner, queue []redismodel.Waiter, place int) {
	ahead := queue
	if place >= 0 {
		ahead = queue[:place]
	}
	var dead []redismodel.Client
	for _, waiter := range ahead {
		switch {
		case waiter.Timeout <= w.redis.Clock():
			dead = append(dead, waiter.Client)
		case slices.Contains(dead, waiter.Client) || waiter.Client >= foreignClients:
		default:
			if p := &w.processes[waiter.Client]; !p.dead && p.lock.HasWaiter(waiter.Term) {
				w.violated("%v gets the lock before %v, which stands before it", taker, waiter.Owner)
			}
		}
	}
	arrived := w.factOf(taker).arrived
	for _, other := range w.facts {
		stood := slices.ContainsFunc(queue, func(w redismodel.Waiter) bool { return w.Owner == other.Owner })
		if other.arrived == 0 || other.arrived >= arrived || other.exempt || stood {
			continue
		}
		if r := w.waiterOf(other.Owner); r.what == acquire && r.req.Owner == 0 {
			w.violated("%v gets the lock before %v, which is %v", taker, other.Owner, r)
		}
	}
}

// waiterOf is the request that stands in the queue as that owner, if it is still open.
func (w *world) waiterOf(o redismodel.Owner) request {
	for i := range w.processes {
		if p := &w.processes[i]; p.client == o.Client && !p.dead {
			for _, r := range p.requests {
				if r.what == acquire && !r.req.Try && r.term == o.Term {
					return r
				}
			}
		}
	}
	return request{}
}

// heal ends all faults, lets every holder release, and checks that all comes to rest.
func (w *world) endFaults() {
	w.logf("everything is well from now on")
	w.healed = true
	w.frozenUntil, w.fullUntil = 0, 0
	w.reconnect(0)
	enough := w.now + 2*w.longest() + time.Minute
	if w.kind.Queued {
		enough += 10 * w.setup.WaiterTimeout // until all the dead in the queue count as such
	}
	for more := true; more; more = w.step(enough) {
		for i := range w.processes {
			for p, k := &w.processes[i], 0; k < len(p.holds) && w.now >= p.pausedUntil; k++ {
				if h := p.holds[k]; !p.releasing(h.id) && !h.dead {
					w.releaseHold(i, h, false, lock.Exclusive)
					k = -1
				}
			}
		}
	}
	for i := range w.processes {
		if p := &w.processes[i]; len(p.requests) > 0 {
			w.violated("p%d: %v was never answered", i, p.requests[0])
		}
	}
	// Late commands of terms that are over may still leave a key, for one lease.
	for enough = w.now + 2*w.longest(); w.step(enough); {
	}
	w.redis.At(max(w.now, enough))
	for i := range w.processes {
		wake, ok := w.processes[i].lock.NextWake()
		if p := &w.processes[i]; !p.dead && (!p.lock.Idle() || ok) {
			w.violated("p%d does not come to rest, and wants a Tick at %v (%v): %s", i, wake, ok, dump(p.lock))
		}
	}
	for i := range w.redis.Parts() {
		for _, h := range w.redis.Part(i).Holders {
			w.violated("%v is left behind in Redis", h.Owner)
		}
	}
	for _, waiter := range w.redis.Part(0).Queue {
		// It counts as dead, and the next that comes by removes it.
		if o := waiter.Owner; !w.any(rejected) && (o.Client >= foreignClients || !w.processes[o.Client].dead && !w.factOf(o).mayReappear) {
			w.violated("%v is left behind in the queue", o)
		}
	}
	if n := w.redis.Subscriptions(); n > 0 {
		w.violated("%d subscribers are left behind", n)
	}
}
