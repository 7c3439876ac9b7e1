package redismodel

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Counts are the hold counts of an owner, in each mode.
type Counts struct{ Exclusive, Shared int }

// once returns the counts of one hold in a mode.
func once(mode machine.Mode) Counts {
	if mode == machine.Shared {
		return Counts{Shared: 1}
	}
	return Counts{Exclusive: 1}
}

// Holder is an owner with its counts.
type Holder struct {
	Owner
	Counts
}

// Field is one of the fields of the hash. Write: the field of a writer in a read/write lock, which differs from
// its owner.
type Field struct {
	Owner
	Write bool
}

// ReadLease is the key next to the hash of a read/write lock for the N-th read hold of an owner.
type ReadLease struct {
	Owner
	N     int
	Until machine.Instant
}

// Lock is the state of one lock in Redis.
type Lock struct {
	// Holders are the fields of the hash, sorted; without them there is no hash.
	Holders []Holder
	// ExpiresAt is the time at which the hash expires, on the processes' clock.
	ExpiresAt machine.Instant
	// RanOut is the time at which the hash expired, if the lock has not been held since.
	RanOut machine.Instant
	// ReadLeases are the keys of the read holds, sorted.
	ReadLeases []ReadLease
	// Entries are the entries of the wait queue, in their order.
	Entries []Entry
	// OpenUntil is the time until which the free lock is left to foreign clients.
	OpenUntil machine.Instant
	// Turns counts the transfers since the lock was last left to foreign clients.
	Turns int
	// WaitQueueEnds is the time at which the wait queue expires.
	WaitQueueEnds machine.Instant
	// Queue is the queue of a fair lock, in its order.
	Queue []Waiter
	// QueueEnds is the time at which Queue expires; 0 is never.
	QueueEnds machine.Instant
	// Tokens is the last fencing token.
	Tokens int64
}

// Free reports whether the lock is free.
func (l *Lock) Free() bool { return len(l.Holders) == 0 }

// Of returns the hold counts of an owner.
func (l *Lock) Of(o Owner) Counts {
	for _, h := range l.Holders {
		if h.Owner == o {
			return h.Counts
		}
	}
	return Counts{}
}

// holds reports whether an owner has a field.
func (l *Lock) holds(o Owner) bool { return l.Of(o) != Counts{} }

// Lasts returns when the first of an owner's holds expires, 0 if one has expired. Each read hold has its own
// lease besides the lock's.
func (l *Lock) Lasts(o Owner) machine.Instant {
	end, reads := l.ExpiresAt, l.Of(o).Shared
	for _, r := range l.ReadLeases {
		if r.Owner == o && r.N <= l.Of(o).Shared {
			end = min(end, r.Until)
			reads--
		}
	}
	if reads > 0 {
		return 0
	}
	return end
}

// put sets the counts of an owner; zero counts remove it.
func (l *Lock) put(o Owner, c Counts) {
	order := func(a, b Holder) int { return compare(a.Owner, b.Owner) }
	l.Holders = with(l.Holders, Holder{o, c}, c != Counts{}, order)
	l.RanOut = 0
}

// setLease sets the key of the n-th read hold of an owner; 0 deletes it.
func (l *Lock) setLease(o Owner, n int, until machine.Instant) {
	order := func(a, b ReadLease) int { return cmp.Or(compare(a.Owner, b.Owner), cmp.Compare(a.N, b.N)) }
	l.ReadLeases = with(l.ReadLeases, ReadLease{o, n, until}, until != 0, order)
}

func compare(a, b Owner) int {
	kept := func(o Owner) int {
		if o.Kept {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Term, b.Term), cmp.Compare(kept(a), kept(b)))
}

// with returns a copy of a sorted list with the element, or without it.
func with[T any](list []T, one T, has bool, order func(a, b T) int) []T {
	i, found := slices.BinarySearchFunc(list, one, order)
	rest := list[i:]
	if found {
		rest = rest[1:]
	}
	if !has {
		return slices.Concat(list[:i], rest)
	}
	return slices.Concat(list[:i], []T{one}, rest)
}

// expire removes everything that has expired.
func (l *Lock) expire(now machine.Instant) {
	if len(l.Holders) > 0 && now >= l.ExpiresAt {
		l.Holders, l.RanOut = nil, l.ExpiresAt
	}
	l.expireWaitQueue(now)
	if l.QueueEnds != 0 && now >= l.QueueEnds {
		l.Queue, l.QueueEnds = nil, 0
	}
	for _, r := range l.ReadLeases {
		if now >= r.Until {
			l.setLease(r.Owner, r.N, 0)
		}
	}
}

// pexpire sets the TTL of the hash.
func (s *Server) pexpire(l *Lock, lease time.Duration) { l.ExpiresAt = s.end(lease) }

// pttl returns the TTL of the hash, in whole milliseconds; -2 ms without a hash.
func (s *Server) pttl(l *Lock) time.Duration {
	if l.Free() {
		return -2 * time.Millisecond
	}
	return s.left(l.ExpiresAt)
}

// some returns the field that HRANDFIELD would return.
func (s *Server) some(l *Lock) Field {
	if len(l.Holders) == 0 {
		return Field{}
	}
	var fields []Field
	for _, h := range l.Holders {
		if h.Shared > 0 {
			fields = append(fields, Field{Owner: h.Owner})
		}
		if h.Exclusive > 0 {
			fields = append(fields, Field{h.Owner, s.writes(l)})
		}
	}
	if s.setup.Pick == nil || len(fields) == 1 {
		return fields[0]
	}
	return fields[s.setup.Pick(fields)]
}

// writes reports whether the field of an exclusive holder has ":write".
func (s *Server) writes(l *Lock) bool {
	for i := range s.parts {
		if l == &s.parts[i] {
			return s.setup.Kinds[i] >= ReadWrite
		}
	}
	return false
}

// refusal returns the reply to a client that is refused because of the holder.
func (s *Server) refusal(c Client, l *Lock) lock.Result {
	return s.refused(c, s.pttl(l), s.some(l))
}

func (s *Server) refused(c Client, ttl time.Duration, by Field) lock.Result {
	r := lock.Result{Outcome: lock.Refused, TTL: ttl}
	if by.Owner == (Owner{}) {
		return r
	}
	if r.Holder = s.setup.Name(by.Owner); by.Write {
		r.Holder += ":write"
	}
	if by.Client == c && !by.Kept {
		r.OwnTerm = by.Term
	}
	return r
}
