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

// retirement is the state of a lock actor that was given up, or leaves for another kind. The actor refuses what is
// still in its mailbox, and stops when that is empty and the key is released.
type retirement struct {
	reason machine.Reason
	detail string
	// sent is the number of requests that were sent before the gate was closed.
	sent uint64
	// cleanups remove everything of the machine from Redis; the list never changes.
	// pendingCleanups is the number of runs of them that have not ended.
	cleanups        []kinds.Cleanup
	pendingCleanups int
	// stopAsked: the guardian has been asked to stop the actor.
	stopAsked bool
	// returned are the requests that go back to the guardian, if the actor leaves for another kind; nil if it does not.
	returned []*request.Call
}

// letGo ends the watches and the alarm of an actor that leaves, once that is certain: one that stays needs them. Before
// that comes Retires, while no other actor can be started for the name.
func (s *lockActor) letGo() {
	s.owners.Forget(s.watcher())
	s.stopAlarm()
}

// giveUp answers all requests and notifies all holders, releases the key, and lets the actor leave. If awaits is false,
// the actor stops without waiting for Redis to confirm the cleanups.
func (s *lockActor) giveUp(reason machine.Reason, detail string, awaits bool) {
	s.stopAlarm()
	s.adapter.Retires(s.machine, false)
	s.rt.locks.Remove(s)
	s.retirement = &retirement{reason: reason, detail: detail, sent: s.gate.Close()}
	if own, stops := s.adapter.(kinds.Stopper); stops {
		s.step(func(m machine.Machine, now machine.Instant) { own.Stop(m, now, reason, detail, awaits) })
		s.performAll()
	}
	s.retirement.cleanups = s.adapter.Cleanups(s.endAll(reason, detail))
	s.retirement.pendingCleanups = len(s.retirement.cleanups)
	for call := range s.inspections {
		s.perform(&machine.Effect{Kind: machine.Reply, Ref: call, Answer: request.Refusal(request.OpInspect, reason, detail)})
	}
	s.inspections = nil
	s.observeStep()
	s.stopListening()
	s.cleanUp()
	if !awaits {
		s.retirement.pendingCleanups = 0
	}
	s.retirement.check(s)
}

// retire lets the actor leave, unless requests are on their way to it: the next lock gets its shell if there are many,
// else the guardian stops it. It does that with middleware, too, whose actor it ends then.
func (s *lockActor) retire() bool {
	s.adapter.Retires(s.machine, s.closing)
	if !s.gate.CloseIf(s.seen) {
		return false
	}
	s.letGo()
	if !s.rt.crowded.Load() || len(s.rt.cfg.Middleware) > 0 {
		s.rt.locks.Remove(s)
		s.rt.toGuardian(&retired{s.pid})
		return true
	}
	s.gone()
	s.shell.Leave()
	return true
}

// noteIdle notes an actor that has become idle, if there are many, and asks the one to leave that has been idle longest.
// Actors of names that are used once would all stay for Config.Idle. The one that leaves does so on this goroutine, and if
// its next lock becomes idle meanwhile, the next one after it: rarely a second, since a grant takes a round trip to Redis.
func (s *lockActor) noteIdle() {
	if s.rt.crowded.Load() && !s.inRing.Swap(true) {
		if oldest := s.rt.idleRing.Push(s); oldest != nil {
			oldest.inRing.Store(false)
			oldest.post(leaveIfIdle{oldest})
		}
	}
}

// idle reports whether the machine has nothing to do and no state to keep, and no inspection is pending.
func (s *lockActor) idle() bool { return s.machine.Idle() && len(s.inspections) == 0 }

// retireIfIdle retires an actor that has been idle for long enough.
func (s *lockActor) retireIfIdle() bool {
	s.wakeAt = 0
	if now := s.rt.Now(); s.idleSince != 0 && now >= s.idleSince+s.rt.cfg.Idle {
		if s.retire() {
			return true
		}
		s.idleSince = now // a request is on its way
	}
	return false
}

// otherFormat handles a request for another kind of lock of the same name, which Redis would keep in another format under
// the same key. It is refused while this one is in use; else this actor leaves for another, which gets the requests
// in their order.
func (s *lockActor) otherFormat(call *request.Call) {
	if !s.idle() || s.owners.InUse() {
		s.accepted = call
		s.rt.refuse(call, machine.Invalid, inUseText(s, call.LockKind()))
		return
	}
	s.adapter.Retires(s.machine, s.closing)
	s.letGo()
	s.retirement = &retirement{returned: []*request.Call{}, sent: math.MaxUint64}
	s.retirement.receive(s, call, nil)
}

// endAll notifies all holders and refuses all waiting requests. It needs nothing of the machine but its lists, and
// returns it.
func (s *lockActor) endAll(reason machine.Reason, detail string) (before machine.Machine) {
	holders, pending := s.machine.Outstanding()
	before, term := s.machine, s.machine.Summary().Term
	s.machine = s.adapter.Fresh()
	s.until.Store(0)
	for _, holder := range holders {
		lost := machine.Answer{HoldID: holder.ID, Reason: reason, Detail: detail}
		s.perform(&machine.Effect{Kind: machine.NotifyLost, Ref: holder.Ref, Term: term, Answer: lost})
	}
	for _, ref := range pending {
		s.perform(&machine.Effect{Kind: machine.Reply, Ref: ref, Answer: request.Refusal(ref.(*request.Call).Op, reason, detail)})
	}
	return before
}

// cleanUp starts the release of everything that the lock may hold in Redis; cleanedUp is sent for each cleanup
// that has ended.
func (s *lockActor) cleanUp() {
	for _, each := range s.retirement.cleanups {
		each.Run(func(certain bool) {
			if !certain {
				s.rt.server.LeaveToExpire(s.rt.Now() + each.TTL)
			}
			s.rt.Deliver(s.pid, cleanedUp{})
		})
	}
}

// late handles a reply after the actor was given up: its command may have changed Redis after the cleanups.
func (s *lockActor) late(reply *kinds.Reply) {
	if s.adapter.Late(reply) {
		s.retirement.pendingCleanups += len(s.retirement.cleanups)
		s.cleanUp()
	}
}

// late handles what has reached an actor after it had stopped: a request is refused, and a reply of Redis settled.
func (r *Runtime) late(m any, sender *actor.PID) {
	if reply, ok := unrepeated(m).(*kinds.Reply); ok {
		if s := reply.To.(*lockActor); s.retirement != nil { // its state does not change any more
			s.late(reply)
		}
		return
	}
	if e, ok := m.(*shell.Entering); ok {
		if s, ok := e.Tenant.(*lockActor); ok {
			s.gate.Close()
			s.unlist() // see claim
		}
		return
	}
	r.refuseAny(m, sender, machine.Closed, closedText)
}

// receive handles a message to a lock actor that was given up: it refuses requests, or returns them to the guardian if
// it leaves for another kind; it counts finished cleanups; abandon ends the wait for them.
func (r *retirement) receive(s *lockActor, m any, sender *actor.PID) {
	if _, stopping := m.(*actor.Stopping); stopping {
		if r.returned != nil && s.gate.Enter() { // it is not the guardian that stops it, and that takes no formatChange now
			for _, call := range r.returned {
				s.rt.tooLate(call)
			}
		}
		return
	}
	s.accepted = m
	switch m := m.(type) {
	case *request.Call:
		if r.returned == nil {
			s.rt.refuse(m, r.reason, r.detail)
		} else {
			r.returned = append(r.returned, m)
			s.rt.toGuardian(&formatChange{s, r.returned, s.seen})
		}
	case *kinds.Reply:
		s.late(m)
	case *inspection:
		s.refuseInspection(m, r.reason, r.detail)
	case cleanedUp:
		r.pendingCleanups--
	case abandon:
		s.adapter.Abandon()
		r.pendingCleanups = 0
	}
	r.check(s)
}

// check asks the guardian to stop the actor once it has seen all requests and awaits no cleanup.
func (r *retirement) check(s *lockActor) {
	if r.pendingCleanups <= 0 && s.seen >= r.sent && !r.stopAsked {
		r.stopAsked = true
		s.rt.toGuardian(&retired{s.pid})
	}
}

// A lock actor that crashes is restarted with its state and goes on. One that
// crashes more than crashLimit times within crashWindow is given up.
const (
	crashLimit  = 10
	crashWindow = 10 * time.Second
)

// Begins implements delivery.CrashHandler. The next message may reuse the memory of the last one (see
// request.NewCountCall), so the pointers to that are cleared.
func (s *lockActor) Begins() { s.counted, s.accepted = nil, nil }

// Crashed implements delivery.CrashHandler. The message that was being handled is answered or repeated, unless it had
// already been taken over. An actor that does nothing but crash is given up.
func (s *lockActor) Crashed(swallowed any, sender *actor.PID, reason any) {
	s.rt.host.Error("a lock actor crashed", "lock", s.observer.Label(), "panic", reason)
	m := unrepeated(swallowed)
	call, isCall := m.(*request.Call)
	if isCall && s.counted != swallowed {
		s.counted = swallowed // the crash came before the actor itself saw it
		s.seen++
	}
	const detail = "the actor crashed while it handled the request"
	switch {
	case s.accepted == m:
	case s.retirement != nil:
		s.retirement.receive(s, m, sender)
	case s.repeat(swallowed, sender):
	case isCall:
		s.rt.refuse(call, machine.Crashed, detail)
	default:
		if m, ok := m.(*inspection); ok {
			s.refuseInspection(m, machine.Crashed, detail)
		}
	}
	now := s.rt.Now()
	s.crashes = append(slices.DeleteFunc(s.crashes, func(at machine.Instant) bool { return at < now-crashWindow }), now)
	switch {
	case s.retirement != nil:
		s.retirement.check(s)
	case len(s.crashes) > crashLimit:
		s.rt.host.Error("a lock actor crashes again and again, and is given up", "lock", s.observer.Label(), "crashes", len(s.crashes))
		s.giveUp(machine.Crashed, "the actor crashed too often and was given up", true)
	}
}

// repeat sends the message of the crash to the actor again if no other component will resend it, and reports whether
// it did. It repeats replies of Redis, messages of other actors, and requests that free something: their sender may
// have gone. The message is repeated until it is handled, or the actor is given up.
func (s *lockActor) repeat(swallowed any, sender *actor.PID) bool {
	switch m := unrepeated(swallowed).(type) {
	case *kinds.Reply, *actor.Terminated, unlocked, listening, *transferred, suspicion, shutdown, abandon:
		return s.rt.Deliver(s.pid, &again{m})
	case *request.Call:
		return m.Op.Frees() && s.gate.Enter() && // it counts as one more request
			s.rt.Deliver(s.pid, &actor.MessageEnvelope{Message: &again{m}, Sender: sender})
	}
	return false
}
