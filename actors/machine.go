package actors

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// machine is what a lock actor decides with: a lock, or the permits of a name. An event is applied to a
// copy, which replaces it. Its methods are those of lock.Lock.
type machine interface {
	Acquire(now lock.Instant, req lock.Request)
	Release(now lock.Instant, id uint64, owner lock.Owner, mode lock.Mode, ref any)
	Cancel(now lock.Instant, id uint64, owner lock.Owner, ref any)
	OwnerGone(now lock.Instant, owner lock.Owner)
	ForceRelease(now lock.Instant, mode lock.Mode, owners lock.Owners, ref any)
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

// kindAdapter is what lock actors differ in by their kind: the machine that decides, how that is carried out in Redis,
// and which requests are for that kind only. There is one for each lockState.
type kindAdapter interface {
	backend.Place

	// fresh returns a machine that has no requests, and draft a copy to apply an event to. replaced gets the machine
	// whose place a draft has taken, and settled one whose effects are all carried out.
	fresh() machine
	draft(of machine) machine
	replaced(before machine)
	settled(m machine)

	// perform carries out a lock.Send, and the effects that only this kind has. It gets a copy, since a
	// pointer given to an interface would put every effect on the heap. The reply to what it sends comes as
	// a message, and replied applies it to the machine.
	perform(e lock.Effect)
	replied(m *replied)
	// request handles a request that is for this kind only, and reports whether it is one.
	request(call *request.Call) bool
	// describe adds to an answer what is here, in this process, and there, in Redis.
	describe(status *messages.Status, here *lock.Snapshot, there *protocol.View)

	// retires is called when the actor leaves, with nothing left to do.
	retires()
	// giveUp is called when the actor leaves nevertheless: it answers all requests, notifies all holders, and returns
	// what is to be done so that nothing is left in Redis. awaits says that Redis's word on that is awaited.
	giveUp(reason lock.Reason, detail string, awaits bool) []cleanup
	// late handles a reply that comes afterwards, and abandon ends the wait for Redis; late may come on any goroutine.
	late(m *replied)
	abandon()
}
