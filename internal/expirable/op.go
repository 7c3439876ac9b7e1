package expirable

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// operation is what the kinds of commands differ in. Each kind has a file with these functions; a Renew, which has no
// number, has only the first.
type operation struct {
	// command fills in the Command.
	command func(*Semaphore, *op, *Command)
	// next starts a command if there is one to be sent now, and reports whether there is.
	next func(*Semaphore) bool
	// replied handles the reply.
	replied func(*Semaphore, op, Result)
	// failed handles a failure, and reports whether the command is over.
	failed func(*Semaphore, *op, Result) (over bool)
}

// ops has the operation of each kind.
var ops [Set + 1]operation

// The functions in ops read it when they send another command, so it cannot be initialized where it is declared.
func init() {
	ops = [...]operation{
		Acquire: {(*Semaphore).acquireCommand, (*Semaphore).nextAcquire, (*Semaphore).acquireReplied, (*Semaphore).acquireFailed},
		Release: {(*Semaphore).releaseCommand, (*Semaphore).nextRelease, (*Semaphore).releaseReplied, (*Semaphore).releaseFailed},
		Set:     {(*Semaphore).setCommand, (*Semaphore).nextSet, (*Semaphore).setReplied, (*Semaphore).setFailed},
		Renew:   {command: (*Semaphore).renewCommand},
	}
}

// op is a command under way: it is sent, and sent again, until its outcome is known or does not matter.
type op struct {
	// kind is 0 if there is none.
	kind CommandKind
	seq  uint64
	machine.Sending
	// sentAt is the time of the first try that may count.
	sentAt Instant
	// until ends the tries; it is 0 for a Release, which may be repeated at any time: it frees no permit twice.
	until Instant
	// number is the number under which Redis carries out the command once; 0 for a renewal.
	number uint64

	// requests are, for an Acquire, the requests that it may serve.
	requests []*Request
	// newest is the id of the last request that waited when an Acquire was sent.
	newest uint64
	// before is the request for which permits may have been reserved before an Acquire.
	before uint64
	// reserved says, for an Acquire, that permits may be reserved for the first of requests.
	reserved bool

	// count is, for a Release, the number of elements of Semaphore.pendingReturns that it gives back.
	count int
	// yields says that a Release lets other processes have a turn.
	yields bool

	// holds are, for a Renew, the holds whose permits it renews.
	holds []*hold
}

// permits returns the permits that an Acquire may take for one of its requests. Each command has ids of its own: a
// permit that a late copy of one has taken would be lost if another took it again.
func (o *op) permits(req *Request) machine.Permits {
	return machine.Permits{First: req.Random.Numbered(o.number), N: req.Count}
}

// takeNumber takes the next number. Numbers grow over the lives of the actor, too, since they follow
// the clock.
func (s *Semaphore) takeNumber(now Instant) {
	s.number = max(s.number+1, uint64(now/time.Microsecond))
}

// start makes a command the numbered one, and sends it.
func (s *Semaphore) start(o op) {
	s.takeNumber(s.now)
	o.number = s.number
	s.main, s.after = o, o.kind
	s.send(&s.main)
}

// send issues the op's command, for the first time or again.
func (s *Semaphore) send(o *op) {
	s.seq++
	if !o.Unsure {
		o.sentAt = s.now
	}
	o.seq = s.seq
	c := Command{Kind: o.kind, Seq: o.seq, Number: o.number}
	c.Deadline = s.now + s.cfg.CallTimeout // not shortened for short leases: over a slow link every try would time out
	ops[o.kind].command(s, o, &c)
	o.Sent(c.Deadline)
	c.Latest = max(c.Latest, c.Deadline)
	s.effects.Add(machine.Effect{Kind: machine.Send, Ref: &c})
}

// retryLater schedules another try after a failure.
func (s *Semaphore) retryLater(o *op, f machine.Failure) {
	o.Failed(s.now, f, s.backoff(o.Tries))
}

func (s *Semaphore) backoff(tries int) time.Duration {
	return s.jitter(machine.Backoff(tries, s.cfg.Watchdog, s.cfg.Watchdog/6))
}

func (s *Semaphore) jitter(d time.Duration) time.Duration { return s.cfg.Jitter(d, s.seq) }

// add adds the permits of a request or a hold.
func (c *Command) add(p machine.Permits) { c.IDs, c.Counts = p.AppendTo(c.IDs), append(c.Counts, p.N) }

// fits returns how many of the first of n elements have, together, not more permits than one command may be about.
func fits(n int, permits func(i int) int) (first int) {
	for all := 0; first < n; first++ {
		if all += permits(first); all > machine.MaxTogether && first > 0 {
			break
		}
	}
	return first
}
