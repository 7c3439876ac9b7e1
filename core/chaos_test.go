package core_test

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// act lets one client, or something outside, do something.
func (w *world) act() {
	t := w.tape
	p := w.processes[t.pick(len(w.processes))]
	if p.dead {
		p = w.join()
	}
	switch t.pick(33) {
	default:
		p.acquire()
	case 0, 1: // nothing
	case 10, 11, 12, 13:
		p.release(false)
	case 14, 15:
		p.release(true)
	case 16:
		p.releaseAny()
	case 17, 18:
		p.cancel()
	case 19, 20:
		p.ownerGone()
	case 21, 22:
		p.ensure()
	case 23:
		p.forceRelease()
	case 24:
		if t.pick(4) == 1 {
			p.close()
		}
	case 25:
		switch t.pick(4) {
		case 1:
			p.kill()
		case 2:
			p.giveUp()
		}
	case 26:
		if w.faults.paused {
			p.pausedUntil = max(p.pausedUntil, w.now+oneOf(t, 10*ms, 300*ms, 2000*ms, 20000*ms))
			w.logf("%s is paused until %v", p.uuid, p.pausedUntil)
		}
	case 27:
		if w.faults.foreign {
			w.holdForeign(w.stranger(), oneOf(t, 300*ms, 20*ms, 3000*ms), oneOf(t, 1000*ms, 100*ms, 5000*ms), t.pick(2) == 1)
		}
	case 28:
		if w.faults.foreign {
			w.waitForeign(oneOf(t, 20*ms, 300*ms, 3000*ms))
		}
	case 29:
		if w.faults.robbed {
			w.logf("somebody deletes the key")
			w.redis.rob(t.pick(len(w.redis.Parts())))
			if t.pick(2) == 1 {
				w.redis.tell([]model.Publication{{}})
			}
		}
	case 30:
		if w.faults.frozen {
			w.redis.frozenUntil = max(w.redis.frozenUntil, w.now+oneOf(t, 100*ms, 800*ms, 4000*ms, 15000*ms))
			w.logf("redis is frozen until %v", w.redis.frozenUntil)
		}
	case 32:
		if w.faults.full {
			w.redis.fullUntil = max(w.redis.fullUntil, w.now+oneOf(t, 20000*ms, 300*ms, 3000*ms))
			w.logf("redis is full until %v", w.redis.fullUntil)
			if t.pick(2) == 1 { // for long enough that whoever must not wait for it has not
				p.release(false)
				w.runUntil(w.now + 8*sec)
			}
		}
	case 31:
		if w.faults.crash {
			w.logf("redis crashes and comes back empty")
			w.redis.crash()
			w.after(oneOf(t, 20*ms, ms, 500*ms), w.reconnect)
		}
	}
}

// mayStay reports whether an entry in the queue may outlive its waiter: it counts as dead
// and the next that comes by removes it.
func (w *world) mayStay(owner model.Owner) bool {
	if w.faults.rejected {
		return true
	}
	if int(owner.Client) >= len(w.processes) {
		return false
	}
	p := w.processes[owner.Client]
	return p.dead || p.ghosts[owner]
}

// heal ends all faults, lets every holder release, and checks that all comes to rest.
func (w *world) heal() {
	w.logf("everything is well from now on")
	w.calm = true
	w.redis.frozenUntil, w.redis.fullUntil = 0, 0
	w.reconnect()
	var sweep func()
	sweep = func() {
		waiting := false
		for _, p := range w.processes {
			if w.now >= p.pausedUntil {
				for _, h := range slices.Clone(p.holds) {
					if !p.releasing(h) {
						p.releaseHold(h, false)
					}
				}
			}
			waiting = waiting || len(p.requests) > 0 || len(p.holds) > 0 || len(p.mail) > 0
		}
		if waiting {
			w.after(5*ms, sweep)
		}
	}
	sweep()
	enough := w.now + 2*w.longer + time.Minute
	if w.kind.Queued {
		enough += 10 * w.silence // until all the dead in the queue count as such
	}
	w.runUntil(enough)
	for _, p := range w.processes {
		for _, r := range p.open() {
			w.violated("%s: %v was never answered", p.uuid, r)
		}
	}
	// Late commands of terms that are over may still leave a key, for one lease.
	w.runUntil(w.now + 2*w.longer)
	for _, p := range w.processes {
		if p.dead {
			continue
		}
		if !p.lock.Idle() {
			w.violated("%s does not come to rest: %s", p.uuid, dump(p.lock))
		}
		if wake, ok := p.lock.NextWake(); ok {
			w.violated("%s is idle and still wants a Tick at %v", p.uuid, wake)
		}
	}
	w.redis.expire()
	for i := range w.redis.Parts() {
		for _, h := range w.redis.Part(i).Holders() {
			w.violated("%s is left behind in Redis", h.Owner)
		}
	}
	for _, waiter := range w.redis.Part(0).Queue() {
		if !w.mayStay(waiter.Owner) {
			w.violated("%s is left behind in the queue", waiter.Owner)
		}
	}
	if n := w.redis.Ears(); n > 0 {
		w.violated("%d subscribers are left behind", n)
	}
}
