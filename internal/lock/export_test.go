package lock

import (
	"math"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Access for the explorations to the state of a lock.

// Encoder receives the state of a lock. The clients encode Refs.
type Encoder interface {
	Number(n int64)
	Bool(b bool)
	Instant(t machine.Instant)
	Age(t machine.Instant)
	Term(term uint64)
	Ref(ref any)
}

// Detach makes a copy of a lock independent: appending to it, or taking an effect, does not change the original.
func (l *Lock) Detach() {
	taken := l.effects
	l.effects = machine.Effects{}
	for e := range taken.All() {
		l.effects.Add(e)
	}
	l.queue.waiters.Clip()
	l.pendingCounts, l.ensures, l.extensions = slices.Clip(l.pendingCounts), slices.Clip(l.ensures), slices.Clip(l.extensions)
	l.holds.more, l.background = slices.Clip(l.holds.more), slices.Clip(l.background)
}

// StaysWriter reports whether a writer that becomes a reader stays a writer in Redis, since a late command might
// make it a writer again.
func (l *Lock) StaysWriter() bool { return l.modeMayChange(machine.Shared) }

// Seen returns the highest tokens that the lock has had.
func (l *Lock) Seen() []int64 { return l.seen }

// LastSeq returns the number of the last command.
func (l *Lock) LastSeq() uint64 { return l.seq }

// Encode writes all state that can change the decisions of the lock, except the numbers of its commands, which
// the jitter is computed from. newest is the highest term so far, and last the highest id of a request.
func (l *Lock) Encode(e Encoder, newest, last uint64) {
	x := encoding{e, l, newest, last}
	e.Number(int64(l.phase))
	e.Bool(l.closing)
	e.Bool(l.nextTerm != 0)
	e.Bool(l.repeats)
	e.Number(int64(l.lastOwner))
	e.Number(l.spent.given)
	e.Number(l.spent.drawn)
	e.Bool(l.spent.redrawn)
	e.Number(l.spent.before)
	x.lease(&l.lease)
	e.Number(int64(l.holds.len()))
	for own := range l.holds.all() {
		x.hold(&own)
	}
	e.Number(int64(l.queue.len()))
	for req := range l.queue.waiters.All() {
		x.request(req)
	}
	e.Instant(l.queue.nextDeadline())
	x.op(&l.main)
	x.op(&l.renewal)
	e.Bool(l.suspected)
	e.Number(int64(len(l.background)))
	for i := range l.background {
		x.op(&l.background[i])
	}
	e.Number(int64(len(l.late)))
	for _, t := range l.late {
		e.Number(int64(l.seq - t.seq))
		e.Term(t.term)
	}
	e.Number(int64(len(l.pendingCounts)))
	for _, c := range l.pendingCounts {
		e.Number(int64(last - c.hold))
		e.Number(int64(c.mode))
		x.request(c.request)
		x.Ref(c.ref)
		x.Instant(c.until)
	}
	e.Number(int64(len(l.extensions)))
	for _, a := range l.extensions {
		e.Number(int64(last - a.hold))
		e.Number(int64(a.lease))
		e.Instant(a.by)
	}
	x.waiting(&l.wait)
	e.Number(int64(l.sub.state))
	e.Term(l.sub.term)
	e.Number(int64(l.effects.Len()))
	if q, ok := l.order.(*redisOrder); ok {
		x.redisOrder(q)
	}
}

type encoding struct {
	Encoder
	l            *Lock
	newest, last uint64
}

func (x encoding) lease(l *lease) {
	x.Term(l.term)
	x.Number(int64(l.length))
	x.Number(int64(l.longest))
	x.Bool(l.fixed)
	x.counts(l.counts)
	x.Number(int64(l.mode))
	x.Bool(l.draining)
	x.Instant(l.recountAt)
	x.Number(int64(min(l.recounts, 10)))
	x.Number(l.tokens.left)
	x.Bool(l.tokens.fell)
	x.Instant(l.until)
	x.Instant(l.renewAt)
	x.Bool(l.atRisk)
	x.Instant(l.handOffUntil)
	x.Instant(l.nextForcedYield)
	x.Number(int64(l.unackedTTL))
	x.Bool(l.lateMode[machine.Exclusive])
	x.Bool(l.lateMode[machine.Shared])
	x.Instant(l.lingerUntil)
	x.Bool(l.asked)
	x.Bool(l.stays)
}

func (x encoding) counts(c counts) {
	x.Number(int64(c.exclusive))
	x.Number(int64(c.shared))
}

func (x encoding) hold(h *hold) {
	x.Number(int64(x.last - h.id))
	x.Ref(h.ref)
	x.counts(h.counts)
	x.Instant(h.leaseEnd)
	x.Instant(h.maxEnd)
	x.Bool(h.dead)
}

func (x encoding) request(req *waiter) {
	if req == nil {
		x.Ref(nil)
		return
	}
	x.Ref(req.Ref)
	x.Number(int64(x.last - req.ID))
	x.Term(req.term)
	x.Instant(req.Deadline)
}

func (x encoding) waiting(w *waiting) {
	x.Instant(w.nextAt)
	x.Bool(w.refusalIsStale)
	x.Bool(w.refused)
	x.Bool(w.unsure)
	x.Bool(w.tried)
	x.Number(int64(len(w.sent)))
	for _, p := range w.sent {
		x.Age(p.sentAt)
		x.Number(int64(p.mode))
		x.Number(p.tokens)
	}
	x.transfer(w.transfer)
	x.Bool(w.notified)
	x.Number(int64(w.turns))
	x.Instant(w.deferUntil)
	x.Bool(w.byRedis)
	x.Number(int64(min(w.tries, 10)))
	x.Bool(w.lastErr != "")
	x.Bool(w.holder != "")
}

func (x encoding) transfer(t machine.Transfer) {
	if x.Term(t.Term); t.Term != 0 {
		x.Number(x.l.EntryIndex(t.Seq))
	}
}

// EntryIndex returns the index of a command among those that are remembered for the entry; -1 if it is none of
// them.
func (l *Lock) EntryIndex(seq uint64) int64 {
	return int64(slices.IndexFunc(l.wait.sent, func(p queued) bool { return p.seq == seq }))
}

func (x encoding) redisOrder(q *redisOrder) {
	x.op(&q.op)
	x.Bool(q.changed(x.l))
	x.Bool(q.registered)
	x.Number(int64(q.longestLease))
	x.Number(int64(min(x.l.seq-q.last, 8)))
	x.Bool(q.again)
	x.Bool(q.unanswered)
	x.Instant(q.nextAt)
	x.Number(int64(x.newest - q.top))
}

func (x encoding) op(o *op) {
	x.Number(int64(o.kind))
	if o.kind == opNone {
		return
	}
	x.Number(int64(o.mode))
	x.Bool(o.fixed)
	x.Bool(o.unsure)
	x.Bool(o.immediate)
	x.Term(o.term)
	x.Term(o.next)
	x.counts(o.counts)
	x.Number(int64(o.lease))
	x.Number(int64(o.extends))
	x.Number(int64(x.last - o.hold))
	x.Number(int64(len(o.owners)))
	x.Number(int64(len(o.listed)))
	for _, entry := range o.listed {
		x.Term(entry.Term)
	}
	x.request(o.request)
	if several, ok := o.ref.(machine.Refs); ok {
		for _, one := range several {
			x.Ref(one)
		}
	}
	x.Ref(o.ref)
	if x.Bool(o.inFlight); o.inFlight {
		x.Number(int64(x.l.seq - o.seq))
		x.Age(o.sentAt)
	}
	x.Number(int64(len(o.earlier)))
	for _, t := range o.earlier {
		x.Number(int64(x.l.seq - t.seq))
		x.Age(t.sentAt)
		x.Number(int64(t.lease))
	}
	x.Instant(o.due)
	x.Number(int64(min(o.tries, 10)))
	x.Instant(o.until)
}

// Contends reports whether the process waits for other processes, and no command is under way.
func (l *Lock) Contends() bool {
	return l.phase == contending && l.main.kind == opNone && l.wait.refused && !l.isDeferred()
}

// HasWaiter reports whether a request in the queue has that term.
func (l *Lock) HasWaiter(term uint64) bool { return l.queue.byTerm(term) != nil }

// NextTry returns the command that a try would send now, if the waiters sleep until the next try; nil if they do
// not, or if they wait because the last try has failed, or because the lock is left to others after a turn.
func (l *Lock) NextTry(now machine.Instant) *Command {
	afterTurn := l.isDeferred() && !l.wait.byRedis
	if l.phase != contending || l.main.kind != opNone || l.queue.len() == 0 || l.wait.lastErr != "" || afterTurn {
		return nil
	}
	try := *l
	try.order, try.now = try.order.clone(), max(try.now, now)
	try.effects, try.spare = machine.Effects{}, nil
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
	return l.phase != free && (l.lease.term == term || l.main.next == term) || l.queue.byTerm(term) != nil ||
		slices.ContainsFunc(l.background, func(o op) bool { return o.term == term })
}

// ReaderCouldJoin reports whether the first waiter could share the lease that this process holds, and no command
// for that is under way.
func (l *Lock) ReaderCouldJoin(now machine.Instant) bool {
	return l.queue.len() > 0 && l.mayJoin(l.queue.head()) && l.main.kind == opNone && l.renewal.kind == opNone &&
		now < l.lease.handOffUntil
}

// Effects returns the next effect, if there is one.
func (l *Lock) Effects() (next machine.Effect, ok bool) {
	ok = l.NextEffect(&next)
	return next, ok
}

// Lingers reports whether the lease stays without a hold.
func (l *Lock) Lingers() bool { return l.lingers() }
