package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// bounded checks that no waiting process is overtaken again and again: processes get the lock in
// turns. While a process waits for its next grant, no other has more than Overtakes turns with
// grants of requests that came later.
//
// By design it is one turn, of a process that precedes it in the wait queue or holds the lock:
// either may hand the lock off to later requests of its own. A request is later if it came when
// the waiting request was certainly in the wait queue.
//
// A process has one entry in the wait queue for all of its requests. Those are served in their
// order, so a reader may wait for as many turns as its process has writers before it.
func (j *judge) bounded(l *lock) {
	const check = "bounded waiting"
	several := func(s lockRequest) bool { return len(s.Parts) > 1 }
	if j.limits.Overtakes == 0 || l.kind == "fair" || slices.ContainsFunc(l.requests, several) {
		return
	}
	entries, disturbed := j.queueEntries(l), j.disturbed(l.name)
	for _, c := range entries {
		for _, w := range j.waits(c) {
			if within(disturbed, w.From, w.To) {
				continue
			}
			j.v.Waits++
			for _, other := range entries {
				if other == c {
					continue
				}
				overtaking := other.later(w)
				j.v.MaxOvertaken = max(j.v.MaxOvertaken, len(overtaking))
				if n := j.limits.Overtakes; len(overtaking) > n {
					j.violated(check, l.name, overtaking[n].Answered,
						"process %d, which waited from %v to %v, was overtaken in %d turns of process %d; "+
							"%v of it was made %v later",
						c.proc, w.From, w.To, len(overtaking), other.proc, overtaking[n], overtaking[n].Asked-w.From)
				}
			}
		}
	}
}

// queueEntry is a process that wants a lock: one entry of the wait queue.
type queueEntry struct {
	proc           int
	asked, granted []lockRequest // in the order of the requests, and of the grants
	// turns are the grants by turn. A turn ends with a grant to another process, unless it and the
	// last grant are both shared, and with the hand-off limit.
	turns [][]lockRequest
	open  bool // the last turn goes on
}

func (j *judge) queueEntries(l *lock) (entries []*queueEntry) {
	find := func(s lockRequest) *queueEntry {
		i := slices.IndexFunc(entries, func(c *queueEntry) bool { return c.proc == s.Proc })
		if i < 0 {
			entries, i = append(entries, &queueEntry{proc: s.Proc}), len(entries)
		}
		return entries[i]
	}
	var granted []lockRequest
	for _, s := range l.requests {
		if !s.Outer() {
			continue
		}
		c := find(s)
		c.asked = append(c.asked, s)
		if s.Granted {
			granted = append(granted, s)
		}
	}
	slices.SortStableFunc(granted, func(a, b lockRequest) int { return cmp.Compare(a.Answered, b.Answered) })
	for _, s := range granted {
		c := find(s)
		for _, other := range entries {
			if other != c && !(other.open && other.granted[len(other.granted)-1].part.Shared && s.part.Shared) {
				other.open = false
			}
		}
		if last := len(c.turns) - 1; c.open && s.Answered-c.turns[last][0].Answered <= j.limits.Turn {
			c.turns[last] = append(c.turns[last], s)
		} else {
			c.turns = append(c.turns, []lockRequest{s})
		}
		c.granted, c.open = append(c.granted, s), true
	}
	return entries
}

// waits are the spans in which the process is in the wait queue: one of its requests has waited
// for a while, and none was granted or held since.
func (j *judge) waits(c *queueEntry) (spans []history.Span) {
	until := func(s lockRequest) time.Duration {
		return cmp.Or(s.Answered, s.proc.Killed, j.span.To)
	}
	var free time.Duration // since when none is held
	for i := range len(c.granted) + 1 {
		next := never
		if i < len(c.granted) {
			next = c.granted[i].Answered
		}
		waits := slices.IndexFunc(c.asked, func(s lockRequest) bool { return until(s) > free && (next == never || until(s) >= next) })
		if waits >= 0 {
			first := c.asked[waits]
			if w := (history.Span{From: max(first.Asked, free) + j.limits.Join, To: min(next, until(first))}); w.From < w.To {
				spans = append(spans, w)
			}
		}
		if i < len(c.granted) {
			free = max(free, cmp.Or(c.granted[i].Ended(), j.span.To))
		}
	}
	return spans
}

// later returns the first grant of each turn in a span to a request that came after the span's
// start.
func (c *queueEntry) later(w history.Span) (grants []lockRequest) {
	for _, turn := range c.turns {
		if i := slices.IndexFunc(turn, func(s lockRequest) bool { return s.Asked > w.From && s.Answered < w.To }); i >= 0 {
			grants = append(grants, turn[i])
		}
	}
	return grants
}

// disturbed are the spans for which nothing is promised about the order: any fault, until its consequences are
// certainly over; the time in which a process did not run; and the start of a round, when all workers make their first
// request at once, which on a busy machine takes longer than Join to enter the wait queue.
func (j *judge) disturbed(lock string) []history.Span {
	spans := append(j.stalls(-1), history.Span{From: j.span.From, To: j.span.From + j.limits.Start})
	for i := range j.faults {
		if f := &j.faults[i]; f.Lock == "" || f.Lock == lock {
			spans = append(spans, history.Span{From: f.From, To: f.To + j.limits.Lease + j.limits.Silence})
		}
	}
	return spans
}
