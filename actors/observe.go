package actors

import (
	"context"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The snapshots of locks and requests for package observe, which measures, traces and logs.

// load counts the requests that wait and the locks that are held.
func (r *Runtime) load(ctx context.Context) (waiting int64, held int, ok bool) {
	locks, complete := r.Locks(ctx)
	for _, each := range locks {
		waiting += each.Waiters
		if each.HeldHere {
			held++
		}
	}
	return waiting, held, complete
}

// Observer returns the Observer that measures, traces and logs for the System.
func (r *Runtime) Observer() *observe.Observer { return r.observer }

// about returns the data of a request that is observed after its answer, when the Call may be in use again.
func (a *lockActor) about(call *request.Call) observe.Request {
	of := observe.Request{Kind: call.LockKind(), Leads: call.Leads, Since: call.Since}
	if a.rt.observer.Traces() {
		of.Parent = call.Requester().Parent(call)
	}
	return of
}

// hold describes a hold for a line in the log.
func (a *lockActor) hold(call *request.Call, term uint64, now machine.Instant) observe.Hold {
	h := observe.Hold{Kind: call.LockKind(), Ref: call, Client: a.client, Term: term, Age: now - call.Since}
	if id, ok := call.PermitID(); ok {
		h.Permit = id
	}
	if owner := ownerOf(call); owner != nil {
		h.Holder = owner.PID
	}
	return h
}

// observeStep passes the measurements of a step to the observer.
func (a *lockActor) observeStep() {
	if !a.rt.observer.Measures() {
		return
	}
	kind := a.storedAs
	now := a.machine.Summary()
	if now.FirstRef != nil {
		kind = now.FirstRef.(*request.Call).LockKind()
	}
	a.observer.StepEnded(now.Holds, now.Waiters, kind)
}

// firstWaiter returns the request whose wait is logged when it lasts long; nil if there is none.
func (a *lockActor) firstWaiter() *request.Call {
	if call, ok := a.machine.FirstWaiter().(*request.Call); ok && a.rt.cfg.LongWait > 0 && !call.Leads && call.Count == nil {
		return call
	}
	return nil
}

// firstHolder returns the request whose hold is logged when it lasts long; nil if there is none.
func (a *lockActor) firstHolder() *request.Call {
	if now := a.machine.Summary(); now.Holds > 0 && a.rt.cfg.LongHold > 0 && !now.FirstRef.(*request.Call).Leads {
		return now.FirstRef.(*request.Call)
	}
	return nil
}

// startOf returns a pointer to Call.Since, the time of the request or grant; nil if call is nil.
func startOf(call *request.Call) *machine.Instant {
	if call == nil {
		return nil
	}
	return &call.Since
}

// remindAt returns when a wait or hold will have lasted long, if it goes on.
func (a *lockActor) remindAt() (at machine.Instant, wanted bool) {
	return a.observer.RemindAt(startOf(a.firstWaiter()), startOf(a.firstHolder()))
}

// remind logs a wait and a hold that have lasted long, and reports whether it has logged anything.
func (a *lockActor) remind() (logged bool) {
	now, waits, holds := a.rt.Now(), a.firstWaiter(), a.firstHolder()
	waitIsLong, holdIsLong := a.observer.LongTimes(now, startOf(waits), startOf(holds))
	if waitIsLong && !a.inspectsForLongWait() {
		a.inspect(wakeUp{a}, &request.Call{Op: request.OpInspect, By: longWait{actor: a}})
	}
	if holdIsLong {
		var stack func() []uintptr
		if holds.Holder != nil {
			stack = holds.Holder.Stack
		}
		a.observer.LongHold(a.hold(holds, a.machine.Summary().Term, now), stack)
	}
	return waitIsLong || holdIsLong
}

// inspectsForLongWait reports whether an Inspect for a line about a long wait is under way. A second Inspect would log
// the same line.
func (a *lockActor) inspectsForLongWait() bool {
	for call := range a.inspections {
		if _, asks := call.By.(longWait); asks {
			return true
		}
	}
	return false
}

// longWait is the requester of an Inspect that reads the holder of the lock for which requests wait, to log it.
type longWait struct {
	request.Goroutine
	actor *lockActor
}

// Answered logs that the inspection has failed.
func (w longWait) Answered(_ request.Sender, _ *request.Call, a *machine.Answer) (taken bool) {
	if wait, waits := w.actor.longWait(); waits {
		w.actor.observer.LongWaitUnexplained(wait, a.Reason, a.Detail)
	}
	return true
}

func (w longWait) Inspected(_ request.Sender, _ *request.Call, status *messages.Status) {
	if wait, waits := w.actor.longWait(); waits {
		w.actor.observer.LongWait(wait, status)
	}
}

// longWait returns the wait to log, unless the lock was granted meanwhile.
func (a *lockActor) longWait() (wait observe.Wait, waits bool) {
	by := a.firstWaiter()
	if by == nil {
		return wait, false
	}
	return observe.Wait{Kind: by.LockKind(), For: a.rt.Now() - by.Since, Waiters: a.machine.Summary().Waiters}, true
}
