package lock

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// order decides which waiter of this process is next, and when another process is. The rest of the package
// does not depend on the implementation.
//
// It is part of the lock's state: every event begins with a clone, and changes only that.
type order interface {
	clone() order

	// enter registers a request that arrives.
	enter(l *Lock, req *waiter)
	// contender is the term under which the process contends; 0 if every waiter has its own.
	contender(l *Lock) uint64
	// channel is the term whose channel says that the lock may be free; 0 for the lock's own.
	channel(l *Lock) uint64
	// grant grants the lease, which o has taken or set, to its waiter.
	grant(l *Lock, o op, r Result)
	// answerPassOn answers the release that sent o to pass the lease on; r is the reply to o.
	answerPassOn(l *Lock, o op, r Result)
	// inMemory reports whether the lease may pass from one waiter of this process to the next without
	// a command.
	inMemory() bool
	// passOn passes a released lease to the next waiter, of this process or another, and answers ref.
	passOn(l *Lock, ref any)
	// admit reports whether one more reader may share the lease. It may send a command to find out, and
	// returns false until the reply.
	admit(l *Lock) bool
	// wake returns when the order needs a Tick.
	wake(l *Lock) (at machine.Instant, ok bool)

	registry
}

// registry is what Redis knows about the waiters of this process.
type registry interface {
	// changed reports whether the waiters have changed since they were last sent to Redis.
	changed(l *Lock) bool
	// register adds the waiters to a command that is about to be sent.
	register(l *Lock, o *op, c *Command)
	// refresh sends a command with the waiters, if one is due.
	refresh(l *Lock)
	// sync returns that command, nil if there is none; syncReplied handles its outcome.
	sync() *op
	syncReplied(l *Lock, r Result)
	// noteUnanswered notes that o has got no reply, and may still be carried out.
	noteUnanswered(o *op)
	// convertRelease converts the reply to a release into what it means for the lease.
	convertRelease(l *Lock, o op, r Result) Result
	// longest returns the longest lease that a waiter may have although no reply has granted it.
	longest() time.Duration
	// cleanup returns the commands that remove all waiters of this process from Redis.
	cleanup(l *Lock) []Command
}

// noRegistry is the registry of an order that Redis does not know.
type noRegistry struct{}

func (noRegistry) changed(*Lock) bool                            { return false }
func (noRegistry) register(*Lock, *op, *Command)                 {}
func (noRegistry) refresh(*Lock)                                 {}
func (noRegistry) sync() *op                                     { return nil }
func (noRegistry) syncReplied(*Lock, Result)                     {}
func (noRegistry) noteUnanswered(*op)                            {}
func (noRegistry) convertRelease(_ *Lock, _ op, r Result) Result { return r }
func (noRegistry) longest() time.Duration                        { return 0 }
func (noRegistry) cleanup(*Lock) []Command                       { return nil }
