package console

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Event is something that happened to a lock.
type Event struct {
	At   time.Time `json:"at"`
	Lock string    `json:"lock,omitempty"`
	Text string    `json:"text"`
	// Grave is set for a loss and for a warning.
	Grave bool `json:"grave,omitempty"`
}

const (
	// maxEvents bounds the events of a console and of a Journal.
	maxEvents = 500
	// eventsOfOne bounds the events of one lock, so that a busy lock does not displace the events of other locks.
	eventsOfOne = 20
	// rateSpan is the time over which a rate is measured, if there were two refreshes in it.
	rateSpan = 30 * time.Second
)

// history contains the changes between the refreshes of the console.
type history struct {
	mu sync.Mutex // guards the fields below
	// holders are the holders at the last refresh.
	holders map[lockID]holder
	events  []Event
	counted []counted
}

// holder is the owner of a lock at the last refresh, or the state of a synchronizer.
type holder struct {
	owner string
	// since is when the console saw the owner or the state first.
	since time.Time
	// listed reports whether the System held the lock or waited for it.
	listed bool
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

// keep appends an event. If there are too many events of the same lock, or of all locks, it removes the oldest of them.
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
	} else if len(events) >= maxEvents {
		events = slices.Delete(events, 0, 1)
	}
	return append(events, e)
}

// eventsFor returns the events of a lock, or the grave events of all locks for "".
func eventsFor(events []Event, lock string) (some []Event) {
	for _, e := range events {
		if lock == "" && e.Grave || lock != "" && e.Lock == lock {
			some = append(some, e)
		}
	}
	return some
}

// compare records the locks whose holders have changed since the last refresh, and sets the times since which holders
// in other processes are known.
func (h *history) compare(s *snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := map[lockID]holder{}
	for _, l := range s.lookUps {
		h.record(l, s.At, now)
	}
	for i := range s.Locks {
		l := &s.Locks[i]
		if s.lookUps[l.id()] == nil {
			h.record(l, s.At, now)
		}
		if held, known := now[l.id()]; known {
			held.listed = true
			now[l.id()] = held
		}
	}
	for id, before := range h.holders {
		switch _, known := now[id]; {
		case known || !before.listed: // the end of a look-up is not the end of a hold
		case !s.listed:
			now[id] = before
		case before.owner != "":
			h.events = keep(h.events, Event{At: s.At, Lock: id.name, Text: "is no longer held or waited for here"})
		}
	}
	h.holders = now
	s.Events = append(s.Events, h.events...)
}

// record records the holder of a lock. If Redis was not asked about the lock, the previous holder remains.
func (h *history) record(l *lock, at time.Time, now map[lockID]holder) {
	before, known := h.holders[l.id()]
	if !l.Asked {
		if known {
			now[l.id()] = before
		}
		return
	}
	held := holder{owner: cmp.Or(l.State, l.Owner), since: at}
	if known && before.owner == held.owner {
		held.since = before.since
	} else if text := l.heldBy(); known || held.owner != "" && h.last(l.Name) != text { // no second event for another look-up
		h.events = keep(h.events, Event{At: at, Lock: l.Name, Text: text})
	}
	now[l.id()] = held
	if l.Held && !l.Here {
		since := held.since
		if l.Since != nil && l.Since.Before(since) {
			since = *l.Since
		}
		l.Since, l.AtLeast = &since, true
	}
}

// last returns the text of the last event of a lock; "" if there is none.
func (h *history) last(lock string) string {
	for _, e := range slices.Backward(h.events) {
		if e.Lock == lock {
			return e.Text
		}
	}
	return ""
}

// heldBy describes the holder of the lock, or the state of a synchronizer.
func (l *lock) heldBy() string {
	switch {
	case l.State != "":
		return l.State
	case !l.Held:
		return "is free"
	case l.Here:
		return "is held by this process"
	}
	return "is held by " + l.Process.String()
}

// rates are numbers per second.
type rates struct {
	Grants   float64 `json:"grants"`
	Refusals float64 `json:"refusals"`
	Losses   float64 `json:"losses"`
}

// rates returns the rates since the oldest refresh within rateSpan, or since the last refresh; nil at the first one.
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
