package lock

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/requestqueue"
)

// phase is the state of the lease.
type phase uint8

const (
	// free: no local request wants the lock.
	free phase = iota
	// contending: a local request waits, and another process may have the lease.
	contending
	// owned: this process has the lease; a hold is granted, or about to be.
	owned
	// releasing: no local hold is left, and Redis has not yet confirmed the release.
	releasing
)

// Features are the properties of a kind of lock on which decisions depend.
type Features struct {
	// Tokens is the number of the lock's token counters. A hold draws from each of them if its request is fenced.
	Tokens int
	// Fair says that one queue in Redis has the waiters of all processes, and decides which is next.
	Fair bool
	// Shares says that the lock can be held in Shared mode.
	Shares bool
	// WaitQueue says that processes have a wait queue in Redis, and transfer the lock to each other.
	WaitQueue bool
	// Parts says that the lock consists of several locks. When one of them is lost, the others may still have to be
	// released.
	Parts bool
}

// Lock is the state of one lock in one process, with its decisions.
//
// It is a value: an event is applied to a copy, which then replaces the original in one assignment. An event that
// panics half way has therefore changed nothing. Data behind its pointers and slices is never changed, only replaced or
// appended to; an event begins with a copy of the work.
type Lock struct {
	cfg      *machine.Config
	features *Features
	now      machine.Instant
	// seq numbers the commands, so that a reply finds its command and no other.
	seq uint64
	// nextTerm is the number of the next term.
	nextTerm uint64
	phase    phase
	closing  bool
	// ownersMayRepeat says that an owner may have several requests in the queue.
	ownersMayRepeat bool
	// suspected says that the key may have been taken away, and no command was sent since that can reveal it.
	suspected bool
	// ownsWork says that no other copy of the lock has the same work.
	ownsWork bool
	// staleBefore is the last command before the last suspicion. A transfer that names it, or an earlier one, may come
	// from a server that is no longer the master.
	staleBefore uint64

	lease  lease
	holds  holds
	tokens tokens
	// queue contains the waiting requests.
	queue requestqueue.Queue[*waiter]
	// order decides which of them is next.
	order order
	// lastOwner is the highest owner seen.
	lastOwner machine.Owner

	*work
	// lost are the holds that were lost last, for the answer to a late Release.
	lost machine.Losses

	effects machine.Effects
	// buffer is memory for some effects and a command.
	buffer *Buffer
	// freeCommand is the command in buffer; nil while it is in use.
	freeCommand *Command
}

// New returns a free lock. Before every event, SetNextTerm must have given it a number higher than all terms that a
// lock of this name has had.
func New(cfg *machine.Config, features *Features) Lock {
	return Lock{
		cfg: cfg, features: features, tokens: tokens{counters: int32(features.Tokens)}, order: newOrder(features), work: noWork,
	}
}

// HasNextTerm reports whether the lock has the number of its next term.
func (l *Lock) HasNextTerm() bool { return l.nextTerm != 0 }

// SetNextTerm gives the lock the number of its next term.
func (l *Lock) SetNextTerm(term uint64) { l.nextTerm = term }

func (l *Lock) takeTerm() (term uint64) {
	term, l.nextTerm = l.nextTerm, 0
	return term
}

// beginTerm begins a term, or none if the number is 0. The term has neither a lease nor tokens yet.
func (l *Lock) beginTerm(number uint64) {
	l.lease = lease{term: number}
	l.tokens.endTerm()
}

// lease is the process's right to the key in Redis.
type lease struct {
	// term is the number in the owner field, fresh for every term.
	term uint64
	// length is the last TTL that was set.
	length time.Duration
	// longest is the longest TTL that any command of this term has asked for, whether or not it succeeded.
	longest time.Duration
	// counts are the hold counts in Redis.
	counts counts
	// mode is the intended mode.
	mode machine.Mode
	// fixed says that the lease has a fixed end, and the watchdog does not renew it.
	fixed bool
	// atRisk says that the last renewal has failed, and that the holders were warned.
	atRisk machine.AtRisk
	// transferred says that another process has transferred the lock, and no hold is granted yet.
	transferred bool
	// unansweredModes says, by mode, whether an unanswered command may still set that mode.
	unansweredModes [2]bool
	// unanswered is the shortest lease that an unanswered command may still set, so the term must not be used for a
	// longer lease.
	unanswered machine.Unanswered
	// until is the end of trust: when the last command that set the TTL was sent, plus the TTL, less the margin. The time
	// of the reply does not count.
	until machine.Instant
	// renewAt is the time of the next renewal by the watchdog.
	renewAt machine.Instant
	// lingerUntil is the time until which the lease may linger without a hold; 0 if it may not.
	lingerUntil machine.Instant
	// asked says that another process wants the lease.
	asked bool
	// lingering says that the lease is without a hold now.
	lingering bool
	// turn is the time in which the process may hand the lease off to its own waiters.
	turn machine.Turn
	sealing
}

// sealing is what the lock knows of other processes that wait while its readers share the lease.
type sealing struct {
	// sealed says that others wait, so no further reader may share the lease.
	sealed bool
	// recountAt is the time at which the process asks again whether others wait.
	recountAt machine.Instant
	// recounts is the number of times that it has asked.
	recounts int
}

// waiting is what the lock knows while it contends for a lease.
type waiting struct {
	contest
	// sent are the last commands that may have added or confirmed the entry in the wait queue.
	sent confirmations
	// transfer came while an acquire was under way; it is used after the reply to the acquire.
	transfer machine.Transfer
}

// contest is what the lock knows of its tries.
type contest struct {
	machine.Contest
	traces traces
	deferral
	// unconfirmed says that too few replicas have the lease of the last try.
	unconfirmed bool
	// holder is the owner that has the lock; "" if it is not known.
	holder string
	// freeAt is the time at which the holder's lease ends; 0 if it has no end.
	freeAt machine.Instant
}

// traces are what the tries of a term may have left in Redis.
type traces uint8

const (
	// untried: no try was sent.
	untried traces = iota
	// allRefused: all tries were refused. A refused try of a lock with parts releases what it took.
	allRefused
	// mayRemain: a try has failed, and may have been carried out all the same, or there may be an entry that is not in
	// waiting.sent.
	mayRemain
)

func (w *waiting) isZero() bool {
	return w.contest == contest{} && len(w.sent) == 0 && w.transfer.Term == 0
}

// countChange is a change of a hold's count: request adds one, and a release (request is nil) subtracts one.
type countChange struct {
	hold    uint64
	mode    machine.Mode
	request *waiter
	ref     any
	// until is the time at which a partial release is answered, whether it is confirmed or not.
	until machine.Instant
}

// ensure is a request for a lease that is valid for some time.
type ensure struct {
	hold uint64
	ref  any
	// until is the time until which the lease must be valid.
	until machine.Instant
	// by is the time by which the request is answered.
	by machine.Instant
}
