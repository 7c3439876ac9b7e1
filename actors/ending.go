package actors

import (
	"math"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
)

// ending is the state of a lock actor that was given up, or leaves for another kind. The actor refuses the messages
// that are still in its mailbox, and stops when the mailbox is empty and the key is released.
type ending struct {
	reason machine.Reason
	detail string
	// sent is the number of requests that were sent before the gate was closed.
	sent uint64
	// cleanups remove everything of the machine from Redis; the list never changes.
	cleanups []kinds.Cleanup
	// pendingCleanups is the number of runs of cleanups that have not ended.
	pendingCleanups int
	// stopAsked: the guardian has been asked to stop the actor.
	stopAsked bool
	// returned are the requests that go back to the guardian, if the actor leaves for another kind; nil if it does not.
	returned []*request.Call
}

// letGo ends the watches and the alarm of an actor that is certain to leave, since an actor that stays needs both.
// Retires is called earlier, while no other actor can be started for the name.
func (a *lockActor) letGo() {
	a.owners.Forget(a.watcher())
	a.stopAlarm()
}

// gone removes an actor that has left its shell, or stopped.
func (a *lockActor) gone() {
	a.unlist()
	a.adapter.Gone()
}

// giveUp answers all requests and notifies all holders, releases the key, and lets the actor leave. If awaits is false,
// the actor stops without waiting for Redis to confirm the cleanups.
func (a *lockActor) giveUp(reason machine.Reason, detail string, awaits bool) {
	a.stopAlarm()
	a.adapter.Retires(a.machine, false)
	a.rt.locks.Remove(a)
	a.ending = &ending{reason: reason, detail: detail, sent: a.gate.Close()}
	if own, stops := a.adapter.(kinds.Stopper); stops {
		a.step(func(m machine.Machine, now machine.Instant) { own.Stop(m, now, reason, detail, awaits) })
		a.performAll()
	}
	a.ending.cleanups = a.adapter.Cleanups(a.endAll(reason, detail))
	a.ending.pendingCleanups = len(a.ending.cleanups)
	for call := range a.inspections {
		a.perform(&machine.Effect{Kind: machine.Reply, Ref: call, Answer: request.Refusal(request.OpInspect, reason, detail)})
	}
	a.inspections = nil
	a.observeStep()
	a.stopListening()
	a.cleanUp()
	if !awaits {
		a.ending.pendingCleanups = 0
	}
	a.ending.check(a)
}

// retire lets the actor leave, unless requests are on their way to it: if there are many actors, the next lock gets its
// shell; else the guardian stops it. With middleware the guardian always stops it, to end the middleware actor too.
func (a *lockActor) retire() bool {
	a.adapter.Retires(a.machine, a.closing)
	if !a.gate.CloseIf(a.seen) {
		return false
	}
	a.letGo()
	if !a.rt.crowded.Load() || len(a.rt.cfg.Middleware) > 0 {
		a.rt.locks.Remove(a)
		a.rt.toGuardian(&retired{a.pid})
		return true
	}
	a.gone()
	a.shell.Leave()
	return true
}

// noteIdle records, if there are many actors, that this actor has become idle, and asks the actor that has been idle
// longest to leave. Otherwise the actors of names that are used once would all stay for Config.Idle. The oldest actor
// leaves on this goroutine. If the next lock of its shell becomes idle meanwhile, yet another actor leaves here; that
// is rare, since a grant takes a round trip to Redis.
func (a *lockActor) noteIdle() {
	if a.rt.crowded.Load() && !a.inRing.Swap(true) {
		if oldest := a.rt.idleRing.Push(a); oldest != nil {
			oldest.inRing.Store(false)
			oldest.post(leaveIfIdle{oldest})
		}
	}
}

// idle reports whether the machine has nothing to do and no state to keep, and no inspection is pending.
func (a *lockActor) idle() bool { return a.machine.Idle() && len(a.inspections) == 0 }

// retireIfIdle retires an actor that has been idle for long enough.
func (a *lockActor) retireIfIdle() bool {
	a.wakeAt = 0
	if now := a.rt.Now(); a.idleSince != 0 && now >= a.idleSince+a.rt.cfg.Idle {
		if a.retire() {
			return true
		}
		a.idleSince = now // a request is on its way
	}
	return false
}

// otherKind handles a request for another kind of lock, which Redis would store under the same key in another form.
// While this actor is in use, the request is refused. Otherwise this actor makes way for a new actor, which gets the
// requests in their order.
func (a *lockActor) otherKind(call *request.Call) {
	if !a.idle() || a.owners.InUse() {
		a.accepted = call
		a.rt.refuse(call, machine.Invalid, inUseText(a, call.LockKind()))
		return
	}
	a.adapter.Retires(a.machine, a.closing)
	a.letGo()
	a.ending = &ending{returned: []*request.Call{}, sent: math.MaxUint64}
	a.ending.receive(a, call, nil)
}

// endAll notifies all holders, refuses all waiting requests, and returns the machine that it replaces. It reads only
// the lists of that machine, since its other state may be broken.
func (a *lockActor) endAll(reason machine.Reason, detail string) (before machine.Machine) {
	holders, pending := a.machine.Outstanding()
	before, term := a.machine, a.machine.Summary().Term
	a.machine = a.adapter.Fresh()
	a.until.Store(0)
	for _, holder := range holders {
		lost := machine.Answer{HoldID: holder.ID, Reason: reason, Detail: detail}
		a.perform(&machine.Effect{Kind: machine.NotifyLost, Ref: holder.Ref, Term: term, Answer: lost})
	}
	for _, ref := range pending {
		a.perform(&machine.Effect{Kind: machine.Reply, Ref: ref, Answer: request.Refusal(ref.(*request.Call).Op, reason, detail)})
	}
	return before
}

// cleanUp starts the release of everything that the lock may hold in Redis; cleanedUp is sent for each cleanup
// that has ended.
func (a *lockActor) cleanUp() {
	for _, each := range a.ending.cleanups {
		each.Run(func(certain bool) {
			if !certain {
				a.rt.server.LeaveToExpire(a.rt.Now() + each.TTL)
			}
			a.rt.Deliver(a.pid, cleanedUp{})
		})
	}
}

// late handles a reply after the actor was given up: the cleanups must run again if its command may have changed Redis
// after them.
func (a *lockActor) late(reply *kinds.Reply) {
	if a.adapter.Late(reply) {
		a.ending.pendingCleanups += len(a.ending.cleanups)
		a.cleanUp()
	}
}

// settleLate handles a message that reaches an actor after the actor has stopped: it refuses a request, and settles a
// reply of Redis.
func (r *Runtime) settleLate(m any, sender *actor.PID) {
	if reply, ok := unrepeated(m).(*kinds.Reply); ok {
		if a := reply.To.(*lockActor); a.ending != nil { // its state no longer changes
			a.late(reply)
		}
		return
	}
	if entering, ok := m.(*shell.Entering); ok {
		if a, ok := entering.Tenant.(*lockActor); ok {
			a.gate.Close()
			a.unlist() // see claim
		}
		return
	}
	r.refuseAny(m, sender, machine.Closed, closedText)
}

// receive handles a message to a lock actor that is ending. It refuses requests, or returns them to the guardian if the
// actor leaves for another kind. It counts finished cleanups; abandon ends the wait for them.
func (e *ending) receive(a *lockActor, m any, sender *actor.PID) {
	if _, stopping := m.(*actor.Stopping); stopping {
		if e.returned != nil && a.gate.Enter() { // the guardian has not stopped it, and takes no kindChange now
			for _, call := range e.returned {
				a.rt.tooLate(call)
			}
		}
		return
	}
	a.accepted = m
	switch m := m.(type) {
	case *request.Call:
		if e.returned == nil {
			a.rt.refuse(m, e.reason, e.detail)
		} else {
			e.returned = append(e.returned, m)
			a.rt.toGuardian(&kindChange{a, e.returned, a.seen})
		}
	case *kinds.Reply:
		a.late(m)
	case *inspection:
		a.refuseInspection(m, e.reason, e.detail)
	case cleanedUp:
		e.pendingCleanups--
	case abandon:
		a.adapter.Abandon()
		e.pendingCleanups = 0
	}
	e.check(a)
}

// check asks the guardian to stop the actor once the actor has seen all requests and awaits no cleanup.
func (e *ending) check(a *lockActor) {
	if e.pendingCleanups <= 0 && a.seen >= e.sent && !e.stopAsked {
		e.stopAsked = true
		a.rt.toGuardian(&retired{a.pid})
	}
}

// A lock actor that crashes is restarted with its state and goes on. One that
// crashes more than crashLimit times within crashWindow is given up.
const (
	crashLimit  = 10
	crashWindow = 10 * time.Second
)

// Begins implements delivery.CrashHandler. The next message may reuse the memory of the last message (see
// request.NewCountCall), so the pointers to the last message are cleared.
func (a *lockActor) Begins() { a.counted, a.accepted = nil, nil }

// Crashed implements delivery.CrashHandler. The message that was being handled is answered or repeated, unless it was
// accepted already. An actor that crashes again and again is given up.
func (a *lockActor) Crashed(swallowed any, sender *actor.PID, reason any) {
	a.rt.host.Error("a lock actor crashed", "lock", a.observer.Label(), "panic", reason)
	m := unrepeated(swallowed)
	call, isCall := m.(*request.Call)
	if isCall && a.counted != swallowed {
		a.counted = swallowed // the crash came before the actor itself saw it
		a.seen++
	}
	const detail = "the actor crashed while it handled the request"
	switch {
	case a.accepted == m:
	case a.ending != nil:
		a.ending.receive(a, m, sender)
	case a.repeat(swallowed, sender):
	case isCall:
		a.rt.refuse(call, machine.Crashed, detail)
	default:
		if m, ok := m.(*inspection); ok {
			a.refuseInspection(m, machine.Crashed, detail)
		}
	}
	now := a.rt.Now()
	a.crashes = append(slices.DeleteFunc(a.crashes, func(at machine.Instant) bool { return at < now-crashWindow }), now)
	switch {
	case a.ending != nil:
		a.ending.check(a)
	case len(a.crashes) > crashLimit:
		a.rt.host.Error("a lock actor crashes again and again, and is given up", "lock", a.observer.Label(), "crashes", len(a.crashes))
		a.giveUp(machine.Crashed, "the actor crashed too often and was given up", true)
	}
}

// repeat sends the message of the crash to the actor again, unless another component will resend it, and reports
// whether it has sent the message. It repeats replies of Redis, messages of other actors, and requests that free
// something: their sender may have gone. The message is repeated until it is handled, or the actor is given up.
func (a *lockActor) repeat(swallowed any, sender *actor.PID) bool {
	switch m := unrepeated(swallowed).(type) {
	case *kinds.Reply, *actor.Terminated, unlocked, listening, *transferred, suspicion, shutdown, abandon:
		return a.rt.Deliver(a.pid, &again{m})
	case *request.Call:
		return m.Op.Frees() && a.gate.Enter() && // the repeated message counts as one more request
			a.rt.Deliver(a.pid, &actor.MessageEnvelope{Message: &again{m}, Sender: sender})
	}
	return false
}
