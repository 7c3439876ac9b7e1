package lock_test

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// The rules about the wait queue.

// maxOvertakes is how often a process may overtake another that is in the wait queue and can be notified: once, by a
// command that was on its way.
const maxOvertakes = 1

// overtakes counts how often each other process has overtaken this one.
type overtakes [8]int8

// checkOvertaking counts how often the processes in the wait queue were overtaken, and checks maxOvertakes.
func (w *world) checkOvertaking(before *redismodel.Server) {
	if !w.features.WaitQueue {
		return
	}
	was, is := before.Part(0), w.redis.Part(0)
	if was.OpenUntil > w.now {
		return // it was left to foreign clients
	}
	for i := range w.processes {
		p := &w.processes[i]
		queued := slices.ContainsFunc(is.Entries, func(e redismodel.Entry) bool {
			return e.Client == p.client && e.Listens && !e.Lapsed && w.redis.Subscribers(redismodel.TurnChannel(p.client)) > 0
		})
		if !queued || w.twoActors || i >= len(p.overtaken) {
			p.overtaken = overtakes{}
			continue
		}
		for _, h := range is.Holders {
			j := int(h.Client)
			if h.Kept || was.Of(h.Owner) != (redismodel.Counts{}) || j == i || j >= len(p.overtaken) || isBefore(was, h.Client, p.client) {
				continue
			}
			if p.overtaken[j]++; p.overtaken[j] > maxOvertakes {
				w.violated("p%d overtakes p%d %d times, which is in the wait queue: %+v", j, i, p.overtaken[j], is.Entries)
			}
		}
	}
}

// isBefore reports whether a client is before another in the wait queue.
func isBefore(l *redismodel.Lock, one, other redismodel.Client) bool {
	for _, e := range l.Entries {
		if e.Client == one || e.Client == other {
			return e.Client == one
		}
	}
	return false
}

// checkEntries checks that a process that waits for others has an entry in the wait queue, or the lock before its
// notification, while no message is under way and without faults.
func (w *world) checkEntries() {
	if !w.features.WaitQueue || w.twoActors || w.any(
		lost, late, lostMessage, loading, rejected, full, frozen, restart, slow, paused, lateTimer, deleted, forced,
		kill, actorFails, crash,
	) {
		return
	}
	for i := range w.processes {
		p := &w.processes[i]
		part := w.redis.Part(max(p.part, 0))
		if p.dead || !p.lock.Contends() || w.underWay(i, command, reply, delayedRequest, transferred) > 0 ||
			p.wakeAt != never && p.wakeAt <= w.now {
			continue
		}
		o := w.owner(i, p.lock.Summary().Term)
		waits := slices.ContainsFunc(p.requests, func(r request) bool { return r.what == acquire && !r.req.Try })
		queued := slices.ContainsFunc(part.Entries, func(e redismodel.Entry) bool { return e.Client == o.Client && e.Term == o.Term })
		if waits && !queued && part.Of(o) == (redismodel.Counts{}) {
			w.violated("p%d: %v waits without an entry in the wait queue: %+v", i, o, part.Entries)
		}
	}
}
