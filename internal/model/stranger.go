package model

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// Clients of another kind, which do as Redisson does: roughly, as far as it concerns ours.

// Seize has a stranger hold a part, once, if it is free, or if readers have it and it wants
// to read. Announcements do not stop it, but a fair lock's queue does.
func (s *Server) Seize(part int, o Owner, mode core.Mode, lease time.Duration) bool {
	l := &s.parts[part]
	reads := mode == core.Shared
	switch {
	case reads && !l.Free() && !l.Written():
	case !l.Free(), !s.nextInLine(l, o):
		return false
	}
	if !s.writes(l) {
		l.tokens++
	}
	r := run{Server: s, owner: o, Command: core.Command{Lease: lease}}
	if reads {
		r.hold(l, Counts{Shared: 1})
	} else {
		r.hold(l, Counts{Exclusive: 1})
	}
	return true
}

// nextInLine reports whether nobody alive stands before a stranger in the queue, which it
// leaves then.
func (s *Server) nextInLine(l *Lock, o Owner) bool {
	l.evict(s.Clock())
	if len(l.queue) == 0 {
		return true
	}
	if l.queue[0].Owner != o {
		return false
	}
	l.queue = slices.Clone(l.queue[1:])
	for i := range l.queue {
		l.queue[i].Timeout -= s.setup.Silence // they have moved up
	}
	return true
}

// Leave has a stranger give back what it holds of a part.
func (s *Server) Leave(part int, o Owner) []Publication {
	l := &s.parts[part]
	if !l.holds(o) || !s.empty(l, o) {
		return nil
	}
	if s.setup.Kinds[part] != Fair {
		return []Publication{{Part: part}}
	}
	if l.evict(s.Clock()); len(l.queue) == 0 {
		return nil
	}
	return []Publication{{Part: part, To: l.queue[0].Owner}}
}

// Queue puts a stranger into the queue of a fair lock, unless it stands there.
func (s *Server) Queue(part int, o Owner) {
	l := &s.parts[part]
	if slices.ContainsFunc(l.queue, func(w Waiter) bool { return w.Owner == o }) {
		return
	}
	l.evict(s.Clock())
	last := s.Clock() + max(s.pttl(l), 0)
	if n := len(l.queue); n > 0 {
		last = l.queue[n-1].Timeout
	}
	if len(l.queue) == 0 {
		l.queueEnds = 0 // it sets no TTL
	}
	l.queue = append(slices.Clip(l.queue), Waiter{o, last + s.setup.Silence})
}
