package redismodel

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Foreign clients do roughly what Redisson does, as far as it concerns clients of Lockkeeper.

// Seize takes a part for a foreign client, once, if the part is free, or if readers hold it and mode is
// Shared. The wait queue does not stop the client, but a fair lock's queue does.
func (s *Server) Seize(part int, o Owner, mode machine.Mode, lease time.Duration) bool {
	l := &s.parts[part]
	reads := mode == machine.Shared
	switch {
	case reads && !l.Free() && !l.Written():
	case !l.Free(), !s.nextInFairQueue(l, o):
		return false
	}
	if !s.writes(l) {
		l.Tokens++
	}
	r := run{Server: s, owner: o, Command: lock.Command{Lease: lease}}
	r.hold(l, once(mode))
	return true
}

// nextInFairQueue reports whether no live waiter is before a foreign client in a fair lock's queue. If so, the
// client leaves the queue.
func (s *Server) nextInFairQueue(l *Lock, o Owner) bool {
	l.evict(s.Clock())
	if len(l.Queue) == 0 {
		return true
	}
	if l.Queue[0].Owner != o {
		return false
	}
	l.Queue = slices.Clone(l.Queue[1:])
	for i := range l.Queue {
		l.Queue[i].Timeout -= s.setup.WaiterTimeout // they move up
	}
	return true
}

// Leave ends the holds of a foreign client on a part, and returns the publications.
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

// Queue adds a foreign client to the queue of a fair lock, unless it is in it.
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
		l.QueueEnds = 0 // Redisson sets no TTL
	}
	l.Queue = append(slices.Clip(l.Queue), Waiter{o, last + s.setup.WaiterTimeout})
}
