package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// Counts say how often an owner holds a lock, in each mode.
type Counts struct{ Exclusive, Shared int }

// Holder is an owner with its counts.
type Holder struct {
	Owner
	Counts
}

// Field is one of the fields of the hash. A writer's in a read/write lock is not just its
// owner's name.
type Field struct {
	Owner
	Write bool
}

// ReadLease is a key beside the hash of a read/write lock, of the n-th read hold.
type ReadLease struct {
	Owner
	N     int
	Until core.Instant
}

// Lock is what Redis keeps of one lock.
type Lock struct {
	// holders are the fields of the hash, sorted; there is no hash without them.
	holders   []Holder
	expiresAt core.Instant
	// leases are sorted too.
	leases []ReadLease
	// writer is the announcement of a waiting writer, until it expires.
	writer      Owner
	writerUntil core.Instant
	// queue is that of a fair lock, queueEnds when Redis forgets it; 0 is never.
	queue     []Waiter
	queueEnds core.Instant
	// tokens is the counter of a fenced lock.
	tokens int64
}

// Free reports whether nobody holds the lock.
func (l *Lock) Free() bool { return len(l.holders) == 0 }

// Holders are those who hold the lock, sorted.
func (l *Lock) Holders() []Holder { return l.holders }

// ExpiresAt is when the hash runs out, on the processes' clock, if there is one.
func (l *Lock) ExpiresAt() core.Instant { return l.expiresAt }

// ReadLeases are the keys of the read holds, sorted.
func (l *Lock) ReadLeases() []ReadLease { return l.leases }

// Writer is who has announced itself, and until when.
func (l *Lock) Writer() (Owner, core.Instant) { return l.writer, l.writerUntil }

// QueueEnds is when Redis forgets the queue, if somebody is in it; 0 is never.
func (l *Lock) QueueEnds() core.Instant { return l.queueEnds }

// Queue are the waiters of a fair lock in their order.
func (l *Lock) Queue() []Waiter { return l.queue }

// Tokens is the last fencing token.
func (l *Lock) Tokens() int64 { return l.tokens }

// Of is how often an owner holds the lock.
func (l *Lock) Of(o Owner) Counts {
	for _, h := range l.holders {
		if h.Owner == o {
			return h.Counts
		}
	}
	return Counts{}
}

// holds reports whether an owner has a field.
func (l *Lock) holds(o Owner) bool { return l.Of(o) != Counts{} }

// Lasts is until when what an owner holds lasts: of read holds, each has a lease besides.
func (l *Lock) Lasts(o Owner) core.Instant {
	end, reads := l.expiresAt, l.Of(o).Shared
	for _, r := range l.leases {
		if r.Owner == o && r.N <= l.Of(o).Shared {
			end = min(end, r.Until)
			reads--
		}
	}
	if reads > 0 {
		return 0 // one has run out
	}
	return end
}

// put gives an owner its field, or takes it away.
func (l *Lock) put(o Owner, c Counts) {
	i, found := slices.BinarySearchFunc(l.holders, o, func(h Holder, o Owner) int { return compare(h.Owner, o) })
	switch rest := l.holders[i:]; {
	case !found && c == Counts{}:
	case !found:
		l.holders = slices.Concat(l.holders[:i], []Holder{{o, c}}, rest)
	case c == Counts{}:
		l.holders = slices.Concat(l.holders[:i], rest[1:])
	default:
		l.holders = slices.Clone(l.holders)
		l.holders[i].Counts = c
	}
}

func compare(a, b Owner) int {
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Term, b.Term))
}

// setLease sets the key of the n-th read hold of an owner; 0 deletes it.
func (l *Lock) setLease(o Owner, n int, until core.Instant) {
	i, found := slices.BinarySearchFunc(l.leases, ReadLease{Owner: o, N: n}, func(a, b ReadLease) int {
		return cmp.Or(compare(a.Owner, b.Owner), cmp.Compare(a.N, b.N))
	})
	switch rest := l.leases[i:]; {
	case !found && until == 0:
	case !found:
		l.leases = slices.Concat(l.leases[:i], []ReadLease{{o, n, until}}, rest)
	case until == 0:
		l.leases = slices.Concat(l.leases[:i], rest[1:])
	default:
		l.leases = slices.Clone(l.leases)
		l.leases[i].Until = until
	}
}

// expire removes what has run out.
func (l *Lock) expire(now core.Instant) {
	if len(l.holders) > 0 && now >= l.expiresAt {
		l.holders = nil
	}
	if now >= l.writerUntil {
		l.writer = Owner{}
	}
	if l.queueEnds != 0 && now >= l.queueEnds {
		l.queue, l.queueEnds = nil, 0
	}
	over := func(r ReadLease) bool { return now >= r.Until }
	if slices.ContainsFunc(l.leases, over) {
		l.leases = slices.DeleteFunc(slices.Clone(l.leases), over)
	}
}

// ends tells when things will run out. Not when the queue does: all in it are dead long before.
func (l *Lock) ends(at func(core.Instant)) {
	if len(l.holders) > 0 {
		at(l.expiresAt)
	}
	if l.writer != (Owner{}) {
		at(l.writerUntil)
	}
	for _, r := range l.leases {
		at(r.Until)
	}
}

// pexpire sets the hash's TTL.
func (s *Server) pexpire(l *Lock, lease time.Duration) { l.expiresAt = s.end(lease) }

// pttl is the hash's TTL, in whole milliseconds: -2 without a hash.
func (s *Server) pttl(l *Lock) time.Duration {
	if l.Free() {
		return -2 * time.Millisecond
	}
	return s.left(l.expiresAt)
}

// some is the field that Redis names when it is asked for any.
func (s *Server) some(l *Lock) Field {
	if len(l.holders) == 0 {
		return Field{}
	}
	if h := l.holders[0]; len(l.holders) == 1 && (h.Exclusive == 0 || h.Shared == 0) {
		return Field{h.Owner, s.writes(l) && h.Exclusive > 0}
	}
	var fields []Field
	for _, h := range l.holders {
		if h.Shared > 0 {
			fields = append(fields, Field{Owner: h.Owner})
		}
		if h.Exclusive > 0 {
			fields = append(fields, Field{h.Owner, s.writes(l)})
		}
	}
	if s.setup.Pick == nil {
		return fields[0]
	}
	return fields[s.setup.Pick(fields)]
}

// writes reports whether a holder in the exclusive mode is spelt as a writer.
func (s *Server) writes(l *Lock) bool {
	for i := range s.parts {
		if l == &s.parts[i] {
			return s.setup.Kinds[i] >= ReadWrite
		}
	}
	return false
}

// refusal tells a client who holds the lock.
func (s *Server) refusal(c Client, l *Lock) core.Result {
	return s.refused(c, s.pttl(l), s.some(l))
}

func (s *Server) refused(c Client, ttl time.Duration, by Field) core.Result {
	r := core.Result{Outcome: core.Refused, TTL: ttl}
	if by.Owner == (Owner{}) {
		return r
	}
	if r.Holder = s.setup.Name(by.Owner); by.Write {
		r.Holder += ":write"
	}
	if by.Client == c {
		r.OwnTerm = by.Term
	}
	return r
}
