package lock

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// CommandKind is the operation of a Command.
type CommandKind uint8

// The operations; package scripts has a script for each.
const (
	Acquire CommandKind = iota + 1
	Release
	Renew
	Yield
	ForceRelease
	// Keep replaces the owner, and leaves the key to expire after Lease: no later command of the term changes it.
	Keep
	// CountWaiters counts the other clients that wait.
	CountWaiters
	// SyncQueue synchronises the queue in Redis, and takes the lock if a waiter of this process is next.
	SyncQueue
)

// Command is one script to run on the lock's key.
type Command struct {
	Kind CommandKind
	Seq  uint64
	// Term is the number in the owner field; for SyncQueue, the term to release, or 0.
	Term uint64
	// Count is the exclusive hold count to set. A Release with 0 for it and for Shared frees the lock.
	Count int
	// Shared is the shared hold count to set.
	Shared int
	Mode   machine.Mode
	Lease  time.Duration
	// Held says, for an Acquire, that the term has the lock: its count and its lease are set anew.
	Held bool
	// Entry is this process's entry in the wait queue, if its Term is not 0. An Acquire that is refused adds or confirms
	// it; a Yield that releases the lock adds it at the end.
	Entry Entry
	// Notified says that the process was notified of a release since the lock was left to foreign clients.
	Notified bool
	// Tokens is the number of fencing tokens to draw.
	Tokens int64
	// Above has, for each counter, the highest token that the lock has had; the drawn tokens must be higher. It is
	// empty before the first token.
	Above []int64
	// Entries are the waiters, in order.
	Entries []QueueEntry
	// Take lets SyncQueue take the lock.
	Take bool
	// Behind is the term that must hold the lock for new entries to join the queue without Take; 0 for no such condition.
	Behind uint64
	// Top is the highest term of this process's entries. The entries up to it that are not among Entries leave the queue.
	Top uint64
	// Owners are the owners that a ForceRelease is meant for; nil means the owners that hold the lock when Redis is
	// asked, and the owner of Term unless Term is 0.
	Owners []string
	// Forced makes a Yield release the lock even if no other client is seen to wait.
	Forced bool
	// Immediate sends a Renew at once, without waiting for others in the same script.
	Immediate bool
	// Deadline is the time at which the wait for the reply ends.
	Deadline machine.Instant
	// Latest is the time until which a late reply to a Renew is useful.
	Latest machine.Instant
	// MaxTTL is the longest time, from now, that a key of this term may exist in Redis, even if a command arrives late. It
	// bounds the cleanup; no script gets it. It is not an Instant, since each system of a RedLock has its own clock.
	MaxTTL time.Duration
}

// QueueEntry is a waiter's entry in the queue in Redis.
type QueueEntry struct {
	Term  uint64
	Lease time.Duration
	// Try takes the lock if it is free, and does not join the queue.
	Try bool
}

// Outcome is the outcome of a Command.
type Outcome uint8

const (
	// Done: the script succeeded. For Yield: it released the lock.
	Done Outcome = iota + 1
	// Renewed: Yield saw no waiter and renewed the lease.
	Renewed
	// Refused: another owner holds the lock.
	Refused
	// Absent: the owner does not hold the lock, or no longer.
	Absent
	// Failed: Redis refused, or did not answer.
	Failed
)

// Result is the outcome of a Command, with its details.
type Result struct {
	Outcome Outcome
	// Freed says, for SyncQueue, that its Term held the lock and has released it.
	Freed bool
	// Taken says, for Absent, that the key belongs to another owner instead of being gone.
	Taken bool
	// WasHeld reports, for ForceRelease, whether one of the owners held the lock.
	WasHeld bool
	// TTL is, for Refused, the rest of the other owner's lease; negative: no TTL.
	TTL time.Duration
	// Holder is, for Refused, the owner field.
	Holder string
	// OwnTerm is the term of that owner if it is this System's own, otherwise 0. For SyncQueue, Done says that OwnTerm has
	// taken the lock.
	OwnTerm uint64
	// Tokens are the highest tokens drawn, one per counter.
	Tokens []int64
	// Alone says, for an Acquire that is Done, that the wait queue was empty. A process that joins the queue later, or
	// tries once, asks the holder's process for the lock.
	Alone bool
	// Others is the number of other clients that Yield or CountWaiters saw waiting.
	Others int
	// Failure says, for Failed, why the command failed.
	machine.Failure
}

// Buffer is memory for a few effects and one command, which is enough for most events. Idle locks, of which there may
// be many, need none.
type Buffer struct {
	effects [4]machine.Effect
	command Command
}

// SetBuffer gives the lock a buffer, if it has none.
func (l *Lock) SetBuffer(b *Buffer) {
	if l.effects.Borrow(b.effects[:]) {
		l.buffer, l.freeCommand = b, &b.command
	}
}

// TakeBuffer takes the buffer back once all effects are taken and carried out, since their command is part of it. It
// returns nil before that, and if the buffer was too small.
func (l *Lock) TakeBuffer() *Buffer {
	if l.effects.Len() > 0 {
		return nil
	}
	b := l.buffer
	if l.effects.Room() != len(b.effects) {
		b = nil // its effects were copied to other memory, and it still refers to them
	}
	l.buffer, l.effects, l.freeCommand = nil, machine.Effects{}, nil
	return b
}

// NextEffect writes the next effect to e and removes it. It reports whether there was one.
func (l *Lock) NextEffect(e *machine.Effect) bool { return l.effects.Next(e) }

// answer ends a request, if ref is one, or the requests of machine.Refs.
func (l *Lock) answer(ref any, a machine.Answer) { l.effects.Answer(ref, a) }

// refuse ends a request for the lock.
func (l *Lock) refuse(ref any, reason machine.Reason, detail string) {
	l.answer(ref, machine.Answer{Kind: machine.NotGranted, Reason: reason, TTL: -1, Detail: detail})
}

// failIf refuses those requests about leases for which fails is true, and returns the others. If all stay, it makes no
// copy: each release calls it, and thousands of readers may await a renewal.
func failIf[R interface{ answerTo() any }](l *Lock, all []R, fails func(R) bool, reason machine.Reason, detail string) (stay []R) {
	first := slices.IndexFunc(all, fails)
	if first < 0 {
		return all
	}
	stay = append(stay, all[:first]...)
	for _, r := range all[first:] {
		if fails(r) {
			l.effects.Refuse(r.answerTo(), machine.NotDone, reason, detail)
		} else {
			stay = append(stay, r)
		}
	}
	return stay
}

func (e ensure) answerTo() any { return e.ref }

func (e extension) answerTo() any { return e.ref }
