// Package kinds contains the parts of lock actors that depend on the kind of lock: the machine that decides, how its
// commands are carried out in Redis, and what is read from there. Table registers the kinds.
package kinds

import (
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Adapter serves one lock actor. Unless said otherwise, only the actor calls its methods, one at a time.
type Adapter interface {
	Decider
	Performer
	Leaver
}

// Decider is the part of an Adapter that makes decisions: its machines, and their events.
type Decider interface {
	// Fresh returns a machine that has no requests.
	Fresh() machine.Machine
	// Draft returns a copy to apply an event to.
	Draft(of machine.Machine) machine.Machine
	// Replaced gets a machine and the draft that has replaced it. The Adapter may use the memory of before again.
	Replaced(before, after machine.Machine)
	// Settled gets a machine after all of its effects are carried out.
	Settled(m machine.Machine)
	// Acquire applies a request for the lock, for permits, or for an open latch, to the machine. The request is granted
	// or refused at once, or waits in the queue. Its Ref is the *request.Call.
	Acquire(m machine.Machine, now machine.Instant, req machine.Request)
	// Event returns the event of a request other than an Acquire, a Cancel or a List; nil if this kind does not take it.
	// A request about a hold means the hold of the owner or, if the owner is 0 or has none, the hold with that id.
	Event(call *request.Call, hold uint64, owner machine.Owner) Event
	// Apply applies a reply to the machine.
	Apply(m machine.Machine, now machine.Instant, r *Reply)
}

// Performer is the part of an Adapter that carries out the decisions, and reads Redis.
type Performer interface {
	// Send sends a command of the machine to Redis. The reply goes to Actor.Replied.
	Send(command any, now machine.Instant)
	// Perform carries out an effect that only this kind has.
	Perform(e *machine.Effect, now machine.Instant)
	// Channels returns the channels on which a waiter of that term is notified of a release.
	Channels(term uint64) []backend.Channel
	// NoteMessage reports whether a message or a new subscription on the channel may mean that the lock is free.
	NoteMessage(channel backend.Channel) bool
	// Inspect reads the state in Redis. It calls done once, on any goroutine, with the state or with the refusal.
	Inspect(deadline time.Time, done func(status *messages.Status, refusal *machine.Answer))
}

// Leaver is the part of an Adapter for the end of its lock actor, which is one of these:
//
//  1. It has nothing left to do, or leaves for another kind: Retires → the actor leaves its shell, or stops → Gone.
//  2. It is given up: Retires → Stop (see Stopper) → Cleanups → Late for each reply → Abandon, if the wait for Redis is
//     cut short → the actor stops → Gone. A reply that comes even later still reaches Late.
//  3. The host stops it while it is idle: Gone.
type Leaver interface {
	// Retires is called when the actor is about to leave, before another actor may be started for the name; the actor
	// may stay after all. closing says that the System closes, and the actor has nothing left to do.
	Retires(m machine.Machine, closing bool)
	// Cleanups returns the actions that remove everything of the machine from Redis, when the actor is given up.
	Cleanups(m machine.Machine) []Cleanup
	// Late handles a reply that arrives after the actor was given up; it may run on any goroutine. It reports whether
	// the command may have changed Redis, so that the cleanups must run again.
	Late(r *Reply) (cleanUpAgain bool)
	// Abandon ends the wait for Redis after the actor was given up.
	Abandon()
	// Gone is called when the actor has left its shell, or, by the guardian, after it has stopped.
	Gone()
}

// simple provides empty versions of the methods that most kinds do not need.
type simple struct{}

func (simple) Replaced(_, _ machine.Machine)    {}
func (simple) Settled(machine.Machine)          {}
func (simple) NoteMessage(backend.Channel) bool { return true }
func (simple) Retires(machine.Machine, bool)    {}
func (simple) Abandon()                         {}
func (simple) Gone()                            {}

// Event is an event of a machine.
type Event = func(m machine.Machine, now machine.Instant)

// Stopper is an Adapter whose machine itself answers all requests when its actor is given up.
type Stopper interface {
	// Stop refuses all requests for that reason. If awaits is true, the actor waits until Redis confirms the returned
	// permits and the count-downs; otherwise they may be lost, which is logged.
	Stop(m machine.Machine, now machine.Instant, reason machine.Reason, detail string, awaits bool)
}

// Actor is the lock actor, as its Adapter sees it.
type Actor interface {
	// Replied gets the reply to each command, on any goroutine.
	Replied(r *Reply)
	// Lend reports whether the Actor takes over a call to Redis: the goroutine that waits for the answer runs it then.
	// forWaiter says that the call is for the first request that waits.
	Lend(forWaiter bool, call redisclient.Call) bool
	// ReceivesTransfers reports whether the process receives transfers to that term.
	ReceivesTransfers(term uint64) bool
}

// Reply is the reply of Redis to a command of an Actor.
type Reply struct {
	To Actor
	// Seq is the Seq of the command.
	Seq uint64
	// Lock is for locks, and Other for other kinds.
	Lock  backend.Reply
	Other any
}

// IgnoreDeadLetterLogging implements a marker of proto.actor, since a reply may come when its actor has left.
func (*Reply) IgnoreDeadLetterLogging() {}

// Cleanup frees something that the lock may hold in Redis. Run calls done once, on any goroutine; if it is not certain
// that nothing is left, that expires after TTL.
type Cleanup struct {
	TTL time.Duration
	Run func(done func(certain bool))
}

// Row is the row of a kind in Table.
type Row struct {
	*request.Traits
	// Remain are the keys of a name that a free lock may leave in Redis until they expire.
	Remain []func(name string) string
	// Features are the features of a lock on one key.
	Features lock.Features
	// new makes the Adapter of a synchronizer that is not a lock.
	new func(s *Kinds, name string, a Actor) Adapter
}

// SameType reports whether the values of two kinds have the same type in Redis: both are locks, or both are numbers
// (free permits, or the count of a latch). Redis then cannot refuse the command of one kind on a key of the other.
func SameType(a, b messages.Kind) bool { return Of(a).IsLock() == Of(b).IsLock() }

// Table contains the row of each kind. The rows of the synchronizers are here; the row of a lock follows from its
// traits, which are in package request.
var Table = map[messages.Kind]*Row{
	messages.Kind_KIND_EXPIRABLE_SEMAPHORE: {new: newExpirable},
	messages.Kind_KIND_SEMAPHORE:           {Remain: []func(string) string{keyspace.WaitQueue, keyspace.WaitOrder}, new: newSemaphore},
	messages.Kind_KIND_LATCH:               {new: newLatch},
}

// byNumber is Table as a slice, since every request looks kinds up several times.
var byNumber = func() (all []*Row) {
	for kind := range messages.Kind(len(messages.Kind_name)) {
		if _, known := messages.Kind_name[int32(kind)]; !known {
			panic(fmt.Sprintf("package kinds: the numbers of the kinds have a gap at %d", kind))
		}
		row := Table[kind]
		if row == nil {
			row = new(Row)
			Table[kind] = row
		}
		row.Traits = request.TraitsOf(kind)
		if row.Form != nil {
			row.Features, row.Remain = featuresOf(row.Traits), waitQueueOf(row.Form)
		}
		all = append(all, row)
	}
	return all
}()

// featuresOf returns the features of a lock on one key.
func featuresOf(t *request.Traits) lock.Features {
	f := lock.Features{Fair: t.Form.Queue != nil, Shares: t.Shared}
	f.WaitQueue = t.Form.WaitQueue != nil && !f.Fair
	if t.Form.Tokens != nil {
		f.Tokens = 1
	}
	return f
}

// waitQueueOf returns the keys of the wait queue of a lock.
func waitQueueOf(f *forms.Form) []func(name string) string {
	if f.WaitQueue == nil {
		return nil
	}
	return []func(string) string{f.WaitQueue, f.WaitOrder}
}

// Of returns the row of a kind; for an unknown kind, the row of a plain lock.
func Of(kind messages.Kind) *Row {
	if kind < 0 || int(kind) >= len(byNumber) {
		return byNumber[messages.Kind_KIND_PLAIN]
	}
	return byNumber[kind]
}
