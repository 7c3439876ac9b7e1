package semaphore

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Instant is a point in time on the clock of package lock.
type Instant = machine.Instant

// EffectKind is what an Effect asks for.
type EffectKind uint8

const (
	// Send runs Command in Redis; Replied delivers the outcome.
	Send EffectKind = iota + 1
	// Reply delivers Answer to the request Ref.
	Reply
	// Subscribe asks for the messages of the channel; Subscribed confirms it.
	Subscribe
	// Unsubscribe ends the subscription.
	Unsubscribe
	// Forgotten says that permits may stay taken though no process has them; Answer.Detail says why.
	Forgotten
)

// Effect is something that the actor must do for the pool. Effects are part of the pool's state
// until they are taken, so a crash of the actor loses none.
type Effect struct {
	Kind    EffectKind
	Ref     any
	Answer  Answer
	Command *Command // of a Send
}

// CommandKind is the operation of a Command.
type CommandKind uint8

// The operations; package scripts has a script for each.
const (
	// Take takes permits for the first of those who wait. Its numbers are how many of them were
	// served, and how many permits are free then.
	Take CommandKind = iota + 1
	// Give gives permits back. Its numbers are 1, or 0 if there is no such semaphore, and how many
	// are free then.
	Give
	// Yield gives permits back if others wait. Its numbers are 1 if it did, else 0, and how many are
	// free then.
	Yield
	// Add adds permits, or takes some away. Its numbers are those of Give.
	Add
	// Set makes a semaphore unless there is one. Its numbers are 1 if it did, else 0, and how many
	// are free then.
	Set
	// Drain takes all that are free. Its number is how many were.
	Drain
	// Inspect reads how many are free, and the TTL in ms as Redis has it.
	Inspect
)

// Command is one script to run.
type Command struct {
	Kind CommandKind
	// Number is the same for all tries of a command, and grows from one command to the next.
	Number uint64
	// N is how many permits are meant; Wanted is that of each waiter, for Take.
	N      int64
	Wanted []int
	// IDs are those of count-downs that have one, for Give; N is how many have none.
	IDs []string
	// TTL is that of Set; 0 for none.
	TTL time.Duration
	// Listening says, for Yield, that this process listens on the channel too; Forced gives the
	// permits back even if no waiter is seen.
	Listening, Forced bool
	Deadline          Instant
}

// Result is the outcome of a Command. Err is why it failed; nil if it did not.
type Result struct {
	N   [2]int64
	Err error
	// Transient: another try may succeed. Unsure: the script may have run all the same.
	Transient, Unsure bool
}

// AnswerKind is how a request ended.
type AnswerKind uint8

const (
	// Granted: the requester has N permits. A Drain may grant none, or less than that.
	Granted AnswerKind = iota + 1
	// Returned: the permits are back, or handed off. Done is false if there was no semaphore.
	Returned
	// Changed: Done and N are what the command replied.
	Changed
	// Withdrawn: N waiting requests were cancelled.
	Withdrawn
	// Refused: nothing was done, because of Reason.
	Refused
)

// Answer answers a request. Every request gets exactly one.
type Answer struct {
	Kind AnswerKind
	Done bool
	// HandedOn says that permits were handed off inside this process.
	HandedOn bool
	Reason   machine.Reason
	N        int64
	// TTL is that of the semaphore, for Inspect; negative if it has none.
	TTL    time.Duration
	Detail string
}

// Effects returns the next effect, nil if there is none. No effect is taken twice; the pool forgets them
// when all are taken.
func (p *Pool) Effects() (next *Effect) {
	if p.taken == len(p.effects) {
		clear(p.effects)
		if p.effects, p.taken = p.effects[:0], 0; cap(p.effects) > keptEffects {
			p.effects = nil
		}
		return nil
	}
	p.taken++
	return &p.effects[p.taken-1]
}

// keptEffects is for how many effects the memory is used again.
const keptEffects = 8

func (p *Pool) effect(e Effect) { p.effects = append(p.effects, e) }

// answer ends a request, if ref is one.
func (p *Pool) answer(ref any, a Answer) {
	if ref != nil {
		p.effect(Effect{Kind: Reply, Ref: ref, Answer: a})
	}
}

func (p *Pool) refuse(ref any, reason machine.Reason, detail string) {
	p.answer(ref, Answer{Kind: Refused, Reason: reason, Detail: detail})
}
