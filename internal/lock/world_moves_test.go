package lock_test

import (
	"fmt"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// An exploration has at most that many processes, with three callers each.
const maxProcesses, callers = 3, 3

// move is a possible next event: an action of process (or part) p, in an exploration by its caller i; or the
// delivery of message i.
type move struct {
	action action
	p, i   int8
	fate   fate
}

type action byte

const (
	delivers action = iota
	acquire
	release
	releaseRead
	reenter
	cancel
	ownerDies
	extend
	ensure
	forceRelease
	suspect
	closes
	isKilled
	failsForGood
	isPaused
	ticks
	restarts
	deletes
	empties
	foreignArrives
	freezes
	fills
	passes
)

// actions has the name of each action, the fault that it counts as, and its weight in random worlds.
var actions = [...]struct {
	name   string
	counts fault
	weight int
}{
	delivers: {"", free, 2}, acquire: {"acquire", free, 10}, release: {"release", free, 6}, releaseRead: {"release of a read hold", free, 1},
	reenter: {"re-entry", reentry, 0}, cancel: {"cancel", cancels, 2}, ownerDies: {"death", death, 2}, extend: {"extend", extends, 3}, ensure: {"ensure", ensures, 2},
	forceRelease: {"force release", forced, 1}, suspect: {"suspicion", suspects, 1}, closes: {"close", closing, 1}, isKilled: {"killed", kill, 1},
	failsForGood: {"actor fails for good", actorFails, 1}, isPaused: {"paused", paused, 1}, ticks: {"tick", free, 0}, restarts: {"restarted", free, 0},
	deletes: {"part deleted", deleted, 1}, empties: {"Redis comes back empty", restart, 1}, foreignArrives: {"a foreign client comes", foreign, 2},
	freezes: {"Redis frozen", frozen, 1}, fills: {"Redis full", full, 1}, passes: {"time passes", free, 0},
}

// Describe returns a line of the trace for a move.
func (w *world) Describe(a move) string {
	text := fmt.Sprintf("%12v  ", w.now)
	if a.action == delivers {
		return text + w.net[a.i].String() + fateNames[a.fate]
	}
	return text + fmt.Sprintf("p%d, client %d: %s", a.p, a.i, actions[a.action].name)
}

// do carries out a move. Details are drawn at random; an exploration uses the first choice of each.
func (w *world) do(a move) {
	t, i := w.choices, int(a.p)
	p := &w.processes[min(i, len(w.processes)-1)]
	h := w.someHold(p, a)
	anything := uint64(t.pick(int(min(p.ids+1, 200)))) // the number of a request, or 0
	r := request{ref: ref{caller: a.i, what: a.action}}
	w.counted[actions[a.action].counts]++
	switch a.action {
	case delivers:
		if m := &w.net[a.i]; (m.kind == command || m.kind == reply) && w.overtakes(int(a.i)) {
			w.counted[outOfOrder]++
		}
		w.deliver(w.take(int(a.i)), a.fate)
	case acquire, reenter:
		r.req, r.what = w.wanted(i, a, h), acquire
	case release, releaseRead:
		// Seldom, of a hold that may not exist.
		r.what, r.hold, r.mode = release, 1+anything, max(w.anyMode(), machine.Mode(a.action-release))
		if h.id != 0 && t.pick(8) < 7 {
			w.releaseHold(i, h, t.pick(3) == 1, r.mode)
			return
		}
	case cancel:
		if n := len(p.requests); n > 0 {
			k := t.pick(n)
			if t == nil {
				k = slices.IndexFunc(p.requests, func(r request) bool { return r.caller == a.i })
			}
			if victim := p.requests[k]; victim.req.Owner != 0 && t.pick(2) == 1 {
				r.owner = victim.req.Owner
			} else {
				r.hold = victim.id
			}
		}
	case ownerDies:
		if r.owner = w.callers[i%maxProcesses][a.i].Owner; t != nil {
			r.owner = oneOf(t, 1, 2, 3, max(h.req.Owner, 1))
		}
	case extend:
		if r.hold = h.id; t.pick(3) == 1 {
			r.owner = h.req.Owner
		}
		if r.d = oneOf(t, 0, 50*ms, 500*ms, 2*sec, 10*sec, 20*sec); t == nil {
			r.d = w.leases[int(w.counted[extends]-1)%len(w.leases)]
		}
	case ensure:
		if r.hold = h.id; h.id == 0 {
			r.hold = anything
		}
		whole := w.config.Watchdog
		r.d = oneOf(t, whole/2, 0, whole-machine.Margin(whole), 100*ms, whole)
	case forceRelease:
		if r.caller, r.mode = -1, w.anyMode(); t != nil && t.pick(2) == 1 {
			r.owners = w.seenHolders(i)
		}
	case isKilled:
		w.endProcess(i)
	case failsForGood:
		w.failForGood(i)
	case isPaused:
		if p.pausedUntil = max(p.pausedUntil, w.now+oneOf(t, 10*ms, 300*ms, 2000*ms, 20000*ms)); t == nil {
			w.pass()
			p.pausedUntil = w.now
		}
	case ticks:
		w.tick(i)
	case restarts:
		w.carryOut(i, -1)
		w.setTimer(i)
	case deletes:
		before := w.redis
		w.redis.Delete(i % len(w.redis.Parts()))
		if w.noteLostKeys(&before); t.pick(2) == 1 {
			w.publish([]redismodel.Publication{{}})
		}
	case empties:
		w.restart(oneOf(t, 0, 20*ms, ms, 500*ms))
	case foreignArrives:
		c := foreignClient{part: t.pick(len(w.redis.Parts())), mode: w.anyMode(), hold: oneOf(t, 100*ms, 20*ms, 3000*ms, 0), lease: oneOf(t, 300*ms, 1000*ms, 5000*ms)}
		if t.pick(2) == 1 {
			c.waiting, c.lease, c.hold = true, 10*sec, max(c.hold, ms)
		}
		w.addForeign(c)
	case freezes:
		w.frozenUntil = max(w.frozenUntil, w.now+oneOf(t, 100*ms, 800*ms, 4000*ms, 15000*ms))
	case fills:
		w.fullUntil = max(w.fullUntil, w.now+oneOf(t, 20000*ms, 300*ms, 3000*ms))
		if t.pick(2) == 1 { // for longer than a request may wait that must not wait for the end of this
			if h.id != 0 {
				w.releaseHold(i, h, false, w.anyMode())
			}
			w.runUntil(w.now + 8*sec)
		}
	case passes:
		if w.pass(); w.times > 0 {
			w.counted[times]++
		}
	}
	if a.action >= acquire && a.action <= closes {
		w.ask(i, r)
	}
}

// pass lets time pass until the next timer or end of a lease.
func (w *world) pass() {
	w.now, _ = w.nextTime()
	w.redis.At(w.now)
}

// someHold returns a hold of a caller or, at random, any hold; its id is 0 if there is none.
func (w *world) someHold(p *process, a move) (h hold) {
	k := slices.IndexFunc(p.holds, func(h hold) bool { return h.caller == a.i })
	if n := len(p.holds); n > 0 && w.choices != nil {
		k = w.choices.pick(n)
	}
	if k >= 0 {
		h = p.holds[k]
	}
	return h
}

// wanted returns the request of a caller or, in a random world, any request.
func (w *world) wanted(i int, a move, h hold) (req machine.Request) {
	t := w.choices
	if t == nil {
		if req = w.callers[i][a.i]; a.action == reenter {
			req.Mode = w.again
		}
		if req.Deadline > 0 {
			req.Deadline += w.now
		}
		w.processes[i].asked[a.i] = true
		return req
	}
	switch t.pick(4) {
	case 1:
		req.Owner = machine.Owner(1 + t.pick(3))
	case 2, 3:
		if req.Owner = 1; h.id != 0 {
			req.Owner = h.req.Owner
		}
	}
	req.NoReentry = req.Owner != 0 && t.pick(8) == 1
	req.Fenced = w.features.Parts || w.features.Tokens > 0 && t.pick(2) == 1
	if w.features.Shares && t.pick(5) > 1 {
		req.Mode = machine.Shared
	}
	if req.Lease = oneOf(t, 0, 0, 0, 0, 50*ms, 500*ms, 2*sec, 10*sec, 20*sec); req.Lease == 0 {
		req.MaxHold = oneOf(t, 0, 0, 0, 10*ms, 300*ms, 4*sec)
	}
	if h.id != 0 && t.pick(2) == 1 { // a re-entry with them would nearly always be refused
		req.Lease, req.MaxHold = 0, 0
	}
	switch t.pick(6) {
	case 1:
		req.Try = true
	case 2:
		req.Deadline = w.now + oneOf(t, 300*ms, 0, ms, 20*ms, 2*sec)
	}
	if !w.features.Shares && (req.Lease == 0 || req.Lease > 2*sec) {
		req.AtLeast = oneOf(t, 0, 0, 0, 0, 0, 20*ms, 300*ms, 2*sec)
	}
	return req
}
