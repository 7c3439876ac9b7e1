package lock

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// order decides which waiter of this process is next, and when another process is.
type order interface {
	// termToContend returns the term under which the process contends; 0 if each waiter has its own.
	termToContend(l *Lock) uint64
	// channel returns the term of the channel to listen to; 0 for the lock's own. If it is reusable, later waiters
	// listen to the same channel.
	channel(l *Lock) (term uint64, reusable bool)

	// grant grants the lease, which o has taken or set, to its waiter.
	grant(l *Lock, o op, r Result)
	// canHandOff reports whether the lease can pass to a waiter of this process without a command.
	canHandOff(l *Lock, req *waiter) bool
	// handOff hands a released lease off to the next waiter, of this process or another, and answers ref.
	handOff(l *Lock, ref any)
	// answerHandOff answers the release that sent o to hand the lease off; r is the reply to o.
	answerHandOff(l *Lock, o op, r Result)

	// wake returns when the order needs a Tick.
	wake(l *Lock) (at machine.Instant, ok bool)
}

func newOrder(f *Features) order {
	if f.Fair {
		return &redisOrder{}
	}
	return localOrder{}
}

// queueInRedis returns the order if Redis has the queue of the waiters, which commands must list then; otherwise nil.
func (l *Lock) queueInRedis() *redisOrder {
	q, _ := l.order.(*redisOrder)
	return q
}
