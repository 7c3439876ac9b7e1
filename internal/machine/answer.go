package machine

import "time"

// AnswerKind is how a request ended.
type AnswerKind uint8

const (
	// Granted: HoldID has the lock, with hold count Count, until Until (or longer, if renewed).
	Granted AnswerKind = iota + 1
	// NotGranted: no lock, because of Reason.
	NotGranted
	// Freed: the release is confirmed, or the lock handed off; Count is the remaining hold count.
	Freed
	// NotFreed: the release failed, because of Reason.
	NotFreed
	// Withdrawn: Count waiting requests were cancelled.
	Withdrawn
	// ForceReleased: none of the owners holds the lock; Count is 1 if one of them held it.
	ForceReleased
	// Ensured: the lease is valid until Until.
	Ensured
	// Extended: the lease has another length, and is valid until Until.
	Extended
	// NotDone: a request that is neither an acquire nor a release failed, because of Reason.
	NotDone
	// Changed: a command that sets, adds, drains, reads or deletes what a synchronizer counts was carried out; Done and
	// N are what it replied.
	Changed
)

// Answer answers a request. Every request gets exactly one.
type Answer struct {
	Kind   AnswerKind
	HoldID uint64
	Count  int
	// Until is when the hold ends, unless it is renewed.
	Until Instant
	// Bound is an earlier end of the hold that no renewal moves, or 0.
	Bound Instant
	// FirstRef is the Ref of the hold's first request.
	FirstRef any
	Tokens   []int64
	// Permits are the permits of an expirable semaphore that were granted; nil for all else.
	Permits *Permits
	// HandedOff says that the lock was handed off inside this process.
	HandedOff bool
	// Transferred says that another process has transferred the lock.
	Transferred bool
	Reason      Reason
	// Noticed says that the release has found the hold lost: the holder was not notified before.
	Noticed bool
	// TTL is the rest of the other holder's lease when last seen; negative if not known.
	TTL    time.Duration
	Detail string
	// Done says, in answers about permits and the count of a latch, that something was set or given back.
	Done bool
	// N is, in these answers, how many there are, or were granted.
	N int64
}
