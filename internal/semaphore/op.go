package semaphore

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// The command under way: its kinds, starting it, and sending it again.

// opKind says what an op is for.
type opKind uint8

const (
	opNone opKind = iota
	// opTake takes permits for requests that wait; for a latch, it reads the count.
	opTake
	// opGive gives permits back, or yields them at the end of a turn; for a latch, it counts down.
	opGive
	// opChange carries out a Change.
	opChange
	// opLeave removes the entry of the process from the wait queue.
	opLeave
)

// operation is what the kinds of ops differ in. The functions of a kind are in the file of its subject.
type operation struct {
	// next starts an op if there is one to start now, and reports whether there is.
	next func(*Pool) bool
	// replied handles the reply to an op, which has ended.
	replied func(*Pool, op, Result)
	// failed handles a failure. It ends the op, unless the command is sent again.
	failed func(*Pool, op, Result)
}

// ops has the operation of each kind.
var ops = [...]operation{
	opTake:   {(*Pool).nextTake, (*Pool).takeReplied, (*Pool).takeFailed},
	opGive:   {(*Pool).nextGive, (*Pool).giveReplied, (*Pool).giveFailed},
	opChange: {(*Pool).nextChange, (*Pool).changeReplied, (*Pool).changeFailed},
	opLeave:  {(*Pool).nextLeave, (*Pool).leaveReplied, (*Pool).leaveFailed},
}

// op is the command under way: it is sent, and sent again, until its outcome is known or does not matter.
type op struct {
	// kind is opNone if there is no command under way.
	kind    opKind
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

	// last is the id of the last request that an opTake, or an opGive of a latch, may serve.
	last uint64
	// newest is the id of the last request that waited when an opTake began.
	newest uint64
	// returns are what an opGive gives back.
	returns []permitReturn
	// change is the request of an opChange.
	change Change
}

// mayBeDone reports whether Redis may have carried out the command, or may yet do so.
func (o *op) mayBeDone() bool { return o.InFlight || o.Unsure }

// start sends the command of an op for the first time.
func (p *Pool) start(o op) {
	o.command.Number, p.nextNumber = p.nextNumber, 0
	if o.began = p.now; o.until == 0 {
		o.until = p.now + machine.RepeatTime
	}
	p.op, p.lastKind, p.lastNumber = o, o.kind, o.command.Number
	p.send()
}

// send sends the command, for the first time or again.
func (p *Pool) send() {
	p.op.command.Deadline = p.now + p.cfg.CallTimeout
	p.op.Sent(p.op.command.Deadline)
	command := p.op.command
	p.effects.Add(machine.Effect{Kind: machine.Send, Ref: &command})
}

// pause returns the pause after a failure.
func (p *Pool) pause(tries int) time.Duration {
	return p.jitter(machine.Backoff(tries, machine.RepeatTime, machine.RepeatTime))
}

// maxPause bounds the pause after a rejection.
const maxPause = 30 * time.Second

// longPause returns the pause after a rejection: no request waits for the next try.
func (p *Pool) longPause(tries int) time.Duration {
	return p.jitter(min(50*time.Millisecond<<min(tries, 10), maxPause))
}

func (p *Pool) jitter(d time.Duration) time.Duration {
	return p.cfg.Jitter(d, p.nextNumber+uint64(p.op.Tries))
}
