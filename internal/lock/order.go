package lock

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// order decides which waiter of this process is next, and when another process is. Its state is Lock.fair; localOrder
// has none.
type order interface {
	// grant grants the lease, which o has taken or set, to its waiter.
	grant(l *Lock, o op, r Result)
	// answerPassOn answers the release that sent o to pass the lease on; r is the reply to o.
	answerPassOn(l *Lock, o op, r Result)
	// passOn passes a released lease to the next waiter, of this process or another, and answers ref.
	passOn(l *Lock, ref any)
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
