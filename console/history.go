package console

import (
	"slices"
	"sync"
	"time"
)

// Event is something that happened to a lock.
type Event struct {
	At   time.Time `json:"at"`
	Lock string    `json:"lock,omitempty"`
	Text string    `json:"text"`
	// Grave is said of a loss, and of what comes before one.
	Grave bool `json:"grave,omitempty"`
}

const (
	// mostEvents bounds the events that are kept of a console, and of a Journal; eventsOfOne are
	// those of one lock's changes, so that a busy lock does not drive out the others.
	mostEvents  = 500
	eventsOfOne = 20
	// rateSpan is the time over which a rate is measured, if there were two looks in it.
	rateSpan = 30 * time.Second
)

// history is what the console has seen from one look to the next.
type history struct {
	mu sync.Mutex // guards what follows
	// holders are those of the last look.
	holders map[named]holder
	events  []Event
	counted []counted
}

// holder is who held a lock when it was looked at, and when it was seen first.
type holder struct {
	owner string
	since time.Time
}

type counted struct {
	at time.Time
	counts
}

func (h *history) add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = keep(h.events, e)
}

// keep appends an event, and drops the oldest of the same lock, or of all, if there are too many.
func keep(events []Event, e Event) []Event {
	of := 0
	for _, other := range events {
		if other.Lock == e.Lock {
			of++
		}
	}
	if of >= eventsOfOne {
		i := slices.IndexFunc(events, func(other Event) bool { return other.Lock == e.Lock })
		events = slices.Delete(events, i, i+1)
	} else if len(events) >= mostEvents {
		events = slices.Delete(events, 0, 1)
	}
	return append(events, e)
}

// of are the events of a lock, or the grave ones of all.
func of(events []Event, lock string) (some []Event) {
	for _, e := range events {
		if lock == "" && e.Grave || lock != "" && e.Lock == lock {
			some = append(some, e)
		}
	}
	return some
}

// compare writes down which locks have other holders than at the last look, and says of the holders
// elsewhere since when they are known.
func (h *history) compare(s *snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := map[named]holder{}
	for i := range s.Locks {
		l := &s.Locks[i]
		if !l.Asked {
			continue
		}
		before, known := h.holders[l.named()]
		held := holder{owner: l.Owner, since: s.At}
		if known && before.owner == held.owner {
			held.since = before.since
		} else if l.Held || known {
			h.events = keep(h.events, Event{At: s.At, Lock: l.Name, Text: l.heldBy()})
		}
		now[l.named()] = held
		if l.Held && !l.Here {
			since := held.since
			l.Since, l.AtLeast = &since, true
		}
	}
	for n, before := range h.holders {
		if _, asked := now[n]; !asked && before.owner != "" && len(s.Errors) == 0 {
			h.events = keep(h.events, Event{At: s.At, Lock: n.name, Text: "is neither held nor waited for here any more"})
		}
	}
	if len(s.Errors) == 0 || len(now) > 0 {
		h.holders = now
	}
	s.Events = append(s.Events, h.events...)
}

// heldBy says in a sentence who has the lock.
func (l *lock) heldBy() string {
	switch {
	case !l.Held:
		return "is free"
	case l.Here:
		return "is held by this process"
	}
	return "is held by " + l.Process.String()
}

// rates are how many there were per second.
type rates struct {
	Grants   float64 `json:"grants"`
	Refusals float64 `json:"refusals"`
	Losses   float64 `json:"losses"`
}

// rates measures since the oldest of the last looks, or since the last look; nil at the first one.
func (h *history) rates(at time.Time, now counts) *rates {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counted = append(h.counted, counted{at, now})
	for len(h.counted) > 2 && at.Sub(h.counted[0].at) > rateSpan {
		h.counted = slices.Delete(h.counted, 0, 1)
	}
	first := h.counted[0]
	span := at.Sub(first.at).Seconds()
	if span <= 0 {
		return nil
	}
	per := func(now, then int64) float64 { return float64(now-then) / span }
	return &rates{Grants: per(now.Grants, first.Grants), Refusals: per(now.Refusals, first.Refusals), Losses: per(now.Losses, first.Losses)}
}
