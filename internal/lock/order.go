package lock

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// order decides which waiter of this process is next, and when another process is. All that differs between the orders
// is in their methods.
type order interface {
	// clone returns a copy of the order's state, for one event.
	clone() order

	// enter prepares a request to wait.
	enter(l *Lock, req *waiter)
	// termToContend returns the term under which the process contends; 0 if each waiter has its own.
	termToContend(l *Lock) uint64
	// channel returns the term of the channel to listen to; 0 for the lock's own. reusable: later waiters listen to the same.
	channel(l *Lock) (term uint64, reusable bool)
	// longestWaiting returns the longest lease that may begin in Redis for a waiter, if the process does not know its term.
	longestWaiting() time.Duration

	// grant grants the lease, which o has taken or set, to its waiter.
	grant(l *Lock, o op, r Result)
	// canHandOff reports whether the lease can pass to a waiter of this process without a command.
	canHandOff(l *Lock, req *waiter) bool
	// handOff hands a released lease off to the next waiter, of this process or another, and answers ref.
	handOff(l *Lock, ref any)
	// answerHandOff answers the release that sent o to hand the lease off; r is the reply to o.
	answerHandOff(l *Lock, o op, r Result)

	// register adds the waiters to a command that lists them.
	register(l *Lock, o *op, c *Command)
	// noteUnanswered notes that a command is unanswered.
	noteUnanswered(o *op)
	// released returns what the reply to a release says about the lease.
	released(l *Lock, o op, r Result) Result
	// changed reports whether the waiters have changed in a way that Redis must learn.
	changed(l *Lock) bool
	// refresh sends a command with the waiters, if one is due, and synced handles the reply.
	refresh(l *Lock)
	synced(l *Lock, r Result)
	// wake returns when the order needs a Tick.
	wake(l *Lock) (at machine.Instant, ok bool)
	// cleanup returns the commands that remove the waiters from Redis.
	cleanup(l *Lock) []Command
}

func newOrder(f *Features) order {
	if f.Fair {
		return &redisOrder{}
	}
	return localOrder{}
}
