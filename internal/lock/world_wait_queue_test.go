package lock_test

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/redismodel"
)

// The rules about the line of processes.

// mostTurns is how often a process may overtake another that stands in the line and can be
// reached: once, by a command that was on its way.
const maxOvertakes = 1

// overtakes counts how often each other process has overtaken this one.
type overtakes [8]int8

// watchLine counts the turns that those in the line have waited for, and checks that nobody is
// overtaken again and again.
func (w *world) checkOvertaking(before *redismodel.Server) {
	if !w.kind.WaitQueue {
		return
	}
	was, is := before.Part(0), w.redis.Part(0)
	if was.OpenUntil > w.now {
		return // it was left to clients outside the line
	}
	for i := range w.processes {
		p := &w.processes[i]
		stands := slices.ContainsFunc(is.Line, func(place redismodel.Entry) bool {
			return place.Client == p.client && place.Listens && !place.Lapsed && w.redis.Subscribers(redismodel.TurnChannel(p.client)) > 0
		})
		if !stands || w.twoActors || i >= len(p.overtaken) {
			p.overtaken = overtakes{}
			continue
		}
		for _, h := range is.Holders {
			j := int(h.Client)
			if was.Of(h.Owner) != (redismodel.Counts{}) || j == i || j >= len(p.overtaken) || isBefore(was, h.Client, p.client) {
				continue
			}
			if p.overtaken[j]++; p.overtaken[j] > maxOvertakes {
				w.violated("p%d overtakes p%d %d times, which stands in the line: %+v", j, i, p.overtaken[j], is.Line)
			}
		}
	}
}

// standsBefore reports whether a client stands in the line before another.
func isBefore(l *redismodel.Lock, one, other redismodel.Client) bool {
	for _, place := range l.Line {
		if place.Client == one || place.Client == other {
			return place.Client == one
		}
	}
	return false
}

// checkPlaces checks that who waits for others stands in the line, or has got the lock without
// having heard of it, while nothing is under way and nothing has gone wrong.
func (w *world) checkEntries() {
	if !w.kind.WaitQueue || w.twoActors || w.any(lost, late, lostMessage, loading, rejected, full, frozen, restart, slow, paused, lateTimer, deleted, forced, kill, giveUp, crash) {
		return
	}
	for i := range w.processes {
		p := &w.processes[i]
		part := w.redis.Part(max(p.part, 0))
		if p.dead || !p.lock.Contends() || w.underWay(i, command, reply, delayedRequest, transferred) > 0 || p.wakeAt != never && p.wakeAt <= w.now {
			continue
		}
		o := w.owner(i, p.lock.Term())
		waits := slices.ContainsFunc(p.requests, func(r request) bool { return r.what == acquire && !r.req.Try })
		stands := slices.ContainsFunc(part.Line, func(place redismodel.Entry) bool { return place.Client == o.Client && place.Term == o.Term })
		if waits && !stands && part.Of(o) == (redismodel.Counts{}) {
			w.violated("p%d: %v waits, and does not stand in the line: %+v", i, o, part.Line)
		}
	}
}
