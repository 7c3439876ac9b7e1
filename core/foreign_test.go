package core_test

import (
	"fmt"
	"maps"
	"time"
)

// Clients of another kind, which do as Redisson does.

func (w *world) stranger(name string) string {
	w.foreign++
	return fmt.Sprintf("%s:%d", name, w.foreign)
}

// holdForeign lets a client of another kind take the lock if it is free: of a lock with
// parts, one of them; of a read/write lock, as a reader or as a writer.
func (w *world) holdForeign(owner string, hold, lease time.Duration, forget bool) bool {
	r := w.redis
	r.expire()
	h := r.parts[w.tape.pick(len(r.parts))]
	reads := w.kind.Shares && w.tape.pick(2) == 1
	switch {
	case reads && !h.free() && !h.written():
	case !h.free(), w.kind.Queued && !w.firstInLine(owner):
		return false
	}
	switch {
	case reads:
		h.hold(owner, counts{shared: 1}, lease)
	case w.kind.Shares:
		h.hold(owner, counts{exclusive: 1}, lease)
	default:
		h.set(owner, 1, lease)
		r.token++
	}
	w.logf("%s holds the lock", owner)
	if !forget {
		w.after(hold, func() { w.releaseForeign(h, owner) })
	}
	return true
}

func (w *world) releaseForeign(h *hash, owner string) {
	r := w.redis
	r.expire()
	if _, holds := h.held[owner]; !holds {
		return
	}
	w.logf("%s releases the lock", owner)
	if !h.leave(owner) {
		return
	}
	if !w.kind.Queued {
		r.publish("")
		return
	}
	r.evict()
	if len(r.line.owners) > 0 {
		r.publish(r.line.owners[0])
	}
}

// firstInLine tells whether nobody alive stands before a client in the queue of a fair
// lock, which it leaves then.
func (w *world) firstInLine(owner string) bool {
	r := w.redis
	r.evict()
	if len(r.line.owners) == 0 {
		return true
	}
	if r.line.owners[0] != owner {
		return false
	}
	r.leaveLine(owner)
	for other := range r.line.scores {
		r.line.scores[other] -= w.silence // they have moved up
	}
	return true
}

// waitForeign lets a client of another kind wait for the lock.
func (w *world) waitForeign(hold time.Duration) {
	r, owner := w.redis, w.stranger("waiter")
	channel := ""
	if w.kind.Queued {
		channel = owner
	}
	done := false
	try := func() {
		if done {
			return
		}
		if w.holdForeign(owner, hold, 10*sec, false) {
			done = true
			r.unsubscribe(channel, owner)
			return
		}
		w.queueForeign(owner)
	}
	w.logf("%s waits for the lock", owner)
	r.subscribe(channel, owner, func() { w.after(w.latency(), try) })
	var poll func()
	poll = func() {
		if try(); !done {
			r.subscribe(channel, owner, func() { w.after(w.latency(), try) }) // Redis may have crashed
			w.after(sec, poll)
		}
	}
	poll()
}

// queueForeign puts a client into the queue of a fair lock unless it stands there.
func (w *world) queueForeign(owner string) {
	r := w.redis
	if _, stands := r.line.scores[owner]; !w.kind.Queued || stands {
		return
	}
	r.evict()
	left := max(r.parts[0].pttl(), 0)
	if n := len(r.line.owners); n > 0 {
		left = r.line.scores[r.line.owners[n-1]] - r.clock()
	}
	r.line.scores = maps.Clone(r.line.scores)
	r.line.owners = append(r.line.owners[:len(r.line.owners):len(r.line.owners)], owner)
	r.line.scores[owner] = r.clock() + left + w.silence
	r.line.arrive(owner)
	w.logf("%s stands in the queue", owner)
}
