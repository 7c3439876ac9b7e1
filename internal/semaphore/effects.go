package semaphore

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// What goes out and comes back: commands with their results, effects, and refusals.

// Instant is a point in time.
type Instant = machine.Instant

// CommandKind is the operation of a Command.
type CommandKind uint8

// The operations; package scripts has a script for each.
const (
	// Take takes permits for the first waiting requests; without any, the process leaves the wait queue. Its numbers
	// say how many requests were served, and how many permits are free then, and not left to other processes.
	Take CommandKind = iota + 1
	// Give gives permits back. Its numbers are 1, or 0 if there is no such semaphore, and how many are free then.
	Give
	// Yield gives permits back if others wait. Its numbers are 1 if it did, else 0, and how many are free then.
	Yield
	// Add adds permits, or takes some away. Its numbers are like the numbers of Give.
	Add
	// Set makes a semaphore unless there is one. Its numbers are 1 if it did, else 0, and how many are free then.
	Set
	// Drain takes all that are free. Its first number says how many.
	Drain
	// Delete deletes the semaphore or the latch. Its first number is 1 if there was one, else 0.
	Delete
	// Inspect reads how many are free, and the TTL in ms as Redis has it.
	Inspect
)

// Command is one script to run.
type Command struct {
	Kind CommandKind
	// Number is the same for all tries of a command, and grows from one command to the next.
	Number uint64
	// N is the number of permits.
	N int64
	// Wanted is, for Take, the number of permits that each waiter wants.
	Wanted []int
	// Entry is, for Take, the entry of the process in the wait queue if a request stays that waits.
	Entry Entry
	// Leaves says, for Give, that the process leaves the wait queue. After a Yield it has left.
	Leaves bool
	// IDs are, for Give, the ids of the count-downs that have one; N is the number of the other count-downs.
	IDs []string
	// TTL is, for Set, the TTL to set; 0 for none.
	TTL time.Duration
	// Forced, for Yield, gives the permits back even if no waiter is seen.
	Forced   bool
	Deadline Instant
}

// Entry is the entry of a process in the wait queue.
type Entry struct {
	// N is the number of permits that the entry waits for; 0 is no entry.
	N int
	// TTL is the time that the entry lasts without being confirmed.
	TTL time.Duration
	// Listens says that the process hears when its turn comes; the sender of the command sets it.
	Listens bool
}

// Result is the outcome of a Command.
type Result struct {
	// N are the numbers of the reply; see CommandKind.
	N [2]int64
	machine.Failure
}

// NextEffect writes the next effect to e and removes it. It reports whether there was one. The Ref of a Send is a
// *Command.
func (p *Pool) NextEffect(e *machine.Effect) bool { return p.effects.Next(e) }

// refuse refuses a request that waits.
func (p *Pool) refuse(ref any, reason machine.Reason, detail string) {
	p.effects.Refuse(ref, machine.NotGranted, reason, detail)
}

// refuseReturn refuses a request that gives something back.
func (p *Pool) refuseReturn(ref any, reason machine.Reason, detail string) {
	p.effects.Refuse(ref, machine.NotFreed, reason, detail)
}

// refuseChange refuses a request for a change.
func (p *Pool) refuseChange(ref any, reason machine.Reason, detail string) {
	p.effects.Refuse(ref, machine.NotDone, reason, detail)
}

// reportRejectedReturn reports that Redis rejects a command that no request awaits, and that it is sent again.
func (p *Pool) reportRejectedReturn(detail string) {
	p.effects.Add(machine.Effect{Kind: machine.ReturnRejected, Answer: machine.Answer{Detail: detail}})
}

// reportRejectedOp reports, once, that Redis rejects the command under way, which is sent again.
func (p *Pool) reportRejectedOp() {
	if !p.op.reported {
		p.op.reported = true
		p.reportRejectedReturn(p.op.Last.Err.Error())
	}
}

// reportForgotten reports that permits may stay taken: the pool stops giving them back.
func (p *Pool) reportForgotten(detail string) {
	p.effects.Add(machine.Effect{Kind: machine.Forgotten, Answer: machine.Answer{Detail: detail}})
}
