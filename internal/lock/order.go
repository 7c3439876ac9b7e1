package lock

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// order decides which waiter of this process is next, and when another process is. Its state is Lock.fair; localOrder
// has none.
type order interface {
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
}

// order returns the order of the lock.
func (l *Lock) order() order {
	if l.fair != nil {
		return l.fair
	}
	return localOrder{}
}
