package semaphore

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/requestqueue"
)

// Pool is the state of the permits of one synchronizer in one process, with its decisions.
//
// It is a value: an event is applied to a copy, which then replaces the original in one assignment.
// An event that panics half way has therefore changed nothing. Data behind its slices is never
// changed, only replaced or appended to.
type Pool struct {
	cfg *machine.Config
	// latch: it is the count of a latch; see NewLatch.
	latch bool
	now   Instant
	// nextNumber is the number of the next command.
	nextNumber uint64

	queue requestqueue.Queue[*Request]
	// pendingReturns are the permits to be given back, and changes the commands that wait for their turn.
	pendingReturns []permitReturn
	changes        []Change
	rejects        rejectedReturns
	call           call
	// sent is the number of the last command, 0 before the first. mayArrive: a command, or a copy of it, may
	// still arrive.
	sent      uint64
	mayArrive bool

	wait waiting
	turn turn
	sub  machine.Subscription
	// closing: no request gets permits any more; from closeAt on nothing is awaited.
	closing bool
	closeAt Instant

	effects machine.Effects
}

// waiting is what the pool knows while it contends for permits.
type waiting struct {
	// nextAt is the time of the next try if no message comes before.
	nextAt Instant
	// deferUntil: until then the process leaves the permits to others, and does not try.
	deferUntil Instant
	// again: a message came while a Take was under way, so its refusal may be stale.
	again bool
	// refused: the last try has found too few permits for the head, so the channel is of interest.
	refused bool
	// free is the last known number of free permits.
	free    int64
	tries   int
	lastErr string
}

// turn is a time in which permits are handed off within the process.
type turn struct {
	running bool
	// until is the end of the turn: permits that come back later are given back with a Yield. From nextForcedYield on,
	// a Yield gives them back even if no waiter is seen; 0 if no turn is running.
	until, nextForcedYield Instant
}

// New returns a pool without requests. Before every event, SetNextNumber must have given
// it a number higher than those of all commands about that name before.
func New(cfg *machine.Config) Pool { return Pool{cfg: cfg} }

// HasNextNumber reports whether the pool has the number of its next command.
func (p *Pool) HasNextNumber() bool { return p.nextNumber != 0 }

// SetNextNumber gives the pool the number of its next command.
func (p *Pool) SetNextNumber(n uint64) { p.nextNumber = n }

// Idle reports whether no request awaits an answer, and nothing has to be given back.
func (p *Pool) Idle() bool {
	return p.call.kind == 0 && p.queue.Len() == 0 && len(p.pendingReturns)+len(p.rejects.returns)+len(p.changes) == 0
}

// Sent returns the number of the last command, 0 before the first; certain: none that was sent is still on its way.
func (p *Pool) Sent() (number uint64, certain bool) {
	return p.sent, !p.mayArrive && p.call.kind == 0
}

// Waiters returns how many requests wait for permits.
func (p *Pool) Waiters() int { return p.queue.Len() }

// FirstWaiter returns the Ref of the first request that waits; nil if none does.
func (p *Pool) FirstWaiter() any {
	if p.queue.Len() == 0 {
		return nil
	}
	return p.queue.Head().Ref
}

// Signal says that a message came on the channel: there may be permits.
func (p *Pool) Signal(now Instant) {
	p.begin(now)
	defer p.settle()
	p.wait.again = true
	p.trySoon()
}

// Subscribed says that no message is missed from now on.
func (p *Pool) Subscribed(now Instant) {
	p.begin(now)
	defer p.settle()
	if p.sub.Confirm() {
		p.wait.again = true
		p.trySoon()
	}
}

// Tick says that time has passed.
func (p *Pool) Tick(now Instant) {
	p.begin(now)
	p.settle()
}

// begin opens an event: time may have ended something before it.
func (p *Pool) begin(now Instant) {
	p.now = max(p.now, now)
	p.dropExpired()
	p.overdue()
}

// settle closes an event: it begins what can be done next.
func (p *Pool) settle() {
	p.handOff()
	if p.queue.Len() == 0 { // the turn goes on: each hand-off to the only waiter empties the queue for a moment
		p.wait = waiting{deferUntil: p.wait.deferUntil, nextAt: p.wait.deferUntil}
	} else if p.wait.free >= int64(p.queue.Head().N) {
		p.trySoon()
	}
	p.proceed()
	p.sub.Follow(p.queue.Len() > 0, p.wait.refused, &p.effects)
}

// proceed sends the next command, if there is one to send.
func (p *Pool) proceed() {
	if p.call.kind != 0 {
		if p.call.Rejected() && !p.call.InFlight && p.awaited() { // the requests that wait are refused soon, or go on
			p.send()
		}
		return
	}
	if len(p.rejects.returns) > 0 && p.now >= p.givesAgainAt() {
		// in a separate command, since Redis may reject these returns and accept others
		p.rejects.returns = p.give(p.rejects.returns)
		return
	}
	for i := range works {
		switch next := (p.call.after + 1 + i) % works; {
		case next == giving && len(p.pendingReturns) > 0:
			p.pendingReturns = p.give(p.pendingReturns)
			return
		case next == changing && len(p.changes) > 0:
			p.change()
			return
		case next == taking && p.queue.Len() > 0 && p.now >= p.wait.nextAt && !(p.latch && len(p.pendingReturns) > 0):
			p.take() // a count-down tells the waiters of a latch as much
			return
		}
	}
}

// awaited reports whether requests wait for the end of the command under way.
func (p *Pool) awaited() bool {
	return p.queue.Len() > 0 || len(p.changes) > 0 || firstUntil(p.pendingReturns) > 0
}

// NextWake returns when the pool needs its next Tick, unless another event comes first.
func (p *Pool) NextWake() (at Instant, ok bool) {
	wake := func(t Instant) {
		if t > 0 && (!ok || t < at) {
			at, ok = t, true
		}
	}
	wake(p.queue.NextDeadline())
	if p.call.kind != 0 {
		wake(p.call.Due)
		wake(p.call.change.until)
	} else {
		if p.queue.Len() > 0 {
			wake(p.wait.nextAt)
		}
		if len(p.rejects.returns) > 0 {
			wake(p.givesAgainAt())
		}
	}
	if len(p.changes) > 0 {
		wake(p.changes[0].until)
	}
	wake(firstUntil(p.pendingReturns))
	wake(firstUntil(p.call.returns))
	if !p.Idle() {
		wake(p.closeAt)
	}
	return at, ok
}

func (p *Pool) jitter(d time.Duration) time.Duration {
	return p.cfg.Jitter(d, p.nextNumber+uint64(p.call.Tries))
}
