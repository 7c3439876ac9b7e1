package semaphore

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/requestqueue"
)

// Pool is the state of one semaphore or latch in one process, with its decisions.
//
// It is a value: an event is applied to a copy, which then replaces the original in one assignment. An event that
// panics half way has therefore changed nothing. Data behind its slices is never changed, only replaced or appended to.
type Pool struct {
	cfg *machine.Config
	// counter is what Redis counts: permits, or the count of a latch.
	counter counter
	// now is the time of the last event.
	now Instant

	// queue has the requests that wait.
	queue requestqueue.Queue[*Request]
	// pendingReturns are the permits to be given back.
	pendingReturns []permitReturn
	// changes are the requests for commands that do not wait for permits.
	changes []Change
	// rejects are the returns that Redis has rejected.
	rejects rejectedReturns

	// op is the command under way.
	op op
	// lastKind is the kind of the last op, since the kinds take turns.
	lastKind opKind
	// lastNumber is the number of the last command, 0 before the first.
	lastNumber uint64
	// nextNumber is the number of the next command; 0 until SetNextNumber gives it.
	nextNumber uint64
	// mayArrive says that an earlier command, or a copy of the last one, may still arrive.
	mayArrive bool

	// entryN is the number of permits that the entry of the process in the wait queue wants; 0 if it has none.
	entryN int
	wait   waiting
	// turn is the time in which permits are handed off within the process; zero if no turn is running.
	turn machine.Turn
	// sub is the subscription to the channel.
	sub machine.Subscription

	// closing says that no request gets permits.
	closing bool
	// abandonAt is the time at which a pool that closes gives up what Redis has not confirmed.
	abandonAt Instant

	effects machine.Effects
}

// waiting is what the pool knows while it contends for permits.
type waiting struct {
	machine.Contest
	// deferUntil is the time until which the process leaves the permits to others, and does not try.
	deferUntil Instant
}

// Request asks for permits. Of machine.Request, the fields ID, Owner, Try, Deadline and Ref have the same meaning here.
type Request struct {
	machine.Request
	// N is the number of permits that the request wants, from 1.
	N int
}

// permitReturn are permits that are to be given back, or a count-down.
type permitReturn struct {
	// n is negative if a Drain has set a negative number to zero.
	n int
	// id is the id of a count-down; empty if it has none. See CountDown.
	id string
	// ifExists says that the request is not refused if there is no semaphore.
	ifExists bool
	// ref is the request that gives the permits back; nil if it is answered, or if there is none.
	ref any
	// answerBy is the time by which the request is answered in any case.
	answerBy Instant
	// forgetAt is the time at which the return is given up; 0 before Redis has rejected it.
	forgetAt Instant
}

// Change is a request for a command that does not wait for permits.
type Change struct {
	// Kind is Add, Set, Drain, Delete or Inspect.
	Kind CommandKind
	// N is the number of permits, or the count that a latch gets.
	N int64
	// TTL is the TTL that Set sets; 0 for none.
	TTL time.Duration
	// Ref identifies the request to the actor; nil once it is answered.
	Ref any
	// answerBy is the time by which the request is answered in any case; 0 once it is answered.
	answerBy Instant
}

// New returns the pool of a semaphore without requests. Before every event, SetNextNumber must have given it a higher
// number than all commands about that name have had.
func New(cfg *machine.Config) Pool { return Pool{cfg: cfg, counter: permits{}} }

// HasNextNumber reports whether the pool has the number of its next command.
func (p *Pool) HasNextNumber() bool { return p.nextNumber != 0 }

// SetNextNumber gives the pool the number of its next command.
func (p *Pool) SetNextNumber(n uint64) { p.nextNumber = n }

// Idle reports whether no request awaits an answer, nothing has to be given back, and Redis has nothing of the waiters.
func (p *Pool) Idle() bool {
	return p.op.kind == opNone && p.queue.Len() == 0 &&
		len(p.pendingReturns)+len(p.rejects.returns)+len(p.changes) == 0 &&
		p.entryN == 0 && p.sub.State == machine.Unsubscribed
}

// Sent returns the number of the last command, 0 before the first; certain says that no command that was sent is still
// on its way.
func (p *Pool) Sent() (number uint64, certain bool) {
	return p.lastNumber, !p.mayArrive && p.op.kind == opNone
}

// FirstWaiter returns the Ref of the first request that waits; nil if none does.
func (p *Pool) FirstWaiter() any {
	if p.queue.Len() == 0 {
		return nil
	}
	return p.queue.Head().Ref
}

// Summary implements machine.Machine. A Pool has no holds.
func (p *Pool) Summary() machine.Summary {
	return machine.Summary{Waiters: p.queue.Len(), FirstRef: p.FirstWaiter()}
}

// Snapshot implements machine.Machine.
func (p *Pool) Snapshot() machine.Snapshot { return machine.Snapshot{Waiters: p.queue.Len()} }

// Outstanding returns none, since Stop and Abandon answer all requests.
func (p *Pool) Outstanding() (holders []machine.Holder, pending []any) { return nil, nil }
