package actors

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/owners"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// step applies an event to a copy of the machine, and then replaces the machine by the copy. A panic on the way leaves
// the machine as it was.
func (a *lockActor) step(event kinds.Event) {
	a.now = a.rt.Now()
	before, next := a.machine, a.adapter.Draft(a.machine)
	event(next, a.now)
	a.machine = next
	a.adapter.Replaced(before, next)
}

// handle applies an event and carries out its effects. source is the message that the event came from.
func (a *lockActor) handle(source any, event kinds.Event) {
	a.step(event)
	a.accepted = source
	a.carryOut()
	a.helper = nil
}

// undelivered handles an answer that no requester received: it gives back what the answer granted or drained, and
// repeats a release or count-down that Redis rejected, or reports a release that came too late.
func (a *lockActor) undelivered(call *request.Call, answer *machine.Answer) {
	switch {
	case answer.Kind == machine.Granted && call.IsLatch(): // there is nothing to give back
	case answer.Kind == machine.Granted, call.Op == request.OpDrain && answer.N != 0:
		a.giveBack(call, answer, answer.N)
	case answer.Kind == machine.NotFreed && answer.Reason == machine.Rejected && call.Count != nil:
		a.giveBack(call, answer, call.Count.N)
	case answer.Kind == machine.NotFreed && answer.Reason == machine.Closed && call.Count != nil:
		a.rt.kinds.Forget(call.Name, call.IsLatch(), answer.Detail)
	}
}

// giveBack releases a hold or n permits, or counts down. performAll, which is running, carries out the effects next.
func (a *lockActor) giveBack(call *request.Call, answer *machine.Answer, n int64) {
	a.helper = nil // the helper belongs to another request
	release := &request.Call{
		Op: request.OpRelease, Kind: call.Kind, Mode: call.Mode, By: request.Unawaited{}, DropsMinimum: call.BeganHold(answer),
	}
	if call.Count != nil {
		release.Count = &request.Count{N: n, ID: call.Count.ID, IfExists: true}
	}
	a.step(a.adapter.Event(release, answer.HoldID, 0))
	a.until.Store(int64(a.machine.Summary().LeaseUntil))
}

// carryOut carries out the effects of the machine, including effects that a crash has left undone.
func (a *lockActor) carryOut() {
	a.show() // before a holder is notified of its hold
	a.performAll()
	a.observeStep()
	if (a.closing || a.inspects) && a.idle() {
		a.retire()
		return
	}
	a.setAlarm()
}

func (a *lockActor) performAll() {
	e := a.rt.effects.Get().(*machine.Effect)
	for a.machine.NextEffect(e) {
		a.perform(e)
	}
	*e = machine.Effect{}
	a.rt.effects.Put(e)
	a.adapter.Settled(a.machine)
}

// perform carries out one effect. A panic, for example in a process of the host that gets an answer, must not keep the
// other effects from being carried out. Holders and requesters are notified before anything is counted or logged.
func (a *lockActor) perform(e *machine.Effect) {
	defer a.survive()
	switch e.Kind {
	case machine.Reply:
		a.reply(e.Ref.(*request.Call), &e.Answer)
	case machine.NotifyLost:
		call := e.Ref.(*request.Call)
		if owner := ownerOf(call); owner != nil {
			owner.Lost = e.Answer.HoldID
		}
		a.rt.notes.Remove(call)
		call.Requester().Lost(a.rt, call, &e.Answer)
		a.observer.Lost(a.hold(call, e.Term, a.rt.Now()), e.Answer.Reason, e.Answer.Detail, a.rt.closed.Load())
	case machine.NotifyAtRisk:
		call := e.Ref.(*request.Call)
		call.Requester().AtRisk(a.rt, call, &e.Answer)
		a.observer.AtRisk(a.hold(call, e.Term, a.now), e.Answer.Until-a.now, e.Answer.Detail)
	case machine.HoldEnded:
		call := e.Ref.(*request.Call)
		a.ownerDone(ownerOf(call))
		a.rt.notes.Remove(call)
		a.observer.HoldEnded(a.about(call), call, a.now-call.Since)
	case machine.Subscribe:
		a.listen(e.Term)
	case machine.Unsubscribe:
		a.stopListening()
	case machine.LeaveToExpire:
		a.rt.server.LeaveToExpire(e.Answer.Until)
	case machine.Send:
		// The command's script runs in Redis: internal/kinds → internal/backend → internal/protocol → scripts/*.lua.
		// The reply comes back as a kinds.Reply.
		a.adapter.Send(e.Ref, a.now)
	default: // an effect that only this kind has
		a.adapter.Perform(e, a.now)
	}
}

// listen subscribes to the channels where a waiter of that term is notified of the release.
func (a *lockActor) listen(term uint64) {
	a.subscribed = a.adapter.Channels(term)
	for _, channel := range a.subscribed {
		systemOf(channel).subscriber.tell(&subscribe{to: a, channel: channel, term: term})
	}
}

func (a *lockActor) stopListening() {
	for _, channel := range a.subscribed {
		systemOf(channel).subscriber.tell(&unsubscribe{to: a, channel: channel})
	}
	a.subscribed = nil
}

// ReceivesTransfers implements kinds.Actor.
func (a *lockActor) ReceivesTransfers(term uint64) bool {
	if !a.rt.subscriber.sharded {
		return a.rt.subscriber.receivesTransfers()
	}
	return !slices.ContainsFunc(a.adapter.Channels(term), func(channel backend.Channel) bool {
		on := systemOf(channel).subscriber
		return !on.subscriptions.Confirmed(on.of(channel)[0])
	})
}

// reply answers a request. The call must not be read afterwards, since a goroutine may use its memory again.
func (a *lockActor) reply(call *request.Call, answer *machine.Answer) {
	of := a.about(call)
	if a.helper == call {
		a.helper = nil
	}
	a.rt.server.Outlive(answer.Until)
	if answer.Kind == machine.Granted {
		if answer.Permits != nil {
			call.Permitted(answer.Permits.First, answer.Until)
		}
		call.Since, call.Until = a.now, a.until
		a.rt.notes.Add(call, answer.FirstRef, a.machine.Summary().Term)
	}
	a.ownerAnswered(call, answer)
	if !call.Requester().Answered(a.rt, call, answer) {
		a.undelivered(call, answer)
	}
	a.observer.Answered(of, a.now, answer)
	if answer.Kind == machine.ForceReleased && answer.Count > 0 {
		a.suspectSharedKeys()
	}
}

// ownerAnswered records that a request of an owner is answered. A re-entry is part of the hold that it joined, and
// permits of a semaphore are not a hold.
func (a *lockActor) ownerAnswered(call *request.Call, answer *machine.Answer) {
	owner := ownerOf(call)
	if owner == nil {
		return
	}
	if answer.Kind == machine.Granted {
		owner.Lost = 0
	}
	if answer.Kind == machine.NotGranted || answer.Kind == machine.Granted && !call.BeganHold(answer) {
		a.ownerDone(owner)
	}
}

// ownerDone ends one use of an owner, which may be nil.
func (a *lockActor) ownerDone(owner *owners.Owner) {
	if owner != nil && a.ctx != nil { // without a context the actor is being given up, and its watches end with it
		a.owners.EndUse(a.watcher(), owner)
	}
}

// survive, deferred, ends a panic and logs it.
func (a *lockActor) survive() {
	if panicked := recover(); panicked != nil {
		a.rt.host.Error("panic while a lock's decision was carried out", "lock", a.observer.Label(), "panic", panicked)
	}
}

// setAlarm sets the alarm for the next time at which the machine has work, a line is to be logged, or the actor has
// been idle for long enough. An alarm that goes off too early costs only one message, so setAlarm moves the alarm only
// to an earlier time, and most steps leave it alone.
func (a *lockActor) setAlarm() {
	at, wanted := a.machine.NextWake()
	if remindAt, too := a.remindAt(); too && (!wanted || remindAt < at) {
		at, wanted = remindAt, true
	}
	if checkAt, too := a.owners.NextCheck(a.now, a.rt.cfg.Watchdog); too && (!wanted || checkAt < at) {
		at, wanted = checkAt, true
	}
	if a.idle() && !a.owners.InUse() {
		if a.idleSince == 0 {
			a.idleSince = a.rt.Now()
			a.noteIdle()
		}
		at, wanted = a.idleSince+a.rt.cfg.Idle, true
	} else {
		a.idleSince = 0
	}
	if wanted && (a.wakeAt == 0 || at < a.wakeAt) {
		a.wakeAt = at
		a.alarm.Set(at)
	}
}

func (a *lockActor) stopAlarm() {
	a.alarm.Cancel()
	a.wakeAt = 0
}
