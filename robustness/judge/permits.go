package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// The kinds of permits.
const (
	leased    = "leased"    // permits that expire
	semaphore = "semaphore" // those of a semaphore, which nobody gives back for a process that was killed
)

// possession is a request that certainly has its permits from first to last.
type possession struct {
	share
	first, last time.Duration
	takes, of   int
}

func (j *judge) possessions(l *lock) (all []possession) {
	for _, s := range l.shares {
		p := possession{share: s, first: s.First, last: s.Last, takes: s.Parts[0].Takes, of: s.Parts[0].Of}
		if l.kind == semaphore && s.Granted {
			if p.first, p.last = s.Answered, s.Releasing; p.last == 0 {
				p.last = j.span.To
			}
		}
		if p.first != 0 && p.last > p.first {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b possession) int { return cmp.Compare(a.first, b.first) })
	return all
}

// crowded checks that at no moment more permits are certainly held than there are. A semaphore has
// no lease: if Redis has forgotten what was taken, that is so until its end.
func (j *judge) crowded(l *lock) {
	robbed := j.robbed(l.name)
	if l.kind == semaphore {
		robbed = j.forgotten(l)
	}
	var open []possession
	for _, p := range j.possessions(l) {
		open = append(slices.DeleteFunc(open, func(o possession) bool { return o.last <= p.first }), p)
		held, last := 0, never
		for _, o := range open {
			held, last = held+o.takes, min(last, o.last)
		}
		excused := slices.ContainsFunc(robbed, func(s history.Span) bool { return s.From <= p.first && last <= s.To })
		switch {
		case held <= p.of:
		case excused:
			j.v.Robbed += last - p.first
		default:
			j.violated("no more permits are held than there are", l.name, p.first, "with %v, %d permits of %d are held, until %v at least", p, held, p.of, last)
		}
	}
}

// forgotten is from when on Redis does not know any more what it has confirmed of a semaphore.
func (j *judge) forgotten(l *lock) (spans []history.Span) {
	for i := range j.faults {
		if f := &j.faults[i]; f.Wipes && f.To > l.shares[0].Asked {
			spans = append(spans, history.Span{From: f.From, To: never})
		}
	}
	return spans
}

// Permits are those that Redis has of a name when all clients have come to rest.
type Permits struct{ Free, Taken int }

// permits checks that Redis has as many permits as were set, once all clients have come to rest: those
// that expire to the last one; those of a semaphore but for what processes had taken that were killed.
func (j *judge) permits(l *lock, found map[string]Permits) {
	const check = "permits are neither made nor lost"
	if !slices.ContainsFunc(l.shares, func(s share) bool { return s.Granted }) {
		return
	}
	got, there := found[l.name]
	all := l.shares[0].Parts[0].Of
	if l.kind == leased {
		if !there || got.Free != all || got.Taken != 0 {
			j.violated(check, l.name, j.span.To, "%d permits were set, and %d are free and %d taken", all, got.Free, got.Taken)
		}
		return
	}
	if len(j.forgotten(l)) > 0 {
		return
	}
	gone, perhaps := 0, 0
	for _, s := range l.shares {
		takes, killed := s.Parts[0].Takes, s.proc.Killed != 0
		switch {
		case s.Released != 0 && s.ReleaseErr == "":
		case s.Granted && s.Releasing == 0:
			gone += takes
		case killed:
			perhaps += takes
		}
	}
	if !there || got.Free > all-gone || got.Free < all-gone-perhaps {
		j.violated(check, l.name, j.span.To, "%d permits were set, %d are gone with processes that were killed, and perhaps %d more: %d are free", all, gone, perhaps, got.Free)
	}
}
