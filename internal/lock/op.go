package lock

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// opKind says what an op is for.
type opKind uint8

const (
	opNone opKind = iota
	// opAcquire contends for a new term.
	opAcquire
	// opGrant sets count and lease for the next local waiter, before it is granted.
	opGrant
	// opCount sets the hold count: a re-entry or a partial release.
	opCount
	// opYield ends a turn at the hand-off limit.
	opYield
	// opRelease frees the lock.
	opRelease
	// opKeep leaves the key to expire after the minimum time of a hold that has ended.
	opKeep
	// opRenew renews the lease.
	opRenew
	// opExtend gives the lease another length, and makes it a fixed one or one of the watchdog.
	opExtend
	// opForce frees the lock of the named owners, which may be foreign clients.
	opForce
	// opCountWaiters asks whether others wait.
	opCountWaiters
	// opSyncQueue brings the queue in Redis up to date.
	opSyncQueue
)

// operation contains the functions that differ between the kinds of ops. The functions of a kind are in the file of its
// subject.
type operation struct {
	// command fills in the Command.
	command func(*Lock, *op, *Command)
	// replied handles the reply to an op that is main; nil for kinds that are never main.
	replied func(*Lock, op, Result)
	// timeout returns how long the reply is awaited; nil for CallTimeout.
	timeout func(*Lock, *op) time.Duration
}

// ops contains the operation of each kind.
var ops [opSyncQueue + 1]operation

// The functions in ops read ops when they send another command, so an initial value at its declaration would be a
// cycle.
func init() {
	ops = [...]operation{
		opAcquire:      {command: (*Lock).acquireCommand, replied: (*Lock).acquireReplied},
		opGrant:        {command: (*Lock).acquireCommand, replied: (*Lock).grantReplied},
		opCount:        {command: (*Lock).countCommand, replied: (*Lock).countReplied},
		opYield:        {command: (*Lock).yieldCommand, replied: (*Lock).yieldReplied},
		opRelease:      {command: (*Lock).releaseCommand, replied: (*Lock).releaseReplied},
		opKeep:         {command: (*Lock).keepCommand, replied: (*Lock).releaseReplied},
		opRenew:        {command: (*Lock).renewCommand, timeout: (*Lock).renewTimeout},
		opExtend:       {command: (*Lock).extendCommand, replied: (*Lock).extendReplied, timeout: (*Lock).extendTimeout},
		opForce:        {command: (*Lock).forceCommand, timeout: (*Lock).forceTimeout},
		opCountWaiters: {command: (*Lock).countWaitersCommand, replied: (*Lock).countWaitersReplied},
		opSyncQueue:    {command: (*Lock).syncCommand},
	}
}

// op is a command under way: it is sent, and sent again, until its outcome is known or does not matter.
type op struct {
	kind opKind
	machine.Sending
	seq    uint64
	sentAt machine.Instant
	// until ends the tries of a background op, or the wait for a partial release or an extension. By then, a key without a
	// minimum time has expired.
	until machine.Instant

	// term is the term whose lease the command sets. For a forced release, it is the term of the local holders that the
	// release has ended, or 0.
	term uint64
	mode machine.Mode
	// counts are the hold counts that the command sets.
	counts counts
	// lease is the TTL that the command sets.
	lease time.Duration
	// fixed says that the lease is not renewed.
	fixed bool

	// request is the request that gets a lease or a re-entry.
	request *waiter
	// ref is the request that awaits a release or an extension.
	ref any
	// hold is the hold whose counts or lease change.
	hold uint64
	// newest is the id of the last waiter when the op began.
	newest uint64

	particulars
}

// particulars are the fields that only some commands need.
type particulars struct {
	// draws is the number of tokens that an acquire draws.
	draws int64
	// listed are the entries of a fair lock's waiters.
	listed []QueueEntry
	// next is the term of the entry that a yield adds to the wait queue.
	next uint64
	// extends is, for an extension, the fixed lease that the hold gets; 0 for none.
	extends time.Duration
	// keepUntil is the end of a minimum time.
	keepUntil machine.Instant
	// owners are the owners that a forced release is meant for.
	owners []string
	// keyEnds is the latest end of the key of the holds that a forced release has ended.
	keyEnds machine.Instant
}

// joins reports whether the op lets one more reader share the lease.
func (o *op) joins() bool { return o.kind == opCount && o.request != nil && o.hold == 0 }

// start makes a command the main one and sends it.
func (l *Lock) start(o op) {
	o.term = l.lease.term
	l.main = o
	l.send(&l.main)
}

// inBackground starts a command in addition to the main one.
func (l *Lock) inBackground(o op) {
	l.background = append(slices.Clone(l.background), o)
	l.send(&l.background[len(l.background)-1])
}

// send issues the op's command, for the first time or again.
func (l *Lock) send(o *op) {
	c := l.freeCommand
	if c == nil {
		c = new(Command)
	}
	*c, l.freeCommand = Command{}, nil
	l.effects.Add(machine.Effect{Kind: machine.Send, Ref: c})
	ops[o.kind].command(l, o, c)
	if o.term != 0 && o.term == l.lease.term && o.kind != opRelease { // which sets no TTL
		l.lease.longest = max(l.lease.longest, o.lease)
	}
	l.seq++
	o.seq, o.sentAt = l.seq, l.now
	timeout := l.cfg.CallTimeout // not shortened for a short lease: over a slow link every try would time out
	if shorter := ops[o.kind].timeout; shorter != nil {
		timeout = shorter(l, o)
	}
	c.Seq, c.Term, c.Mode, c.Count, c.Shared = o.seq, o.term, o.mode, o.counts.exclusive, o.counts.shared
	c.Lease, c.Deadline, c.MaxTTL = o.lease, l.now+timeout, max(c.MaxTTL, l.maxTTL())
	o.Sent(c.Deadline)
	if o.kind == opRenew {
		c.Latest = max(l.lease.until, c.Deadline)
	}
	if c.Entry.Term != 0 {
		l.noteEntrySent(o, c)
	}
	if q := l.queueInRedis(); q != nil {
		q.register(l, o, c)
	}
}

// retryLater schedules another try after a failure.
func (l *Lock) retryLater(o *op, r Result) {
	o.Failed(l.now, r.Failure, l.backoff(o.Tries, o.lease))
	if r.Unsure {
		l.noteUnansweredTry(o)
	}
}

// backoff returns the pause before a command about a lease of that length is sent again.
func (l *Lock) backoff(tries int, lease time.Duration) time.Duration {
	return l.jitter(machine.Backoff(tries, lease, lease/6))
}

// waitersBackoff returns the pause before the next try to get a lease of that length. There is no lease yet that could
// end, so the pause may grow longer than the lease.
func (l *Lock) waitersBackoff(tries int, lease time.Duration) time.Duration {
	return l.jitter(machine.Backoff(tries, lease, l.cfg.Watchdog/6))
}

func (l *Lock) jitter(d time.Duration) time.Duration { return l.cfg.Jitter(d, l.seq) }

// cleaning reports whether a background command is on its way.
func (l *Lock) cleaning() bool {
	return slices.ContainsFunc(l.background, func(o op) bool { return o.InFlight })
}

// opFor returns a command that takes or sets a lease as a request wants it.
func (l *Lock) opFor(kind opKind, req *waiter) op {
	o := op{kind: kind, mode: req.Mode, counts: once(req.Mode), request: req, newest: l.queue.LastID()}
	o.lease, o.fixed = l.leaseOf(req)
	return o
}

// leaseOf returns the length of the lease that a request wants, and whether it is fixed.
func (l *Lock) leaseOf(req *waiter) (length time.Duration, fixed bool) {
	if req.Lease > 0 {
		return req.Lease, true
	}
	return l.cfg.Watchdog, false
}
