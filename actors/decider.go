package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// decider is what a lock actor decides with: a lock, or the permits of a name. It is a value: an event
// changes a copy of it. Its methods are those of lock.Lock.
type decider interface {
	Acquire(now lock.Instant, req lock.Request)
	Release(now lock.Instant, id uint64, owner lock.Owner, mode lock.Mode, ref any)
	Cancel(now lock.Instant, id uint64, owner lock.Owner, ref any)
	OwnerGone(now lock.Instant, owner lock.Owner)
	ForceRelease(now lock.Instant, mode lock.Mode, ref any)
	Ensure(now lock.Instant, id uint64, d time.Duration, ref any)
	Signal(now lock.Instant)
	Subscribed(now lock.Instant, term uint64)
	Transferred(now lock.Instant, t lock.Transfer)
	Suspect(now lock.Instant)
	Tick(now lock.Instant)
	Close(now lock.Instant)

	Effects() (next lock.Effect, ok bool)
	NextWake() (at lock.Instant, ok bool)
	Idle() bool
	Next() any
	Load() (holds, waiters int, first any)
	Snapshot() lock.Snapshot
	Term() uint64
	LeaseUntil() lock.Instant
	Outstanding() (holders []lock.Holder, pending []any)
}

// variant is what lock actors differ in by the kind of their lock: with what they decide, how that
// is carried out in Redis, and which requests are for that kind only. There is one for each lockState.
type variant interface {
	backend.Place

	// fresh returns a decider of what nobody wants yet, and draft a copy for an event to change.
	// replaced is told of one that such a copy has replaced, and settled of one without effects.
	fresh() decider
	draft(of decider) decider
	replaced(d decider)
	settled(d decider)

	// perform carries out an effect that not all kinds have, or not in the same way, as a lock.Send. What
	// is sent is answered by a replied, which is applied to the decider then. The effect is a value, since
	// a pointer given to a variant would put every effect on the heap.
	perform(e lock.Effect)
	replied(m *replied)
	// called and received handle requests that other kinds do not know.
	called(call *Call)
	received(m any, sender *actor.PID)
	// describe adds to an answer what is here, in this process, and there, in Redis.
	describe(status *messages.Status, here *lock.Snapshot, there *protocol.View)
	// cleanups are what is to be done so that nothing is left in Redis.
	cleanups(d decider) []cleanup
}
