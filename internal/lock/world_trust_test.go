package lock_test

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// The rules for all processes together with Redis.

// check compares the trusted holds with Redis: a process that trusts a lease has it there, and a trusted exclusive
// hold is the only one.
func (w *world) check() {
	var trusted [redismodel.MaxParts]int
	var exclusive [redismodel.MaxParts]*hold
	for i := range w.processes {
		p := &w.processes[i]
		until := p.lock.Summary().LeaseUntil
		if p.dead || p.stalled || len(p.holds) == 0 || w.now >= until {
			continue
		}
		owner := w.owner(i, p.lock.Summary().Term)
		held, end, ok := w.heldInRedis(owner)
		f := w.factOf(owner)
		if !ok {
			if !f.keyLost || until > f.keyLostAt+w.longest() {
				w.violated("p%d trusts %v until %v, but Redis has %+v", i, owner, until, w.redis.Parts())
			}
			continue
		}
		if f.keyLost && f.late {
			continue // a late command has taken the key again
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
			w.violated("%v is exclusive, but %d holds are trusted", h, trusted[part])
		}
	}
	w.checkQueue()
	w.checkEntries()
	w.checkAwake()
}

// checkNotHidden checks that a command has not taken a lost key again for the holders that had it. Others may have had the
// lock meanwhile, and nothing would tell these holders: their next renewal finds the key. Only a command that comes late
// does so.
func (w *world) checkNotHidden(i int, c lock.Command, before *redismodel.Server) {
	p, o := &w.processes[i], w.owner(i, c.Term)
	if f := w.factOf(o); p.dead || len(p.holds) == 0 || !f.keyLost || f.late || p.lock.Summary().Term != c.Term {
		return
	}
	for part := range w.redis.Parts() {
		if before.Part(part).Of(o) == (redismodel.Counts{}) && w.redis.Part(part).Of(o) != (redismodel.Counts{}) {
			w.violated("p%d: %v has lost its key, and takes it again by %v, so that its holders learn nothing: %v",
				i, o, message{p: i, command: c}, p.holds)
		}
	}
}

// writes reports whether a hold is exclusive, and no release of that is waiting.
func (p *process) writes(h *hold) bool {
	n := h.counts.exclusive
	for _, r := range p.requests {
		if r.what == release && r.hold == h.id && r.mode == machine.Exclusive {
			n--
		}
	}
	return n > 0 && !h.dead
}

// heldInRedis returns the counts of an owner in Redis and when the key expires; ok is false if it does not hold all
// its parts.
func (w *world) heldInRedis(o redismodel.Owner) (held counts, until machine.Instant, ok bool) {
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

// partOf returns the part that a client wants; -1 is the lock with all its parts.
func (w *world) partOf(c redismodel.Client) int {
	i := slices.IndexFunc(w.processes, func(p process) bool { return p.client == c })
	return w.processes[i].part
}

// checkCount compares the counts in Redis with the holders' while no command is under way. Holds that share a lease
// count as one, and their re-entries are added.
func (w *world) checkCount(i int, o redismodel.Owner, held counts) {
	for k := range w.net {
		if m := &w.net[k]; m.p == i && m.kind <= reply && m.command.Term == o.Term {
			return
		}
	}
	var want counts
	sharers := 0
	for _, h := range w.processes[i].holds {
		want = want.plus(machine.Exclusive, h.counts.exclusive).plus(machine.Shared, h.counts.shared)
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

// checkQueue compares the queue in Redis with the waiting requests, while no command is under way and without faults.
func (w *world) checkQueue() {
	if !w.features.Fair || w.any(lost, late, loading, rejected, full, frozen, restart, slow, paused, deleted, forced, kill, actorFails, crash) {
		return
	}
	for i := range w.processes {
		if w.underWay(i, command, reply, delayedRequest) > 0 {
			continue
		}
		p, queue := &w.processes[i], w.redis.Part(0).Queue
		waiting := 0
		for _, r := range p.requests {
			if o := w.owner(i, r.term); r.what == acquire && !p.reenters(r) {
				if waiting++; !slices.ContainsFunc(queue, func(waiter redismodel.Waiter) bool { return waiter.Owner == o }) {
					w.violated("p%d: %v waits, and is not in the queue", i, o)
				}
			}
		}
		for _, waiter := range queue {
			if waiter.Client == p.client && !w.factOf(waiter.Owner).mayReappear {
				waiting--
			}
		}
		if waiting < 0 {
			w.violated("p%d: an entry of the queue has no waiter: %v", i, queue)
		}
	}
}

// watchQueue compares the queue of a fair lock with its state before a command: a new holder must have been the first,
// and an entry that left, and for which leaves is true, must have no waiter.
func (w *world) watchQueue(before *redismodel.Server, leaves func(redismodel.Owner) bool) {
	if !w.features.Fair {
		return
	}
	was, is := before.Part(0), w.redis.Part(0)
	index := func(l *redismodel.Lock, o redismodel.Owner) int {
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
			w.checkTurn(h.Owner, was.Queue, index(was, h.Owner))
			w.factFor(h.Owner).exempt = true // it was granted, even if its process does not learn that
		}
	}
	for _, waiter := range is.Queue {
		arrive(waiter.Owner)
	}
	for _, waiter := range was.Queue {
		switch o := waiter.Owner; {
		case index(is, o) >= 0, is.Of(o) != (redismodel.Counts{}):
		case !leaves(o):
			w.factFor(o).exempt = true
		default:
			// An owner's request may become a re-entry meanwhile.
			if r := w.waiterOf(o); r.what == acquire && r.req.Owner == 0 {
				w.violated("%v, which is %v, loses its entry", o, r)
			}
		}
	}
}

// checkTurn checks that a new holder has overtaken no other waiter: neither a living one before it in the queue, nor
// one that should have had an entry there.
func (w *world) checkTurn(taker redismodel.Owner, queue []redismodel.Waiter, index int) {
	if taker.Kept {
		return // it has had the lock already
	}
	ahead := queue
	if index >= 0 {
		ahead = queue[:index]
	}
	var dead []redismodel.Client
	for _, waiter := range ahead {
		switch {
		case waiter.Timeout <= w.redis.Clock():
			dead = append(dead, waiter.Client)
		case slices.Contains(dead, waiter.Client) || waiter.Client >= foreignClients:
		default:
			if p := &w.processes[waiter.Client]; !p.dead && p.lock.HasWaiter(waiter.Term) {
				w.violated("%v gets the lock before %v, which is before it in the queue", taker, waiter.Owner)
			}
		}
	}
	arrived := w.factOf(taker).arrived
	for _, other := range w.facts {
		queued := slices.ContainsFunc(queue, func(w redismodel.Waiter) bool { return w.Owner == other.Owner })
		if other.arrived == 0 || other.arrived >= arrived || other.exempt || queued {
			continue
		}
		if r := w.waiterOf(other.Owner); r.what == acquire && r.req.Owner == 0 {
			w.violated("%v gets the lock before %v, which is %v", taker, other.Owner, r)
		}
	}
}

// waiterOf returns the request with the entry of that owner, if it is not answered yet.
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

// endFaults ends all faults, lets every holder release, and checks that all processes become idle and Redis empty.
func (w *world) endFaults() {
	w.logf("there are no faults from now on")
	w.healed = true
	w.frozenUntil, w.fullUntil = 0, 0
	w.reconnect(0)
	enough := w.now + 2*w.longest() + time.Minute
	if w.features.Fair {
		enough += 10 * w.setup.WaiterTimeout // until all entries of dead processes have expired
	}
	for more := true; more; more = w.step(enough) {
		for i := range w.processes {
			for p, k := &w.processes[i], 0; k < len(p.holds) && w.now >= p.pausedUntil; k++ {
				if h := p.holds[k]; !p.releasing(h.id) && !h.dead {
					w.releaseHold(i, h, false, machine.Exclusive)
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
	// Late commands of terms that are over may still create a key for one lease.
	for enough = w.now + 2*w.longest(); w.step(enough); {
	}
	w.redis.At(max(w.now, enough))
	for i := range w.processes {
		wake, ok := w.processes[i].lock.NextWake()
		if p := &w.processes[i]; !p.dead && (!p.lock.Idle() || ok) {
			w.violated("p%d does not become idle, and needs a Tick at %v (%v): %s", i, wake, ok, dump(p.lock))
		}
	}
	for i := range w.redis.Parts() {
		for _, h := range w.redis.Part(i).Holders {
			w.violated("%v is left behind in Redis", h.Owner)
		}
	}
	for _, waiter := range w.redis.Part(0).Queue {
		// The next command removes an entry of a dead process.
		if o := waiter.Owner; !w.any(rejected) && (o.Client >= foreignClients || !w.processes[o.Client].dead && !w.factOf(o).mayReappear) {
			w.violated("%v is left behind in the queue", o)
		}
	}
	if n := w.redis.Subscriptions(); n > 0 {
		w.violated("%d subscribers are left behind", n)
	}
}
