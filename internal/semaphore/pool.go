package semaphore

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/requestqueue"
)

// Pool is the state of one semaphore or latch in one process, with its decisions.
//
// It is a value: an event is applied to a copy, which then replaces the original in one assignment.
// An event that panics half way has therefore changed nothing. Data behind its slices is never
// changed, only replaced or appended to.
type Pool struct {
	cfg *machine.Config
	// counter is what Redis counts: permits, or the count of a latch.
	counter counter
	now     Instant
	// nextNumber is the number of the next command.
	nextNumber uint64

	// queue has the requests that wait.
	queue requestqueue.Queue[*Request]
	// pendingReturns are the permits to be given back.
	pendingReturns []permitReturn
	// changes are the requests for commands that do not wait for permits.
	changes []Change
	rejects rejectedReturns
	op      op
	// sent is the number of the last command, 0 before the first.
	sent uint64
	// mayArrive says that a command, or a copy of it, may still arrive.
	mayArrive bool

	// entry is how many permits the entry of the process in the wait queue waits for; 0 if it has none.
	entry int
	wait  waiting
	// turn is the time in which permits are handed off within the process; zero if no turn is running.
	turn machine.Turn
	sub  machine.Subscription
	// closing says that no request gets permits.
	closing bool
	// closeAt is the time from which nothing is awaited.
	closeAt Instant

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
	// until is the time by which the request is answered in any case.
	until Instant
	// forgetAt is the time at which the return is given up; 0 before Redis has rejected it.
	forgetAt Instant
}

// rejectedReturns are returns that no request awaits, and that Redis has rejected. Their command had no effect, so
// other commands may be sent before the returns are given back again.
type rejectedReturns struct {
	returns []permitReturn
	// nextAt is the time of the next try if no request waits.
	nextAt Instant
	// triedAt is the time of the last rejection.
	triedAt Instant
	// tries counts the rejections: the pauses grow with it.
	tries int
}

// Change is a request for a command that does not wait for permits.
type Change struct {
	Kind CommandKind
	// N is the number of permits.
	N int64
	// TTL is the TTL that Set sets; 0 for none.
	TTL time.Duration
	// Ref identifies the request to the actor.
	Ref any
	// until is the time by which the request is answered in any case.
	until Instant
}

// op is the command under way: it is sent, and sent again, until its outcome is known or does not
// matter.
type op struct {
	// kind is 0 if there is no command under way.
	kind    CommandKind
	command Command
	machine.Sending
	// began is the time of the first try.
	began Instant
	// until ends the tries.
	until Instant
	// expired says that the tries have ended.
	expired bool
	// reported says that it is in the log that Redis rejected the command.
	reported bool

	// returns are what a Give or a Yield gives back.
	returns []permitReturn
	// change is the request of a command that is a Change.
	change Change
	// last is the id of the last request that the command may serve.
	last uint64
	// newest is the id of the last request that had come when the command was sent.
	newest uint64
	// leaves says that the command only removes the entry from the wait queue; see leave.
	leaves bool
	// lastWork is the work of the last command. It outlasts the op.
	lastWork work
}

// work is what a command does. There may always be more of each, so they take turns.
type work uint8

const (
	takes work = iota
	returns
	changes
	// numWorks is the number of the kinds above.
	numWorks
)

// work returns what the command does.
func (c *op) work() work {
	switch c.kind {
	case Take:
		return takes
	case Give, Yield:
		return returns
	}
	return changes
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
	return p.op.kind == 0 && p.queue.Len() == 0 && len(p.pendingReturns)+len(p.rejects.returns)+len(p.changes) == 0 &&
		p.entry == 0 && p.sub.State == machine.Unsubscribed
}

// Sent returns the number of the last command, 0 before the first; certain says that no command that was sent is still
// on its way.
func (p *Pool) Sent() (number uint64, certain bool) {
	return p.sent, !p.mayArrive && p.op.kind == 0
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

func (p *Pool) jitter(d time.Duration) time.Duration {
	return p.cfg.Jitter(d, p.nextNumber+uint64(p.op.Tries))
}
