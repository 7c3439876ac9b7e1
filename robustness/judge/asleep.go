package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// asleep checks that no request waits for long while it could be granted.
//
// That is certain while every request that waits could be granted by itself, whichever is the first: the lock is
// free, or all that hold it and all that wait for it read, or so many permits are free that they are enough for each.
// A request for several locks may wait for any of them; it is not counted.
func (j *judge) asleep(l *lock) {
	const check = "a request that can be granted is"
	if j.limits.Awake == 0 || len(l.shares) == 0 {
		return
	}
	var waits []share
	for _, s := range l.shares {
		if s.Outer() && len(s.Parts) == 1 {
			waits = append(waits, s)
		}
	}
	excuses := append(j.excuses(-1, l.name), j.stalls(-1)...)
	for _, open := range j.open(l, waits) {
		for _, s := range waits {
			wait := history.Span{From: max(s.Asked, open.From), To: min(j.waitsUntil(s), open.To)}
			if wait.To-wait.From <= j.limits.Awake {
				continue
			}
			if asleep := wait.To - wait.From - covered(wait, excuses); asleep > j.limits.Awake {
				j.violated(check, l.name, wait.To, "%v was asked at %v and could have been granted from %v to %v, %v of that without an excuse", s, s.Asked, wait.From, wait.To, asleep)
			}
		}
	}
}

// waitsUntil is when a request does not wait any more.
func (j *judge) waitsUntil(s share) time.Duration {
	return cmp.Or(s.Answered, s.proc.Killed, j.span.To)
}

// open are the spans in which each request that waits could be granted.
func (j *judge) open(l *lock, waits []share) (spans []history.Span) {
	type change struct {
		at      time.Duration
		s       share
		holds   bool // else it waits
		present bool
	}
	var changes []change
	add := func(s share, holds bool, from, to time.Duration) {
		changes = append(changes, change{from, s, holds, true}, change{max(from, to), s, holds, false})
	}
	for _, s := range waits {
		add(s, false, s.Asked, j.waitsUntil(s))
	}
	for _, s := range l.shares {
		if s.Granted {
			add(s, true, s.Answered, cmp.Or(s.Ended(), j.span.To))
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	now := map[bool]map[*history.Request]share{false: {}, true: {}}
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

// room reports whether there is room for each request that waits beside the holders.
func (j *judge) room(l *lock, at time.Duration, waiting, holding map[*history.Request]share) bool {
	taken, most, shared := 0, 0, true
	for _, s := range holding {
		taken += s.part.Takes
		shared = shared && s.part.Shared
	}
	for _, s := range waiting {
		most = max(most, s.part.Takes)
		shared = shared && s.part.Shared
	}
	switch {
	case len(waiting) == 0:
		return false
	case l.kind == semaphore || l.kind == leased:
		return most <= l.least(at)-taken
	}
	return len(holding) == 0 || shared
}
