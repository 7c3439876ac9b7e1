package core_test

import (
	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// The rules about all processes at once.

// check compares what the processes trust with what Redis says: who trusts a lease must
// have it, and who trusts an exclusive hold is alone.
func (w *world) check() {
	w.redis.expire()
	var trusted []*request
	var exclusive *request
	for _, p := range w.processes {
		until := p.lock.LeaseUntil()
		if p.dead || len(p.holds) == 0 || w.now >= until {
			continue
		}
		owner := p.owner(p.term())
		held, end, ok := w.redis.has(owner)
		robbed, known := w.redis.broken[owner]
		if !ok {
			if !known || until > robbed+w.longer {
				w.violated("%s trusts %s until %v, but the holders are %v", p.uuid, owner, until, w.redis.owners())
			}
			continue
		}
		if known && p.late[owner.Term] {
			continue // a late command has taken it again, for as long as it would
		}
		delete(w.redis.broken, owner)
		if end < until {
			w.violated("%s trusts %s until %v, but the key expires at %v", p.uuid, owner, until, end)
		}
		for _, h := range p.holds {
			if h.bound != 0 && w.now >= h.bound {
				continue
			}
			if trusted = append(trusted, h); p.writes(h) {
				exclusive = h
				if held.exclusive == 0 {
					w.violated("%s: %v is exclusive, but in Redis it is held %v", p.uuid, h, held)
				}
			}
		}
		w.checkCount(p, held)
	}
	if exclusive != nil && len(trusted) > 1 {
		w.violated("%v is exclusive, but these trust their holds: %v", exclusive, trusted)
	}
	w.checkQueue()
}

// writes reports whether a holder believes to be alone. While it gives that up it does not.
func (p *process) writes(h *request) bool {
	n := h.counts.exclusive
	for _, r := range p.requests {
		if r.what == "release" && r.hold == h.id && r.mode == core.Exclusive {
			n--
		}
	}
	return n > 0 && !h.dead
}

// checkCount compares the counts in Redis with the holders' while nothing is under way.
// Those who share a lease count as one, with their re-entries on top.
func (w *world) checkCount(p *process, held counts) {
	term := p.term()
	for _, other := range p.underWay {
		if other == term {
			return
		}
	}
	var want counts
	sharers := 0
	for _, h := range p.holds {
		want.exclusive += h.counts.exclusive
		want.shared += h.counts.shared
		if h.counts.shared > 0 {
			sharers++
		}
	}
	want.shared -= max(sharers-1, 0)
	if want.exclusive == 0 && p.lock.StaysWriter() {
		want.exclusive = held.exclusive
	}
	if !p.stained[term] && p.owing != term && want != held {
		w.violated("%s holds %v times, but in Redis it is %v", p.uuid, want, held)
	}
}

// checkQueue compares the queue in Redis with those who wait, while nothing is under way
// and nothing has gone wrong.
func (w *world) checkQueue() {
	f := w.faults
	if !w.kind.Queued || f.lost || f.late || f.errors || f.rejected || f.full || f.frozen || f.crash || f.slow || f.paused || f.robbed || f.killed || f.givenUp {
		return
	}
	for _, p := range w.processes {
		if len(p.underWay) > 0 || len(p.mail) > 0 {
			continue
		}
		waits := map[model.Owner]bool{}
		for _, r := range p.requests {
			if r.ticket != nil && !p.reenters(r) {
				waits[p.owner(r.term)] = true
			}
		}
		for _, waiter := range w.redis.Part(0).Queue() {
			owner := waiter.Owner
			if owner.Client == p.client && !waits[owner] && !p.ghosts[owner] {
				w.violated("%s: %s is in the queue, and does not wait", p.uuid, owner)
			}
			delete(waits, owner)
		}
		for owner := range waits {
			w.violated("%s: %s waits, and is not in the queue", p.uuid, owner)
		}
	}
}
