package lock

import "time"

// order decides who is next: which of the waiters here, and when it is another process's
// turn. The rest of the package does not know which order it is, so that a further one is
// one more implementation.
//
// It is part of the lock's state: every event begins with a fresh copy, and changes only that.
type order interface {
	clone() order

	// enter takes note of a request that arrives.
	enter(l *Lock, req *Request)
	// contender is the term under which the process contends; 0 if every waiter has its own.
	contender(l *Lock) uint64
	// channel is the term whose channel says that the lock may be free; 0 for the lock's own.
	channel(l *Lock) uint64
	// taken grants the lease that o has taken or set to the waiter whose it is.
	taken(l *Lock, o op, r Result)
	// passedOn answers the release after which o was to pass the lease on, by the reply to o.
	passedOn(l *Lock, o op, r Result)
	// inMemory reports whether the lease may pass from one waiter here to the next without
	// Redis.
	inMemory() bool
	// passOn gives a lease whose holder has released it to somebody who waits, here or
	// elsewhere, and answers ref.
	passOn(l *Lock, ref any)
	// admits reports whether one more reader may share the lease. If not, it may have sent a
	// command to find out.
	admits(l *Lock) bool
	// wake is when the order wants a Tick.
	wake(l *Lock) (at Instant, ok bool)

	registry
}

// registry is what Redis knows about the waiters of this process.
type registry interface {
	// changed reports whether Redis has yet to learn who waits here.
	changed(l *Lock) bool
	// tell adds to a command that is about to be sent what Redis has to know.
	register(l *Lock, o *op, c *Command)
	// keepUp tells it by a command of its own, if that is due.
	refresh(l *Lock)
	// sync is that command, nil if there is none; synced takes its outcome.
	sync() *op
	synced(l *Lock, r Result)
	// released says what the reply to a release means for the lease.
	released(l *Lock, o op, r Result) Result
	// longest is the longest lease that a waiter may have got without our knowing.
	longest() time.Duration
	// cleanup lists the commands after which Redis knows of no waiter of ours.
	cleanup(l *Lock) []Command
}

// unregistered is the registry of an order that Redis knows nothing about.
type noRegistry struct{}

func (noRegistry) changed(*Lock) bool                      { return false }
func (noRegistry) register(*Lock, *op, *Command)           {}
func (noRegistry) refresh(*Lock)                           {}
func (noRegistry) sync() *op                               { return nil }
func (noRegistry) synced(*Lock, Result)                    {}
func (noRegistry) released(_ *Lock, _ op, r Result) Result { return r }
func (noRegistry) longest() time.Duration                  { return 0 }
func (noRegistry) cleanup(*Lock) []Command                 { return nil }
