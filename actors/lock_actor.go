package actors

import (
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/alarm"
	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/owners"
	"github.com/lockkeeper-go/lockkeeper/internal/records"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockActor is the supervised actor of one lock, semaphore or latch. It owns the key in Redis. It turns requests,
// timers and the replies of Redis into events of a machine, for example a lock.Lock, which decides, and carries out the
// effects (effects.go). The guardian spawns and supervises it (guardian.go): it is the tenant of a shell, which has its
// PID and mailbox (spawn.go).
//
// A crash loses nothing: the actor is restarted with the same state, which an event changes only once it is complete.
// Only the actor touches the state: while it handles a message, or after it has crashed on that message. Exceptions are
// the fields that are marked as shared, and fields that never change, which any goroutine may read.
type lockActor struct {
	rt  *Runtime
	key kinds.Key
	// shell provides the mailbox, the PID and the process of the actor.
	shell   *shell.Shell
	pid     *actor.PID
	process actor.Process

	// storedAs is the kind as which Redis has the lock: a fenced lock is stored as a plain lock. While the lock is in
	// use, requests for a kind that is stored differently are refused.
	storedAs messages.Kind
	// client is the client part of the owner field.
	client string
	// adapter does everything that differs between kinds of lock.
	adapter kinds.Adapter
	// members are the locks of a MultiLock or a RedLock; none if the lock has one key.
	members    []request.Member
	subscribed []backend.Channel

	// gate counts the requests that are sent to the actor. All senders share it.
	gate delivery.Gate
	// seen is the number of these requests that the actor has seen.
	seen uint64

	alarm alarm.Alarm
	// wakeAt is the time of the alarm, 0 if it is not set.
	wakeAt machine.Instant
	// idleSince is the time at which the actor became idle, 0 while it is not.
	idleSince machine.Instant
	inRing    atomic.Bool // see noteIdle
	owners    *owners.Set // nil until an actor makes a request

	// until is the end of the lease of the hold, shared with the holder. A Hold may be kept for longer than its lock
	// actor lives, so the time is not a part of this struct.
	until *atomic.Int64

	// machine decides. Every event replaces it.
	machine machine.Machine
	// now is the time of the last event.
	now machine.Instant
	// inspections are the requests that await the state of the lock in Redis.
	inspections map[*request.Call]struct{}
	shown       records.Shown
	// observer measures, traces and logs what happens to the lock.
	observer observe.Lock

	// helper is the Call being handled, if its goroutine may be used for one command.
	helper *request.Call
	// ctx is the context of the message being handled, nil between messages.
	ctx actor.Context
	// counted is the message being handled, once it is counted as seen. A crash does not count it again.
	counted any
	// accepted is the message being handled, once its handling is certain. A crash does not refuse it.
	accepted any
	crashes  []machine.Instant
	// closing: the System closes, and the actor leaves as soon as it has given everything back.
	closing bool
	// inspects: the actor was started for an inspection, and leaves when it has answered.
	inspects bool
	// ending is set once the lock is given up, or leaves for another kind.
	ending *ending
}

// Receive implements actor.Actor.
func (a *lockActor) Receive(ctx actor.Context) {
	m := a.began(ctx)
	defer func() { a.ctx = nil }()
	if a.ending != nil {
		a.ending.receive(a, m, ctx.Sender())
		return
	}
	switch m := m.(type) {
	// A request, by a goroutine or by message. A request that cannot be granted yet waits in the machine's queue.
	case *request.Call:
		a.requested(m)

	// Redis has replied to a script.
	case *kinds.Reply:
		a.handle(m, func(on machine.Machine, now machine.Instant) { a.adapter.Apply(on, now, m) })
	case *inspection:
		a.inspected(m)

	// The actor's message to itself at the time of the alarm: a renewal or another try is due, or a wait or a lease is
	// over.
	case wakeUp:
		a.tick()

	// Redis has published a release, or to this process a transfer or a question (see machine.Transfer); or the
	// subscriber listens from now on.
	case unlocked:
		if a.adapter.NoteMessage(m.channel) {
			a.handle(m, func(on machine.Machine, now machine.Instant) { on.Signal(now) })
		}
	case *transferred:
		if m.transfer.IsQuestion() {
			a.handle(m, func(on machine.Machine, now machine.Instant) { on.Asked(now, m.transfer.Term) })
			return
		}
		a.observer.Transferred()
		a.handle(m, func(on machine.Machine, now machine.Instant) { on.Transferred(now, m.transfer) })
	case listening:
		if a.adapter.NoteMessage(m.channel) {
			a.observer.Listening()
			a.handle(m, func(on machine.Machine, now machine.Instant) { on.Subscribed(now, m.term) })
		}

	// An owner has died: its lock is released at once.
	case *actor.Terminated:
		a.ownerGone(a.owners.RemoveTerminated(a.watcher(), m.Who))
		a.carryOut()

	// The key may have been taken away.
	case suspicion:
		a.handle(m, func(on machine.Machine, now machine.Instant) { on.Suspect(now) })

	// There are many lock actors: idle actors leave.
	case leaveIfIdle:
		if a.idle() && !a.owners.InUse() {
			a.retire()
		}

	// The system is closing: release everything, or no longer wait for Redis.
	case shutdown:
		a.closing = true
		a.handle(m, func(on machine.Machine, now machine.Instant) { on.Close(now) })
	case abandon:
		a.giveUp(machine.Closed, "the Lockkeeper system was closed before Redis confirmed the release", false)

	case *actor.Started:
		a.stopAlarm() // after a crash the alarm is set anew
		a.carryOut()  // also effects that the crash has left undone
	case *actor.Stopping:
		a.stopping()
	default:
		a.rt.stray(ctx)
	}
}

// began notes the message that is being handled, with its context.
func (a *lockActor) began(ctx actor.Context) (m any) {
	a.ctx, a.helper = ctx, nil
	m = unrepeated(ctx.Message())
	if _, ok := m.(*request.Call); ok {
		a.counted = ctx.Message()
		a.seen++
	}
	return m
}

// IsFor implements shell.Tenant.
func (a *lockActor) IsFor(m any) bool {
	switch m := unrepeated(m).(type) {
	case *request.Call:
		return kinds.KeyOf(m) == a.key
	case *kinds.Reply:
		return m.To == kinds.Actor(a)
	case wakeUp:
		return m.to == a
	case unlocked:
		return m.to == a
	case listening:
		return m.to == a
	case *transferred:
		return m.to == a
	case suspicion:
		return m.to == a
	case leaveIfIdle:
		return m.to == a
	}
	return true // from proto.actor or the guardian; or an inspection or a cleanedUp, which is ignored unless it is awaited
}

// requested turns a request into an event.
func (a *lockActor) requested(call *request.Call) {
	if kinds.Of(call.LockKind()).StoredAs != a.storedAs {
		a.otherKind(call)
		return
	}
	if call.RunsErrands {
		a.helper = call
	}
	switch call.Op {
	case request.OpAcquire:
		a.acquire(call)
	case request.OpCancel:
		id, owner := uint64(0), machine.Owner(0)
		if call.Target != nil { // by a goroutine
			id = call.Target.RequestID.Load()
		} else if known := a.owners.Find(call.Requester().Owner()); known != nil {
			owner = known.ID
		}
		a.handle(call, func(on machine.Machine, now machine.Instant) { on.Cancel(now, id, owner, call) })
	case request.OpList:
		a.accepted = call
		request.Goroutine{}.Inspected(a.rt, call, a.local().Listed())
		a.carryOut() // Close may wait only for these effects
	default:
		hold, owner := a.holdOf(call)
		switch event := a.adapter.Event(call, hold, owner); {
		case event != nil:
			a.handle(call, event)
		case call.Op == request.OpInspect:
			a.inspect(call, call)
		default:
			a.accepted = call
			a.rt.refuse(call, machine.Invalid, kinds.Of(a.storedAs).Word+" takes no such request")
		}
	}
}

func (a *lockActor) acquire(call *request.Call) {
	if why := a.rt.rules.Ended(call); why != "" {
		a.accepted = call
		a.rt.refuse(call, machine.CancelledByRequest, why)
		return
	}
	pid, _ := call.Requester().Owner()
	req := machine.Request{
		ID: a.newID(), Mode: machine.Mode(call.Mode), NoReentry: call.NoReentry || a.rt.Foreign(pid),
		Fenced: kinds.Of(call.LockKind()).DrawsTokens(), Lease: call.Lease, MaxHold: call.MaxHold, AtLeast: call.AtLeast,
		Try: call.Try, Ref: call, Unwatched: call.Unwatched,
	}
	req.Owner = a.registerOwner(call)
	call.RequestID.Store(req.ID)
	a.handle(call, func(on machine.Machine, now machine.Instant) {
		call.Since = now
		req.Deadline = call.WaitsUntil(now)
		a.adapter.Acquire(on, now, req)
	})
}

// newID numbers a request. Numbers grow over the whole system, and their lower half is random, so an id from an actor
// that has left matches nothing in a later actor.
func (a *lockActor) newID() uint64 { return a.rt.requests.Add(1)<<20 | rand.Uint64N(1<<20) }

// registerOwner returns the owner number for an Acquire; 0 if it has no owner. It watches an owner that is an actor,
// and counts this use. A goroutine's first Acquire of a lock gets a new number; a re-entry names the number of its
// hold.
func (a *lockActor) registerOwner(call *request.Call) machine.Owner {
	if pid, process := call.Requester().Owner(); pid != nil {
		if a.owners == nil {
			a.owners = new(owners.Set)
		}
		owner := a.owners.Acquire(a.watcher(), pid, process)
		call.Record = owner
		return owner.ID
	}
	if call.By == nil && call.Owner == 0 && call.Count == nil { // a goroutine's first hold
		call.Owner = a.watcher().NewOwner()
	}
	return call.Owner
}

// watcher watches the owners that are actors.
func (a *lockActor) watcher() owners.Watcher {
	return owners.Watcher{Post: &a.rt.post, Rules: &a.rt.rules, PID: a.pid, Numbers: &a.rt.owners}
}

// ownerOf returns the record of the owner of a request; nil if it has no owner.
func ownerOf(call *request.Call) *owners.Owner {
	owner, _ := call.Record.(*owners.Owner)
	return owner
}

// holdOf returns the hold that a request is about, by its id or by its owner.
func (a *lockActor) holdOf(call *request.Call) (id uint64, owner machine.Owner) {
	id = call.HoldID
	if known := a.owners.Find(call.Requester().Owner()); known != nil {
		id, owner = known.Lost, known.ID
	}
	if id == 0 && owner == 0 {
		id = math.MaxUint64 // no hold has this id, so the machine answers NotHeld
	}
	return id, owner
}

// tick makes the machine do its due work, most often the renewal of a lease: see advance and startRenewal in package
// lock. setAlarm has set the alarm to the machine's NextWake.
func (a *lockActor) tick() {
	if a.retireIfIdle() {
		return
	}
	for _, owner := range a.owners.RemoveMissing(a.watcher(), a.rt.Now(), a.rt.cfg.Watchdog) {
		a.ownerGone(owner)
	}
	a.handle(wakeUp{a}, func(on machine.Machine, now machine.Instant) { on.Tick(now) })
	if a.remind() {
		a.setAlarm()
	}
}

// ownerGone handles the death of an owner, which may be nil.
func (a *lockActor) ownerGone(owner *owners.Owner) {
	if owner != nil {
		a.step(func(on machine.Machine, now machine.Instant) { on.OwnerGone(now, owner.ID) })
	}
}

// stopping handles a stop that the guardian may not have asked for: no further requests come, all requests are answered
// and all holders notified, and the lock is released.
func (a *lockActor) stopping() {
	a.stopAlarm()
	if !a.idle() {
		a.giveUp(machine.Closed, "the lock actor was stopped", true)
		return
	}
	a.rt.locks.Remove(a)
	a.gate.Close()
}
