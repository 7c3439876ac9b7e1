package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// bounded checks that nobody who waits is overtaken again and again: processes get the lock
// in turns. While a process waits, until the next grant to it, no other has more than some turns
// with grants of requests that came later.
//
// By design it is one turn, of a process that is in the line before it, or has the lock already:
// either may hand it on to requests of its own that come later. Later is what came when the
// request of who waits was certainly in the line.
//
// A process has one place in the line, whoever waits for it in the process. Its own requests are
// served in their order, so a reader may wait for as many turns as its process has writers
// before it.
func (j *judge) bounded(l *lock) {
	const check = "bounded waiting"
	several := func(s share) bool { return len(s.Parts) > 1 }
	if j.limits.Overtakes == 0 || l.kind == "fair" || slices.ContainsFunc(l.shares, several) {
		return
	}
	line, disturbed := j.line(l), j.disturbed(l.name)
	for _, c := range line {
		for _, w := range j.waits(c) {
			if within(disturbed, w.From, w.To) {
				continue
			}
			j.v.Waits++
			for _, other := range line {
				if other == c {
					continue
				}
				overtaking := other.later(w)
				j.v.MostOvertaken = max(j.v.MostOvertaken, len(overtaking))
				if n := j.limits.Overtakes; len(overtaking) > n {
					j.violated(check, l.name, overtaking[n].Answered, "process %d, which waited from %v to %v, was overtaken in %d turns of process %d, %v of which was asked %v later",
						c.proc, w.From, w.To, len(overtaking), other.proc, overtaking[n], overtaking[n].Asked-w.From)
				}
			}
		}
	}
}

// comer is a process that wants a lock: one place in the line.
type comer struct {
	proc           int
	asked, granted []share // in the order of the requests, and of the grants
	// turns are the grants, up to one that ends the turn: another's, unless it and the last are
	// both shared, or that after which the hand-off limit is over.
	turns [][]share
	open  bool // the last of them goes on
}

func (j *judge) line(l *lock) (line []*comer) {
	find := func(s share) *comer {
		i := slices.IndexFunc(line, func(c *comer) bool { return c.proc == s.Proc })
		if i < 0 {
			line, i = append(line, &comer{proc: s.Proc}), len(line)
		}
		return line[i]
	}
	var granted []share
	for _, s := range l.shares {
		if !s.Outer() {
			continue
		}
		c := find(s)
		c.asked = append(c.asked, s)
		if s.Granted {
			granted = append(granted, s)
		}
	}
	slices.SortStableFunc(granted, func(a, b share) int { return cmp.Compare(a.Answered, b.Answered) })
	for _, s := range granted {
		c := find(s)
		for _, other := range line {
			if other != c && !(other.open && other.granted[len(other.granted)-1].part.Shared && s.part.Shared) {
				other.open = false
			}
		}
		if last := len(c.turns) - 1; c.open && s.Answered-c.turns[last][0].Answered <= j.limits.Turn {
			c.turns[last] = append(c.turns[last], s)
		} else {
			c.turns = append(c.turns, []share{s})
		}
		c.granted, c.open = append(c.granted, s), true
	}
	return line
}

// waits are the spans in which the comer is in the line: some request has waited for a while,
// and none was granted or held since.
func (j *judge) waits(c *comer) (spans []history.Span) {
	until := func(s share) time.Duration {
		return cmp.Or(s.Answered, s.proc.Killed, j.span.To)
	}
	var free time.Duration // since when none is held
	for i := range len(c.granted) + 1 {
		next := never
		if i < len(c.granted) {
			next = c.granted[i].Answered
		}
		waits := slices.IndexFunc(c.asked, func(s share) bool { return until(s) > free && (next == never || until(s) >= next) })
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

// later gives the first grant of each turn in a span to a request that came later than the
// span's begin.
func (c *comer) later(w history.Span) (grants []share) {
	for _, turn := range c.turns {
		if i := slices.IndexFunc(turn, func(s share) bool { return s.Asked > w.From && s.Answered < w.To }); i >= 0 {
			grants = append(grants, turn[i])
		}
	}
	return grants
}

// disturbed are the spans for which nothing is promised about the order: any fault, until what
// it has left behind is certainly over, and the time in which a process did not run.
func (j *judge) disturbed(lock string) []history.Span {
	spans := j.stalls(-1)
	for i := range j.faults {
		if f := &j.faults[i]; f.Lock == "" || f.Lock == lock {
			spans = append(spans, history.Span{From: f.From, To: f.To + j.limits.Lease + j.limits.Silence})
		}
	}
	return spans
}
