package semaphore

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

const (
	// longestPause bounds the pause after a rejection.
	longestPause = 30 * time.Second
	// batch bounds the waiters that one Take names.
	batch = 100
)

// call is the command under way: it is sent, and sent again, until its outcome is known or does not
// matter any more.
type call struct {
	kind    CommandKind
	command Command
	machine.Sending
	// until ends the tries; expired: they have ended. reported: it is in the log that Redis rejected it.
	until             Instant
	expired, reported bool

	// returns are those that a Give or a Yield gives back; change is the request of a command that is a Change.
	returns []permitReturn
	change  Change
	// last is the id of the last request that the command may serve.
	last uint64
	// after is the work of the last command. It outlasts the call.
	after work
}

// work is what a command does. There may always be more of each, so they take turns.
type work uint8

const (
	taking work = iota
	giving
	changing
	works
)

func (c *call) work() work {
	switch c.kind {
	case Take:
		return taking
	case Give, Yield:
		return giving
	}
	return changing
}

// start sends a command for the first time.
func (p *Pool) start(c call) {
	c.command.Number, p.nextNumber = p.nextNumber, 0
	c.kind, c.until = c.command.Kind, p.now+machine.RepeatTime
	p.call, p.sent = c, c.command.Number
	p.send()
}

// send sends the command, for the first time or again.
func (p *Pool) send() {
	p.call.command.Deadline = p.now + p.cfg.CallTimeout
	p.call.Sent(p.call.command.Deadline)
	command := p.call.command
	p.effects.Add(machine.Effect{Kind: machine.Send, Ref: &command})
}

// end ends the command.
func (p *Pool) end() { p.call = call{after: p.call.work()} }

// reportRejection reports, once, that Redis rejects the command, which is sent again.
func (p *Pool) reportRejection() {
	if !p.call.reported {
		p.call.reported = true
		p.reportRejectedReturn(p.call.Last.Err.Error())
	}
}

func (p *Pool) pause(tries int) time.Duration {
	return p.jitter(machine.Backoff(tries, machine.RepeatTime, machine.RepeatTime))
}

// longPause is the pause after a rejection: no request waits for the next try.
func (p *Pool) longPause(tries int) time.Duration {
	return p.jitter(min(50*time.Millisecond<<min(tries, 10), longestPause))
}

// retryNow shortens the pauses after rejections, at the end of the System.
func (p *Pool) retryNow() {
	p.rejects.nextAt, p.rejects.tries = 0, min(p.rejects.tries, 1)
	if p.call.Rejected() && !p.call.InFlight {
		p.call.Tries = 0
		p.send()
	}
}

// Replied delivers the outcome of a command. It is ignored if the command is no longer under way. A failure counts for
// the last try, even if it is of an earlier one; between two tries it is ignored.
func (p *Pool) Replied(now Instant, number uint64, r Result) {
	p.begin(now)
	defer p.settle()
	if p.call.kind != 0 && p.call.command.Number == number && (r.Err == nil || p.call.InFlight) {
		p.replied(&r)
	}
}

func (p *Pool) replied(r *Result) {
	p.mayArrive = p.mayArrive || r.Unsure
	if r.Err != nil {
		pause := p.pause
		if !r.Transient {
			pause = p.longPause
		}
		p.call.Failed(p.now, r.Failure, pause(p.call.Tries))
		if p.now >= p.call.until {
			p.reportLost(r.Err.Error())
			p.call.expired, p.call.Unsure = true, false
		}
	}
	switch p.call.kind {
	case Take:
		p.takeReplied(r)
	case Give, Yield:
		p.giveReplied(r)
	default:
		p.changeReplied(r)
	}
}

// overdue stops waiting for a reply that is late, or sends the command again if that is due.
func (p *Pool) overdue() {
	if failure, again := p.call.Overdue(p.now, p.call.until); failure != nil {
		p.replied(&Result{Failure: *failure})
	} else if again {
		p.send()
	}
}
