package semaphore

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

const (
	// maxPause bounds the pause after a rejection.
	maxPause = 30 * time.Second
	// batch bounds the waiters that one Take names, and the ids of one Give.
	batch = 100
)

// start sends a command for the first time.
func (p *Pool) start(c op) {
	c.command.Number, p.nextNumber = p.nextNumber, 0
	c.kind, c.began, c.until = c.command.Kind, p.now, p.now+machine.RepeatTime
	c.newest = p.queue.LastID()
	p.op, p.sent = c, c.command.Number
	p.send()
}

// send sends the command, for the first time or again.
func (p *Pool) send() {
	p.op.command.Deadline = p.now + p.cfg.CallTimeout
	p.op.Sent(p.op.command.Deadline)
	command := p.op.command
	p.effects.Add(machine.Effect{Kind: machine.Send, Ref: &command})
}

// end ends the command.
func (p *Pool) end() { p.op = op{lastWork: p.op.work()} }

// reportRejection reports, once, that Redis rejects the command, which is sent again.
func (p *Pool) reportRejection() {
	if !p.op.reported {
		p.op.reported = true
		p.reportRejectedReturn(p.op.Last.Err.Error())
	}
}

// pause returns the pause after a failure.
func (p *Pool) pause(tries int) time.Duration {
	return p.jitter(machine.Backoff(tries, machine.RepeatTime, machine.RepeatTime))
}

// longPause returns the pause after a rejection: no request waits for the next try.
func (p *Pool) longPause(tries int) time.Duration {
	return p.jitter(min(50*time.Millisecond<<min(tries, 10), maxPause))
}

// retryNow shortens the pauses after rejections and of leave, at the end of the System.
func (p *Pool) retryNow() {
	p.rejects.nextAt, p.rejects.tries = 0, min(p.rejects.tries, 1)
	if (p.op.Rejected() || p.op.leaves) && !p.op.InFlight {
		p.op.Tries = 0
		p.send()
	}
}
