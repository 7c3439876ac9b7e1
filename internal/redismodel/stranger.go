package redismodel

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// Clients of another kind, which do as Redisson does: roughly, as far as it concerns ours.

// Seize has a stranger hold a part, once, if it is free, or if readers have it and it wants
// to read. The line does not stop it, but a fair lock's queue does.
func (s *Server) Seize(part int, o Owner, mode lock.Mode, lease time.Duration) bool {
	l := &s.parts[part]
	reads := mode == lock.Shared
	switch {
	case reads && !l.Free() && !l.Written():
	case !l.Free(), !s.nextInWaitQueue(l, o):
		return false
	}
	if !s.writes(l) {
		l.Tokens++
	}
	r := run{Server: s, owner: o, Command: lock.Command{Lease: lease}}
	r.hold(l, once(mode))
	return true
}

// nextInLine reports whether nobody alive stands before a stranger in the queue, which it
// leaves then.
func (s *Server) nextInWaitQueue(l *Lock, o Owner) bool {
	l.evict(s.Clock())
	if len(l.Queue) == 0 {
		return true
	}
	if l.Queue[0].Owner != o {
		return false
	}
	l.Queue = slices.Clone(l.Queue[1:])
	for i := range l.Queue {
		l.Queue[i].Timeout -= s.setup.WaiterTimeout // they have moved up
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
	if l.evict(s.Clock()); len(l.Queue) == 0 {
		return nil
	}
	return []Publication{{Part: part, To: l.Queue[0].Owner}}
}

// Queue puts a stranger into the queue of a fair lock, unless it stands there.
func (s *Server) Queue(part int, o Owner) {
	l := &s.parts[part]
	if slices.ContainsFunc(l.Queue, func(w Waiter) bool { return w.Owner == o }) {
		return
	}
	l.evict(s.Clock())
	last := s.Clock() + max(s.pttl(l), 0)
	if n := len(l.Queue); n > 0 {
		last = l.Queue[n-1].Timeout
	}
	if len(l.Queue) == 0 {
		l.QueueEnds = 0 // it sets no TTL
	}
	l.Queue = append(slices.Clip(l.Queue), Waiter{o, last + s.setup.WaiterTimeout})
}
