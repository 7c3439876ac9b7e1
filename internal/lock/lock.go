package lock

import "time"

// phase is the state of the lease.
type phase uint8

const (
	// free: no local request wants the lock.
	free phase = iota
	// contending: a local request waits, and the lease is not ours.
	contending
	// owned: the lease is ours; a hold is granted, or about to be.
	owned
	// releasing: no local hold is left, and Redis has not yet confirmed the release.
	releasing
)

// Kind is the properties of a kind of lock that its decisions depend on.
type Kind struct {
	// Tokens is the number of the lock's token counters. A hold draws from each of them if its
	// request is fenced.
	Tokens int
	// Queued: one queue in Redis has all waiters, and decides who is next.
	Queued bool
	// Shares: the lock can be held in Shared mode.
	Shares bool
	// Line: processes wait in a line in Redis, and transfer the lock to each other.
	WaitQueue bool
	// Parts: the lock consists of several. When one of them is lost, the others may still have
	// to be released.
	Parts bool
}

// Lock is the state of one lock in one process, with its decisions.
//
// It is a value: an event is applied to a copy, which then replaces the original in one
// assignment. An event that panics half way has therefore changed nothing. Data behind its
// pointers and slices is never changed, only replaced or appended to.
type Lock struct {
	cfg  *Config
	kind *Kind
	now  Instant
	// seq numbers the commands, so that a reply finds its command and no other.
	seq uint64
	// nextTerm is the number of the next term.
	nextTerm uint64
	phase    phase
	closing  bool
	// repeats: an owner may have several requests in the queue.
	repeats bool
	// suspected: the key may have been taken away, and no command sent since can reveal it.
	suspected bool
	// doubted is the last command before the last suspicion. A transfer that names one so old may be
	// that of a server that is the master no more.
	staleBefore uint64

	// seen are the highest tokens that it has had, and spent is what the last turns needed.
	seen  []int64
	spent spending

	lease lease
	holds holds
	// queue are those who wait, and order says who of them is next.
	queue queue
	order order
	// lastOwner is the highest owner seen.
	lastOwner Owner

	// main is the command under way about the lease itself, and renewal the watchdog's
	// beside it.
	main    op
	renewal op
	// background are commands that do not concern the present term: releases of terms
	// that are over, and forced releases.
	background []op
	// pendingCounts are changes of the counts that wait until main is free, and ensures what
	// waits for a renewal.
	pendingCounts []countChange
	ensures       []ensure

	wait waiting
	sub  subscription
	// lost are the holds that were lost last, to explain it to a late Release.
	lost loss

	effects []Effect
	taken   int
	// spare is memory of the buffer for a command, nil when it is used.
	buffer *Buffer
	spare  *Command
}

// New returns a free lock. Before every event, SetNextTerm must have given it a number higher
// than all terms that a lock of this name has had.
func New(cfg *Config, kind *Kind) Lock {
	l := Lock{cfg: cfg, kind: kind, order: localOrder{}}
	if kind.Queued {
		l.order = &redisOrder{}
	}
	return l
}

// HasNextTerm reports whether the lock has the number of its next term.
func (l *Lock) HasNextTerm() bool { return l.nextTerm != 0 }

// SetNextTerm gives the lock the number of its next term.
func (l *Lock) SetNextTerm(term uint64) { l.nextTerm = term }

func (l *Lock) takeTerm() (term uint64) {
	term, l.nextTerm = l.nextTerm, 0
	return term
}

// lease is the process's right to the key in Redis.
type lease struct {
	// term is the number in the owner field, fresh for every term.
	term uint64
	// length is the TTL it was last given.
	length time.Duration
	// longest is the longest TTL that a command of this term has asked for, whatever
	// became of it.
	longest time.Duration
	// counts is how it is held in Redis, and mode how it is meant to be held.
	counts counts
	mode   Mode
	// fixed: it is not renewed.
	fixed bool
	// atRisk: the last renewal has failed, and the holders are notified.
	atRisk bool
	// transferred: another process has transferred it, and it is not granted yet.
	transferred bool
	// lateMode: a command that was given up may still make it exclusive, or shared; by that mode.
	lateMode [2]bool
	// unackedTTL is the shortest TTL that such a command may still set; 0 if there is none.
	unackedTTL time.Duration
	tokens     tokens
	// until is for how long the lease is trusted: from when the last command that
	// set the TTL was sent, never from when its reply came, and less the margin.
	until   Instant
	renewAt Instant
	turn
}

// turn is for how long the process may pass the lease on among its own waiters.
type turn struct {
	// handOffUntil is when it must ask whether other processes wait; forcedYieldAt is when it
	// must release the lock even if none is seen to wait.
	handOffUntil  Instant
	forcedYieldAt Instant
	// draining: others wait, so that no further reader may share the lease; recountAt is when to
	// ask whether they still do, after so many recounts.
	draining  bool
	recountAt Instant
	recounts  int
}

// waiting is what the lock knows while it contends for a lease.
type waiting struct {
	// nextAt is when to try next if no message comes before.
	nextAt Instant
	// again: a message came while an acquire was under way, so its refusal may be stale.
	refusalIsStale bool
	// refused: somebody else holds the lock, so its channel is of interest.
	refused bool
	// unsure: a try of this term may have been carried out though it seemed to fail.
	unsure bool
	// tried: a try of this term has ended; of several parts, what it took was given back.
	tried bool
	// sent are the last commands that may have given the process its place in the line.
	sent []queued
	// transfer came while an acquire was under way, whose reply is awaited first.
	transfer Transfer
	deferral
	tries int
	// What the last try found; unconfirmed: a lease that too few replicas have.
	lastErr     string
	unconfirmed bool
	holder      string
	freeAt      Instant
	noTTL       bool
}

// standBack leaves the lock to others: the process does not try before deferUntil, or before so
// many messages have come. heard: they have come. bidden: Redis has said so, and refuses a try before; else
// the process has just had its turn.
type deferral struct {
	turns             int
	deferUntil        Instant
	notified, byRedis bool
}

// subscription is how the lock stands to its channel. Where the queue is in Redis,
// every waiter there has a channel of its own, and term is whose it is.
type subscription struct {
	state subscriptionState
	term  uint64
	// until is when it ends though there is no waiter any more; 0 while there is.
	until Instant
}

type subscriptionState uint8

const (
	unsubscribed subscriptionState = iota
	requested
	listening
)

// countChange is a change of a hold's count that its holder has asked for: one more, for
// request, or one less.
type countChange struct {
	hold    uint64
	mode    Mode
	request *Request
	ref     any
	// until is when a partial release is answered, confirmed or not.
	until Instant
}

// ensure is a request that a hold's lease be good until some time.
type ensure struct {
	hold  uint64
	ref   any
	until Instant
}

// loss says which holds were lost, and why.
type loss struct {
	ids    []uint64
	reason Reason
}

// mostLost bounds how many are remembered.
const maxLost = 100

// add takes note of one more; what was lost for another reason before is forgotten.
func (l *loss) add(id uint64, reason Reason) {
	if l.reason != reason || len(l.ids) == maxLost {
		*l = loss{reason: reason}
	}
	l.ids = append(l.ids, id)
}
