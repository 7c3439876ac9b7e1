package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// unserved checks that no request waits for long while it could be granted.
//
// That is certain while every waiting request could be granted alone, in any order: the lock is free, or all holders
// and all waiters are readers, or enough permits are free for each.
// A request for several locks may wait for any of them; it is not counted.
func (j *judge) unserved(l *lock) {
	const check = "a request that can be granted is granted"
	if j.limits.GrantWithin == 0 || len(l.requests) == 0 {
		return
	}
	var waits []lockRequest
	for _, s := range l.requests {
		if s.Outer() && len(s.Parts) == 1 {
			waits = append(waits, s)
		}
	}
	excuses := append(j.excuses(-1, l.name), j.stalls(-1)...)
	for _, open := range j.open(l, waits) {
		for _, s := range waits {
			wait := history.Span{From: max(s.Asked, open.From), To: min(j.waitsUntil(s), open.To)}
			if wait.To-wait.From <= j.limits.GrantWithin {
				continue
			}
			if asleep := wait.To - wait.From - covered(wait, excuses); asleep > j.limits.GrantWithin {
				j.violated(check, l.name, wait.To,
					"%v was made at %v and could have been granted from %v to %v, %v of that without an excuse",
					s, s.Asked, wait.From, wait.To, asleep)
			}
		}
	}
}

// waitsUntil is when a request stops waiting.
func (j *judge) waitsUntil(s lockRequest) time.Duration {
	return cmp.Or(s.Answered, s.proc.Killed, j.span.To)
}

// open are the spans in which each waiting request could be granted.
func (j *judge) open(l *lock, waits []lockRequest) (spans []history.Span) {
	type change struct {
		at      time.Duration
		s       lockRequest
		holds   bool // else it waits
		present bool
	}
	var changes []change
	add := func(s lockRequest, holds bool, from, to time.Duration) {
		changes = append(changes, change{from, s, holds, true}, change{max(from, to), s, holds, false})
	}
	for _, s := range waits {
		add(s, false, s.Asked, j.waitsUntil(s))
	}
	for _, s := range l.requests {
		if s.Granted {
			add(s, true, s.Answered, cmp.Or(s.Ended(), j.span.To))
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	now := map[bool]map[*history.Request]lockRequest{false: {}, true: {}}
	since := never
	for i, c := range changes {
		if c.present {
			now[c.holds][c.s.Request] = c.s
		} else {
			delete(now[c.holds], c.s.Request)
		}
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		switch could := j.room(l, c.at, now[false], now[true]); {
		case could && since == never:
			since = c.at
		case !could && since != never:
			spans, since = append(spans, history.Span{From: since, To: c.at}), never
		}
	}
	return spans
}

// room reports whether each waiting request could be granted alongside the holders.
func (j *judge) room(l *lock, at time.Duration, waiting, holding map[*history.Request]lockRequest) bool {
	taken, most, shared := 0, 0, true
	for _, s := range holding {
		taken += s.part.Permits
		shared = shared && s.part.Shared
	}
	for _, s := range waiting {
		most = max(most, s.part.Permits)
		shared = shared && s.part.Shared
	}
	switch {
	case len(waiting) == 0:
		return false
	case l.kind == semaphore || l.kind == expirable:
		return most <= l.least(at)-taken
	}
	return len(holding) == 0 || shared
}
