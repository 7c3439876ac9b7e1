package lock_test

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// The rule that no waiter sleeps while it could proceed.

// delayingFaults are the faults after which a waiter may have to wait for its next poll: its message, the command that
// would have caused one, or the reply that it needs is lost, late or refused.
var delayingFaults = []fault{lost, late, onePart, lostMessage, loading, rejected, full, frozen, deleted, lateTimer}

// checkAwake checks that no waiter sleeps while it could proceed. When no message is on its way and no Tick is due, only
// the next poll or the end of a lease wakes the waiters. So Redis must refuse a try now, and a living process must
// know of each hold and entry that it has in Redis.
func (w *world) checkAwake() {
	if w.twoActors || w.hasLateCommand || w.any(delayingFaults...) || w.isUnderWay() {
		return
	}
	w.checkLeft()
	sleeping := -1
	for i := range w.processes {
		p := &w.processes[i]
		if p.dead {
			continue
		}
		if p.lock.ReaderCouldJoin(w.now) {
			w.violated("p%d: its first waiter could join the readers of its process: %v", i, p.requests)
		}
		try := p.lock.NextTry(w.now)
		if try == nil {
			continue
		}
		sleeping = i
		w.completeEntry(p, try)
		redis := w.redis
		if r, _ := redis.Run(p.client, p.part, *try); r.Outcome == lock.Done && !w.hasEnded() && !w.wakesSoon(p) && !w.hasKept() {
			w.violated("p%d sleeps until %v, and could have the lock: %v, %+v", i, p.wakeAt, p.requests, w.redis.Parts())
		}
	}
	if sleeping < 0 {
		return
	}
	for i := range w.processes {
		p := &w.processes[i]
		inRedis := func(o redismodel.Lock) bool { // it may have lost the lease
			return slices.ContainsFunc(o.Holders, func(h redismodel.Holder) bool { return h.Client == p.client })
		}
		if !p.dead && p.lock.Lingers() && slices.ContainsFunc(w.redis.Parts(), inRedis) {
			w.violated("p%d sleeps until %v, and the lease lingers in p%d without a hold", sleeping, w.processes[sleeping].wakeAt, i)
		}
	}
	for k := range w.redis.Parts() {
		part := w.redis.Part(k)
		for _, h := range part.Holders {
			if p := w.living(h.Client); p != nil && !p.lock.KnowsTerm(h.Term) && !h.Kept {
				w.violated("p%d sleeps until %v, and the process of %v does not know that it holds the lock",
					sleeping, w.processes[sleeping].wakeAt, h.Owner)
			}
		}
		for _, e := range part.Entries {
			if p := w.living(e.Client); p != nil && !p.lock.KnowsTerm(e.Term) {
				w.violated("p%d sleeps until %v, and the process of the entry %+v does not wait", sleeping, w.processes[sleeping].wakeAt, e)
			}
		}
	}
}

// checkLeft checks that nothing stays that only a later poll would remove, when no message is on its way and no Tick is
// due: an entry in the queue of a fair lock without a waiter, which others would have to wait for; or a process that
// has nothing to do, and is not idle soon.
func (w *world) checkLeft() {
	for _, e := range w.redis.Part(0).Queue {
		if p := w.living(e.Client); p != nil && !p.lock.HasWaiter(e.Term) {
			w.violated("%v is in the queue without a waiter, and its process sleeps until %v", e.Owner, p.wakeAt)
		}
	}
	for i := range w.processes {
		p := &w.processes[i]
		for _, r := range p.requests {
			o := w.owner(i, r.term)
			waits := w.features.Fair && r.what == acquire && !p.reenters(r) && !w.factOf(o).exempt && !w.any(forced, restart) // else its process may not know yet that it has lost the lock
			if waits && !slices.ContainsFunc(w.redis.Part(0).Queue, func(e redismodel.Waiter) bool { return e.Owner == o }) {
				w.violated("p%d: %v waits, and is not in the queue: %+v", i, r, w.redis.Part(0).Queue)
			}
		}
	}
	soon := 200*ms + w.config.Linger // it still listens for a moment, or its lease lingers
	if w.used(slow) > 0 {
		soon += w.config.CallTimeout // it repeats a command whose reply came too late
	}
	for i := range w.processes {
		p := &w.processes[i]
		if !p.dead && len(p.requests)+len(p.holds) == 0 && !p.lock.Idle() && (p.closed || p.wakeAt == never || p.wakeAt > w.now+soon) {
			w.violated("p%d has nothing to do, and is not idle before %v: %s", i, p.wakeAt, dump(p.lock))
		}
	}
}

// endsSilently are the faults after which a lease may end without a release, and so without a message.
var endsSilently = []fault{kill, actorFails, paused, slow, foreign, crash}

// hasEnded reports whether a lease, a reservation, or the time for foreign clients has ended by itself. A process that
// waits for that has a timer, which allows for the time that the reply took.
func (w *world) hasEnded() bool {
	since := w.now - 2*ms
	if w.used(slow) > 0 {
		since -= w.config.CallTimeout
	}
	just := func(end machine.Instant) bool { return end != 0 && since <= end && end <= w.now }
	return slices.ContainsFunc(w.redis.Parts(), func(l redismodel.Lock) bool {
		reserved := func(p redismodel.Entry) bool { return p.Since != 0 && just(p.Since+p.TTL/2) }
		if dead := func(q redismodel.Waiter) bool { return w.living(q.Client) == nil }; slices.ContainsFunc(l.Queue, dead) {
			return true // a fair lock waits for a dead entry of its queue until its timeout
		}
		if !l.Free() && !l.Written() && (w.any(kill, actorFails) || w.any(foreign) && w.used(slow) > 0) {
			return true // readers get no message when the writer before them ends, or its entry
		}
		return l.Free() && l.RanOut != 0 && (just(l.RanOut) || w.any(endsSilently...)) || just(l.OpenUntil) || slices.ContainsFunc(l.Entries, reserved)
	})
}

// wakesSoon reports whether a process wakes at once, or sleeps no longer than Redis has asked it to leave the lock to
// others. A free lock
// that is reserved for a MultiLock by now stays free until the timer of that fires. A reader that took the lock while it
// was left to foreign clients notifies no other reader, and none that it leaves a part of a MultiLock.
func (w *world) wakesSoon(p *process) bool {
	if p.wakeAt <= w.now+2*ms || w.features.Parts && p.wakeAt <= p.leaveUntil+ms {
		return true
	}
	return slices.ContainsFunc(w.redis.Parts(), func(l redismodel.Lock) bool {
		kept := slices.ContainsFunc(l.Entries, func(e redismodel.Entry) bool {
			return e.Client == p.client && e.Since != 0 && p.wakeAt <= e.Since+e.TTL/2
		})
		return kept && l.Free() || !l.Free() && !l.Written() && p.wakeAt <= w.now+w.config.OpenTime()
	})
}

// living returns the process of a client, nil if it has ended or the client is foreign.
func (w *world) living(c redismodel.Client) *process {
	i := slices.IndexFunc(w.processes, func(p process) bool { return p.client == c && !p.dead })
	if i < 0 {
		return nil
	}
	return &w.processes[i]
}

// isUnderWay reports whether a message is on its way, or a process has something to do now.
func (w *world) isUnderWay() bool {
	for k := range w.net {
		if m := &w.net[k]; m.kind != plannedRelease && m.kind != foreignStep {
			return true
		}
	}
	return slices.ContainsFunc(w.processes, func(p process) bool {
		return !p.dead && (p.stalled || w.now < p.pausedUntil || p.wakeAt != never && p.wakeAt <= w.now)
	})
}

// hasKept reports whether a key may have expired after the minimum time of a hold: that is not published, and waiters know
// only the TTL that it had before. They poll.
func (w *world) hasKept() bool {
	return slices.ContainsFunc(w.facts, func(f fact) bool { return f.kept })
}
