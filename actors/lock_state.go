package actors

import (
	"math/rand/v2"
	"slices"
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
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockActor is the supervised actor of one lock, semaphore or latch. It owns the key in Redis. It turns requests,
// timers and the replies of Redis into events of a machine, for example a lock.Lock, which decides, and carries out the
// effects. lock_actor.go has the messages that it handles.
//
// A crash loses nothing: the actor is restarted with the same state, which an event changes only once it is complete.
// The actor alone touches the state, while it handles a message or after that has crashed. What is shared with others is
// marked; what never changes may be read by all.
type lockActor struct {
	rt  *Runtime
	key lockKey
	// label names the lock to people.
	label string
	pid   *actor.PID
	// process is the process of the PID; goroutines send to it without looking it up.
	process actor.Process

	// format is how the lock is written in Redis. Requests for another format of the
	// same key are refused while this one is in use.
	format messages.Kind
	// client is the client part of the owner field.
	client string
	// kind has what differs by kind of lock.
	kind kinds.Kind
	// members are the locks that it is made of; none if it is one lock on one key.
	members    []request.Member
	subscribed []backend.Channel

	// gate is shared with all senders to the actor; seen is the actor's side of it.
	gate delivery.Gate
	seen uint64

	alarm alarm.Alarm
	// wakeAt is when the alarm will go off, 0 when it is not set.
	wakeAt machine.Instant
	// idleSince is when the actor became idle, 0 while it is not.
	idleSince machine.Instant
	owners    *owners.Set // nil until an actor makes a request

	// until is shared with the holder: how long the hold is good for. A Hold may be kept for
	// longer than its lock actor lives, so it is no part of this struct.
	until *atomic.Int64

	// machine decides, and is replaced by every event; now is the time of the last event.
	machine machine.Machine
	now     machine.Instant
	// effect is the effect that is being performed. It is a field so that no effect is allocated.
	effect machine.Effect
	// inspections are the requests that await the state of the lock in Redis.
	inspections map[*request.Call]struct{}
	shown       records.Shown
	// observer measures, traces and logs what happens to the lock.
	observer observe.Lock

	// lender is the Call being handled, if its goroutine may be used for one command.
	lender *request.Call
	// ctx is the context of the message being handled, nil between messages.
	ctx actor.Context
	// counted is the message being handled, once it is counted as seen, and accepted once its handling is certain. After a
	// crash it is neither counted again nor refused.
	counted, accepted any
	crashes           []machine.Instant
	// closing: the System closes, and the actor leaves as soon as it has given everything back. inspects: it was started
	// for an inspection, and leaves when it has answered.
	closing, inspects bool
	// leaving is set once the lock is given up.
	leaving *leaving
}

func newLockState(rt *Runtime, key lockKey, kind messages.Kind, members *request.Members) *lockActor {
	s := &lockActor{rt: rt, key: key, label: key.name, format: kinds.Of(kind).Format, until: new(atomic.Int64)}
	s.alarm = rt.clocks.Alarm(rt.spawned.Add(1), s)
	spec := kinds.Spec{Traits: kinds.Of(kind), Name: key.name, Observer: &s.observer}
	switch key.made {
	case kinds.Members:
		s.label, s.members = members.String(), members.Sorted
		spec.Members, spec.Tokens = partsOf(members.Sorted), members.Fenced
	case kinds.Servers:
		systems := *rt.red.Load()
		spec.Servers = serversOf(systems)
		for _, each := range systems {
			s.members = append(s.members, request.Member{System: each, Name: key.name})
		}
	}
	s.kind, s.client = rt.kinds.New(spec, s)
	s.machine = s.kind.Fresh()
	s.observer = rt.observer.Lock(s.label)
	return s
}

// step applies an event to a copy of the machine and, if that went well, replaces the machine by it. A panic on
// the way leaves it as it was.
func (s *lockActor) step(event kinds.Event) {
	s.now = s.rt.Now()
	before, next := s.machine, s.kind.Draft(s.machine)
	event(next, s.now)
	s.machine = next
	s.kind.Replaced(before, next)
}

// handle applies an event and carries out what follows from it. source is the
// message that the event came from.
func (s *lockActor) handle(source any, event kinds.Event) {
	s.step(event)
	s.accepted = source
	s.carryOut()
	s.lender = nil
}

// undelivered handles an answer that no requester received: it gives back what the answer granted or drained, and
// repeats a release or count-down that Redis rejected, or reports one that came too late.
func (s *lockActor) undelivered(call *request.Call, a *machine.Answer) {
	switch {
	case a.Kind == machine.Granted && call.Kind == messages.Kind_KIND_LATCH: // there is nothing to give back
	case a.Kind == machine.Granted, call.Op == request.OpDrain && a.N > 0:
		s.giveBack(call, a, a.N)
	case a.Kind == machine.NotFreed && a.Reason == machine.Rejected && call.Count != nil:
		s.giveBack(call, a, call.Count.N)
	case a.Kind == machine.NotFreed && a.Reason == machine.Closed && call.Count != nil:
		s.rt.kinds.Forget(call.Name, call.Kind == messages.Kind_KIND_LATCH, a.Detail)
	}
}

// giveBack releases a hold or n permits, or counts down. It does not carry out the effects: performAll, which is
// running, does that next.
func (s *lockActor) giveBack(call *request.Call, a *machine.Answer, n int64) {
	s.lender = nil // it belongs to another request
	release := &request.Call{Op: request.OpRelease, Kind: call.Kind, Mode: call.Mode, By: request.Unawaited{}, DropsMinimum: call.BeganHold(a)}
	if call.Count != nil {
		release.Count = &request.Count{N: n, ID: call.Count.ID, IfExists: true}
	}
	s.step(s.kind.Event(release, a.HoldID, 0))
	s.until.Store(int64(s.machine.Summary().LeaseUntil))
}

// carryOut carries out the effects of the machine, also those that a crash has left undone.
func (s *lockActor) carryOut() {
	s.show() // before a holder hears of its hold
	s.performAll()
	s.observeStep()
	if (s.closing || s.inspects) && s.idle() {
		s.retire()
		return
	}
	s.setAlarm()
}

func (s *lockActor) performAll() {
	for s.machine.NextEffect(&s.effect) {
		s.perform(&s.effect)
	}
	s.effect = machine.Effect{}
	s.kind.Settled(s.machine)
}

// perform carries out one effect. A panic, for example in a process of the host that gets an answer, must not keep the
// other effects from being carried out. Holders and requesters are notified before anything is counted or logged.
func (s *lockActor) perform(e *machine.Effect) {
	defer s.survive()
	switch e.Kind {
	case machine.Reply:
		s.reply(e.Ref.(*request.Call), &e.Answer)
	case machine.NotifyLost:
		call := e.Ref.(*request.Call)
		if w := ownerOf(call); w != nil {
			w.Lost = e.Answer.HoldID
		}
		s.rt.notes.Remove(call)
		call.Requester().Lost(s.rt, call, &e.Answer)
		s.observer.Lost(s.hold(call, e.Term, s.rt.Now()), e.Answer.Reason, e.Answer.Detail, s.rt.closed.Load())
	case machine.NotifyAtRisk:
		call := e.Ref.(*request.Call)
		call.Requester().AtRisk(s.rt, call, &e.Answer)
		s.observer.AtRisk(s.hold(call, e.Term, s.now), e.Answer.Until-s.now, e.Answer.Detail)
	case machine.HoldEnded:
		call := e.Ref.(*request.Call)
		s.ownerDone(ownerOf(call))
		s.rt.notes.Remove(call)
		s.observer.HoldEnded(s.about(call), call, s.now-call.From)
	case machine.Subscribe:
		s.listen(e.Term)
	case machine.Unsubscribe:
		s.stopListening()
	case machine.LeaveToExpire:
		s.rt.server.LeaveToExpire(e.Answer.Until)
	case machine.Send:
		// The command's script runs in Redis: internal/kinds → internal/backend → internal/protocol → scripts/*.lua.
		// The reply comes back as a kinds.Reply.
		s.kind.Send(e.Ref, s.now)
	default: // an effect that only this kind has
		s.kind.Perform(e, s.now)
	}
}

// listen subscribes to the channels where a waiter of that term is notified of the release.
func (s *lockActor) listen(term uint64) {
	s.subscribed = s.kind.Channels(term)
	for _, e := range s.subscribed {
		systemOf(e).subscriber.tell(&subscribe{to: s, channel: e, term: term})
	}
}

func (s *lockActor) stopListening() {
	for _, e := range s.subscribed {
		systemOf(e).subscriber.tell(&unsubscribe{to: s, channel: e})
	}
	s.subscribed = nil
}

// HearsTransfers implements kinds.Actor.
func (s *lockActor) HearsTransfers(term uint64) bool {
	if !s.rt.subscriber.sharded {
		return s.rt.subscriber.hearsTransfers()
	}
	return !slices.ContainsFunc(s.kind.Channels(term), func(e backend.Channel) bool {
		on := systemOf(e).subscriber
		return !on.subscriptions.Confirmed(on.of(e)[0])
	})
}

// systemOf returns the system whose subscriber listens on a channel.
func systemOf(e backend.Channel) *Runtime { return e.Server.System.(*Runtime) }

// reply answers a request. The call must not be read afterwards: a goroutine may use its memory again.
func (s *lockActor) reply(call *request.Call, a *machine.Answer) {
	of := s.about(call)
	s.rt.server.Outlive(a.Until)
	if a.Kind == machine.Granted {
		if a.Permits != nil {
			call.Permitted(a.Permits.First, a.Until)
		}
		call.From, call.Until = s.now, s.until
		s.rt.notes.Add(call, a.FirstRef, s.machine.Summary().Term)
	}
	s.ownerAnswered(call, a)
	if !call.Requester().Answered(s.rt, call, a) {
		s.undelivered(call, a)
	}
	s.observer.Answered(of, s.now, a)
	if a.Kind == machine.ForceReleased && a.Count > 0 {
		s.suspectSharedKeys()
	}
}

// Begins implements delivery.CrashHandler. The next message may reuse the memory of the last one (see
// request.NewCountCall), so the pointers to that are cleared.
func (s *lockActor) Begins() { s.counted, s.accepted = nil, nil }

// began notes the message that is being handled, with its context.
func (s *lockActor) began(ctx actor.Context) (m any) {
	s.ctx, s.lender = ctx, nil
	m = unrepeated(ctx.Message())
	if _, is := m.(*request.Call); is {
		s.counted = ctx.Message()
		s.seen++
	}
	return m
}

// started notes the actor's PID; a restart changes nothing about that.
func (s *lockActor) started(pid *actor.PID) {
	if s.pid == nil {
		s.process, _ = s.rt.actor.ProcessRegistry.GetLocal(pid.Id)
		s.pid = pid
	}
}

// post sends the actor a wakeUp or a reply of Redis. It does not look the actor up: with many leases to
// renew, that was a fifth of the work. If the actor has stopped, its mailbox settles the reply (see
// package delivery).
func (s *lockActor) post(m any) {
	defer s.rt.host.Recover("a recipient panicked")
	s.process.SendUserMessage(s.pid, m)
}

// Replied implements kinds.Actor.
func (s *lockActor) Replied(r *kinds.Reply) { s.post(r) }

// Wake implements alarm.Sleeper.
func (s *lockActor) Wake() { s.post(wakeUp{}) }

// survive, deferred, ends a panic and logs it.
func (s *lockActor) survive() {
	if panicked := recover(); panicked != nil {
		s.rt.host.Error("panic while a lock's decision was carried out", "lock", s.label, "panic", panicked)
	}
}

// idle reports whether the machine has nothing to do and no state to keep, and no inspection is pending.
func (s *lockActor) idle() bool { return s.machine.Idle() && len(s.inspections) == 0 }

// retire asks the guardian to stop the actor, unless requests are on their way to it.
func (s *lockActor) retire() bool {
	s.kind.Retires(s.machine, s.closing) // before another actor may be started for the name
	if !s.gate.CloseIf(s.seen) {
		return false
	}
	s.owners.Forget(s.watcher())
	s.stopAlarm()
	s.rt.toGuardian(&retired{state: s})
	return true
}

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

// setAlarm sets the alarm for when the lock or a line for the log needs it, or when the actor has been idle for long
// enough. An alarm that goes off too early costs one message; so it is only ever moved forward, which spares most steps
// from touching it.
func (s *lockActor) setAlarm() {
	at, wanted := s.machine.NextWake()
	if remindAt, too := s.remindAt(); too && (!wanted || remindAt < at) {
		at, wanted = remindAt, true
	}
	if look, too := s.owners.NextLook(s.now, s.rt.cfg.Watchdog); too && (!wanted || look < at) {
		at, wanted = look, true
	}
	if s.idle() && !s.owners.InUse() {
		if s.idleSince == 0 {
			s.idleSince = s.rt.Now()
		}
		at, wanted = s.idleSince+s.rt.cfg.Idle, true
	} else {
		s.idleSince = 0
	}
	if !wanted || s.wakeAt != 0 && s.wakeAt <= at {
		return
	}
	s.wakeAt = at
	s.alarm.Set(at)
}

func (s *lockActor) stopAlarm() {
	s.alarm.Cancel()
	s.wakeAt = 0
}

// newID numbers a request. Numbers grow over the whole system, and their lower half is
// random: an id from an actor's earlier life fits nothing in a later one.
func (s *lockActor) newID() uint64 { return s.rt.requests.Add(1)<<20 | rand.Uint64N(1<<20) }
