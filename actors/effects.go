package actors

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/owners"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// step applies an event to a copy of the machine and, if that went well, replaces the machine by it. A panic on
// the way leaves it as it was.
func (s *lockActor) step(event kinds.Event) {
	s.now = s.rt.Now()
	before, next := s.machine, s.adapter.Draft(s.machine)
	event(next, s.now)
	s.machine = next
	s.adapter.Replaced(before, next)
}

// handle applies an event and carries out what follows from it. source is the
// message that the event came from.
func (s *lockActor) handle(source any, event kinds.Event) {
	s.step(event)
	s.accepted = source
	s.carryOut()
	s.helper = nil
}

// undelivered handles an answer that no requester received: it gives back what the answer granted or drained, and
// repeats a release or count-down that Redis rejected, or reports one that came too late.
func (s *lockActor) undelivered(call *request.Call, a *machine.Answer) {
	switch {
	case a.Kind == machine.Granted && call.IsLatch(): // there is nothing to give back
	case a.Kind == machine.Granted, call.Op == request.OpDrain && a.N > 0:
		s.giveBack(call, a, a.N)
	case a.Kind == machine.NotFreed && a.Reason == machine.Rejected && call.Count != nil:
		s.giveBack(call, a, call.Count.N)
	case a.Kind == machine.NotFreed && a.Reason == machine.Closed && call.Count != nil:
		s.rt.kinds.Forget(call.Name, call.IsLatch(), a.Detail)
	}
}

// giveBack releases a hold or n permits, or counts down. It does not carry out the effects: performAll, which is
// running, does that next.
func (s *lockActor) giveBack(call *request.Call, a *machine.Answer, n int64) {
	s.helper = nil // it belongs to another request
	release := &request.Call{Op: request.OpRelease, Kind: call.Kind, Mode: call.Mode, By: request.Unawaited{}, DropsMinimum: call.BeganHold(a)}
	if call.Count != nil {
		release.Count = &request.Count{N: n, ID: call.Count.ID, IfExists: true}
	}
	s.step(s.adapter.Event(release, a.HoldID, 0))
	s.until.Store(int64(s.machine.Summary().LeaseUntil))
}

// carryOut carries out the effects of the machine, also those that a crash has left undone.
func (s *lockActor) carryOut() {
	s.show() // before a holder is notified of its hold
	s.performAll()
	s.observeStep()
	if (s.closing || s.inspects) && s.idle() {
		s.retire()
		return
	}
	s.setAlarm()
}

func (s *lockActor) performAll() {
	e := s.rt.effects.Get().(*machine.Effect)
	for s.machine.NextEffect(e) {
		s.perform(e)
	}
	*e = machine.Effect{}
	s.rt.effects.Put(e)
	s.adapter.Settled(s.machine)
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
		s.adapter.Send(e.Ref, s.now)
	default: // an effect that only this kind has
		s.adapter.Perform(e, s.now)
	}
}

// listen subscribes to the channels where a waiter of that term is notified of the release.
func (s *lockActor) listen(term uint64) {
	s.subscribed = s.adapter.Channels(term)
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

// ReceivesTransfers implements kinds.Actor.
func (s *lockActor) ReceivesTransfers(term uint64) bool {
	if !s.rt.subscriber.sharded {
		return s.rt.subscriber.receivesTransfers()
	}
	return !slices.ContainsFunc(s.adapter.Channels(term), func(e backend.Channel) bool {
		on := systemOf(e).subscriber
		return !on.subscriptions.Confirmed(on.of(e)[0])
	})
}

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

// ownerAnswered records that a request of an owner is answered. A re-entry is part of the hold that it joined, and
// permits of a semaphore are no hold.
func (s *lockActor) ownerAnswered(call *request.Call, a *machine.Answer) {
	w := ownerOf(call)
	if w == nil {
		return
	}
	if a.Kind == machine.Granted {
		w.Lost = 0
	}
	if a.Kind == machine.NotGranted || a.Kind == machine.Granted && !call.BeganHold(a) {
		s.ownerDone(w)
	}
}

// ownerDone ends one use of an owner, which may be nil.
func (s *lockActor) ownerDone(w *owners.Owner) {
	if w != nil && s.ctx != nil { // without a context the actor is being given up, and its watches with it
		s.owners.EndUse(s.watcher(), w)
	}
}

// survive, deferred, ends a panic and logs it.
func (s *lockActor) survive() {
	if panicked := recover(); panicked != nil {
		s.rt.host.Error("panic while a lock's decision was carried out", "lock", s.observer.Label(), "panic", panicked)
	}
}

// setAlarm sets the alarm for when the lock or a line for the log needs it, or when the actor has been idle for long
// enough. An alarm that goes off too early costs one message; so it is only ever moved forward, which spares most steps
// from touching it.
func (s *lockActor) setAlarm() {
	at, wanted := s.machine.NextWake()
	if remindAt, too := s.remindAt(); too && (!wanted || remindAt < at) {
		at, wanted = remindAt, true
	}
	if checkAt, too := s.owners.NextCheck(s.now, s.rt.cfg.Watchdog); too && (!wanted || checkAt < at) {
		at, wanted = checkAt, true
	}
	if s.idle() && !s.owners.InUse() {
		if s.idleSince == 0 {
			s.idleSince = s.rt.Now()
			s.noteIdle()
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
