package judge

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// Synchronizers whose numbers were set near an edge, directly in Redis.
const (
	edgeSemaphore = "edge semaphore"
	edgeLatch     = "edge latch"
)

// number is the number that a name was set to, if it was.
func (j *judge) number(l *lock) (n int, seeded bool) {
	i := slices.IndexFunc(j.faults, func(f history.Fault) bool { return f.Lock == l.name && f.Number != 0 })
	if i < 0 {
		return 0, false
	}
	return int(j.faults[i].Number), true
}

// edge checks that a number near an edge is exact, or that requests are refused: only granted requests have changed it,
// granted permits can be released, and a latch that is far from 0 is closed.
func (j *judge) edge(l *lock, found map[string]Permits) {
	set, seeded := j.number(l)
	if !seeded {
		return
	}
	most, least := set, set
	for _, s := range l.requests {
		if s.Granted && l.kind == edgeLatch {
			j.violated("a closed latch is not passed", l.name, s.Answered, "%v has passed, and the count was set to %d", s, set)
		}
		if l.kind == edgeLatch || !s.Granted {
			continue
		}
		if s.ReleaseErr != "" {
			j.violated("granted permits can be released", l.name, s.Released,
				"%v has %d permits, and their release was refused: %s", s, s.part.Permits, s.ReleaseErr)
		}
		if s.Released == 0 || s.ReleaseErr != "" {
			least -= s.part.Permits
		}
	}
	for _, s := range l.changes {
		switch {
		case s.Granted:
			most, least = most-s.part.Permits, least-s.part.Permits
		case s.Answered == 0 || s.Err == "unavailable" || s.Err == "cancelled" || s.Err == "crashed":
			least -= s.part.Permits
		}
	}
	if got := found[l.name].Free; got < least || got > most {
		j.violated("numbers are exact", l.name, j.span.To, "the number should be between %d and %d, and is %d", least, most, got)
	}
}
