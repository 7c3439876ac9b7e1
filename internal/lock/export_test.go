package lock

import (
	"math"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
)

// Meanings are the meanings of the fields of a lock, for a digest of what can change its decisions. Tokens are left out,
// since the world compares them with those in Redis, and so are revisions, since it asks OrderChanged.
var Meanings = map[string]explore.Meaning{
	"Lock.features": explore.Skipped, "cfg": explore.Skipped, "Lock.now": explore.Skipped,
	"Effects.list": explore.Some, "Last": explore.Some, "buffer": explore.Skipped, "freeCommand": explore.Skipped, "ownsWork": explore.Skipped,
	"lost": explore.Skipped, "freeAt": explore.Skipped, // for the texts of answers
	"LastErr": explore.Some, "holder": explore.Some, "owners": explore.Some, "op.kind": explore.Kind,
	"tokens.highest": explore.Skipped, "hold.tokens": explore.Skipped, "tokens.last": explore.Skipped,
	"revision": explore.Skipped, "sentRevision": explore.Skipped,
	"term": explore.Term, "Term": explore.Term, "nextTerm": explore.Term, "op.next": explore.Term, "top": explore.Term,
	"seq": explore.Sequence, "staleBefore": explore.Sequence, "redisOrder.lastListed": explore.Sequence,
	"id": explore.Numbered, "ID": explore.Numbered,
	"op.hold": explore.Numbered, "countChange.hold": explore.Numbered, "ensure.hold": explore.Numbered, "extension.hold": explore.Numbered,
	"Lease": explore.Length, "MaxHold": explore.Length, "AtLeast": explore.Length, "lease": explore.Length, "length": explore.Length,
	"longest": explore.Length, "longestLease": explore.Length, "unanswered": explore.Length, "extends": explore.Length,
	"sentAt": explore.Age, "othersEnd": explore.Instant,
}

// Access for the explorations to the state of a lock.

// Detach makes a copy of a lock independent: appending to it, or taking an effect, does not change the original.
func (l *Lock) Detach() {
	taken := l.effects
	l.effects = machine.Effects{}
	for e := range taken.All() {
		l.effects.Add(e)
	}
	l.takeWork()
	l.ownsWork = false
	l.queue.Clip()
	l.pendingCounts, l.ensures, l.extensions = slices.Clip(l.pendingCounts), slices.Clip(l.ensures), slices.Clip(l.extensions)
	l.holds.others, l.background = slices.Clip(l.holds.others), slices.Clip(l.background)
}

// StaysWriter reports whether a writer that becomes a reader stays a writer in Redis, since a late command might
// make it a writer again.
func (l *Lock) StaysWriter() bool { return l.lease.modeMayChange(machine.Shared) }

// Seen returns the highest tokens that the lock has had.
func (l *Lock) Seen() []int64 { return l.tokens.highest }

// OrderChanged reports whether the waiters have changed since they were last sent to Redis.
func (l *Lock) OrderChanged() bool {
	q := l.queueInRedis()
	return q != nil && q.changed(l)
}

// LastSeq returns the number of the last command.
func (l *Lock) LastSeq() uint64 { return l.seq }

// EntryIndex returns the index of a command among those that are remembered for the entry; -1 if it is none of
// them.
func (l *Lock) EntryIndex(seq uint64) int64 {
	return int64(slices.IndexFunc(l.wait.sent, func(c confirmation) bool { return c.seq == seq }))
}

// Contends reports whether the process waits for other processes, and no command is under way.
func (l *Lock) Contends() bool {
	return l.phase == contending && l.main.kind == opNone && l.wait.Refused && !l.isDeferred()
}

// HasWaiter reports whether a request in the queue has that term.
func (l *Lock) HasWaiter(term uint64) bool { return l.waiterOf(term) != nil }

// NextTry returns the command that a try would send now, if the waiters sleep until the next try; nil if they do
// not, or if they wait because the last try has failed, or because the lock is left to others after a turn.
func (l *Lock) NextTry(now machine.Instant) *Command {
	afterTurn := l.isDeferred() && l.wait.cause == afterTurn
	if l.phase != contending || l.main.kind != opNone || l.queue.Len() == 0 || l.wait.LastErr != "" || afterTurn {
		return nil
	}
	try := *l
	try.takeWork()
	try.now = max(try.now, now)
	try.effects, try.freeCommand = machine.Effects{}, nil
	if try.nextTerm == 0 {
		try.nextTerm = math.MaxUint32
	}
	if try.attempt(); try.main.kind != opAcquire {
		return nil
	}
	var last machine.Effect
	for try.effects.Next(&last) {
	}
	return last.Ref.(*Command)
}

// KnowsTerm reports whether the lock holds, contends for or cleans up the lease of a term.
func (l *Lock) KnowsTerm(term uint64) bool {
	return l.phase != free && (l.lease.term == term || l.main.next == term) || l.waiterOf(term) != nil ||
		slices.ContainsFunc(l.background, func(o op) bool { return o.term == term })
}

// ReaderCouldJoin reports whether the first waiter could share the lease that this process holds, and no command
// for that is under way.
func (l *Lock) ReaderCouldJoin(now machine.Instant) bool {
	return l.queue.Len() > 0 && l.mayJoin(l.queue.Head()) && l.main.kind == opNone && l.renewal.kind == opNone &&
		!l.lease.turn.IsOver(now)
}

// Next returns the next effect, if there is one.
func (l *Lock) Next() (next machine.Effect, ok bool) {
	ok = l.NextEffect(&next)
	return next, ok
}

// Lingers reports whether the lease lingers without a hold.
func (l *Lock) Lingers() bool { return l.lingers() }
