package core_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// The fair lock in the model of Redis.

// line is the queue of a fair lock, with when each waiter counts as dead.
type line struct {
	owners []string
	scores map[string]time.Duration
	// arrived numbers the waiters in their order; forgotten are those who have lost
	// their place for having been silent, or together with Redis's memory.
	arrived   map[string]int
	forgotten map[string]bool
}

func (l *line) arrive(owner string) {
	if l.arrived == nil {
		l.arrived, l.forgotten = map[string]int{}, map[string]bool{}
	}
	if l.arrived[owner] == 0 {
		l.arrived[owner] = len(l.arrived) + 1
	}
}

func (l *line) forget() {
	for _, owner := range l.owners {
		l.forgotten[owner] = true
	}
	l.owners = nil
	clear(l.scores)
}

func (r *redis) runFair(uuid string, c core.Command) core.Result {
	switch c.Kind {
	case core.Release:
		result := r.queue(uuid, field(uuid, c.Term), false, 0, nil)
		if result.Outcome = core.Absent; result.Freed {
			result.Outcome = core.Done
		}
		return result
	case core.ForceRelease:
		return r.forceFair()
	}
	released := ""
	if c.Term != 0 {
		released = field(uuid, c.Term)
	}
	return r.queue(uuid, released, c.Take, c.Top, c.Entries)
}

// walk is one run of the script about the queue.
type walk struct {
	r        *redis
	h        *hash
	mayTake  bool
	holder   string
	taken    string
	left     time.Duration
	leases   map[string]time.Duration
	stay     []string
	timeouts map[string]time.Duration
}

func (k *walk) take(owner string) {
	k.r.line.arrive(owner)
	k.h.set(owner, 1, k.leases[owner])
	k.holder, k.taken, k.left = owner, owner, k.leases[owner]
	delete(k.leases, owner)
	k.r.w.checkTurn(owner)
	k.r.line.forgotten[owner] = true // it has had its turn, even if it never hears of it
}

func (k *walk) open() bool { return len(k.stay) == 0 && k.holder == "" && k.mayTake }

func (r *redis) queue(uuid, released string, mayTake bool, top uint64, entries []core.Entry) core.Result {
	h, now, patience := r.parts[0], r.clock(), r.w.silence
	var freed bool
	if released != "" {
		_, freed = h.held[released]
		delete(h.held, released)
	}
	k := &walk{
		r: r, h: h, mayTake: mayTake, holder: h.some(), left: h.pttl(),
		leases: map[string]time.Duration{}, timeouts: map[string]time.Duration{},
	}
	for _, e := range entries {
		k.leases[field(uuid, e.Term)] = e.Lease
	}
	if lease, listed := k.leases[k.holder]; listed {
		k.taken = k.holder
		if k.left < lease {
			k.left = lease
			h.pexpire(lease)
		}
		delete(k.leases, k.holder)
	}
	before := r.line.owners
	last := k.along(uuid, now, patience, top)
	for _, e := range entries {
		owner := field(uuid, e.Term)
		if _, waits := k.leases[owner]; e.Try || !waits || k.timeouts[owner] != 0 {
			continue
		}
		if k.open() {
			k.take(owner)
			continue
		}
		if last == now {
			last = now + max(k.left, 0)
		}
		last += patience
		r.line.arrive(owner)
		k.stay, k.timeouts[owner] = append(k.stay, owner), last
	}
	for _, e := range entries {
		if k.open() {
			k.take(field(uuid, e.Term))
		}
	}
	r.line.owners, r.line.scores = k.stay, k.timeouts

	head, waits := "", false
	if len(k.stay) > 0 {
		head = k.stay[0]
		_, waits = k.leases[head]
	}
	if head != "" && k.holder == "" && !waits && (freed || len(before) == 0 || head != before[0]) {
		r.publish(head)
	}
	result := core.Result{Outcome: core.Refused, Freed: freed, Holder: k.holder, OwnTerm: ownTerm(uuid, k.holder)}
	switch {
	case k.taken != "":
		return core.Result{Outcome: core.Done, OwnTerm: ownTerm(uuid, k.taken), Freed: freed}
	case k.holder != "":
		result.TTL = k.left
	case head != "" && !waits:
		result.TTL = max(k.timeouts[head]-now, ms)
	}
	return result
}

// along goes along the queue, and gives when its last waiter counts as dead.
func (k *walk) along(uuid string, now, patience time.Duration, top uint64) time.Duration {
	line := &k.r.line
	dead := map[string]bool{}
	last, gap, shift := now, time.Duration(0), time.Duration(0)
	for _, owner := range line.owners {
		_, listed := k.leases[owner]
		score, scored := line.scores[owner]
		first, goes := len(k.stay) == 0, false
		score -= shift
		switch {
		case listed:
			if goes = first && k.holder == "" && k.mayTake; goes {
				k.take(owner)
			}
			score = last + patience
		case k.leaves(uuid, owner, top):
			goes = true
			k.r.w.checkLeaves(owner)
		case first && (!scored || score <= now):
			goes, dead[client(owner)] = true, true
			line.forgotten[owner] = true
		case dead[client(owner)]:
			if goes = len(k.r.subscribers[owner]) == 0; goes {
				line.forgotten[owner] = true
			}
		}
		if goes {
			gap += patience
			continue
		}
		if gap > 0 && !listed {
			closed := min(gap, max(score-last-patience, 0))
			shift, score, gap = shift+closed, score-closed, 0
		}
		k.stay, k.timeouts[owner] = append(k.stay, owner), score
		last = max(last, score)
	}
	return last
}

// leaves tells whether an owner is one of ours that waits no more.
func (k *walk) leaves(uuid, owner string, top uint64) bool {
	number, ours := strings.CutPrefix(owner, uuid+":")
	term, err := strconv.ParseUint(number, 10, 64)
	_, listed := k.leases[owner]
	return ours && err == nil && term <= top && !listed
}

func (r *redis) forceFair() core.Result {
	h := r.parts[0]
	held, evicted := !h.free(), r.evict()
	if held {
		r.rob(h)
	}
	if len(r.line.owners) > 0 && (held || evicted) {
		r.publish(r.line.owners[0])
	}
	return core.Result{Outcome: core.Done, WasHeld: held}
}

// evict removes the dead from the head of the queue.
func (r *redis) evict() (evicted bool) {
	for len(r.line.owners) > 0 {
		first := r.line.owners[0]
		if r.line.scores[first] > r.clock() {
			break
		}
		r.line.forgotten[first] = true
		r.leaveLine(first)
		evicted = true
	}
	return evicted
}

func (r *redis) leaveLine(owner string) {
	r.line.owners = slices.DeleteFunc(slices.Clone(r.line.owners), func(each string) bool { return each == owner })
	r.line.scores = maps.Clone(r.line.scores)
	delete(r.line.scores, owner)
}

// waiterOf is the request that stands in the queue as that owner, if it is still open.
func (w *world) waiterOf(owner string) (*process, *request) {
	for _, p := range w.processes {
		if p.uuid != client(owner) || p.dead {
			continue
		}
		for _, r := range p.requests {
			if r.ticket != nil && !r.ticket.Try && field(p.uuid, r.term) == owner {
				return p, r
			}
		}
	}
	return nil, nil
}

// checkTurn checks, when somebody takes the lock, that nobody has come before.
func (w *world) checkTurn(owner string) {
	line := &w.redis.line
	for other, number := range line.arrived {
		if number >= line.arrived[owner] || line.forgotten[other] || slices.Contains(line.owners, other) {
			continue // those who are in the queue are the script's affair
		}
		if p, r := w.waiterOf(other); r != nil && r.ticket.Owner == 0 {
			w.violated("%s gets the lock before %s, which is %s's %v", owner, other, p.uuid, r)
		}
	}
}

// checkLeaves checks that nobody is made to leave the queue who still waits. An owner's
// request may become a re-entry meanwhile.
func (w *world) checkLeaves(owner string) {
	if p, r := w.waiterOf(owner); r != nil && r.ticket.Owner == 0 {
		w.violated("%s, which is %s's %v, loses its place", owner, p.uuid, r)
	}
}
