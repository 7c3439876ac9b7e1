package actors

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/middleware"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

const closedText = "the Lockkeeper system is closed"

// Do submits a call and waits for its outcome; answered is false if ctx ends first.
func (r *Runtime) Do(ctx context.Context, call *request.Call) (out request.Outcome, answered bool) {
	ended, within := ctx.Done(), context.Background()
	if r.observer.Traces() {
		within = ctx // the client may make its own spans
	}
	call.RunsErrands = ended == nil
	r.submit(call)
	for {
		errand, answer := call.Future.Await(ended)
		switch {
		case errand != nil:
			errand.Run(within)
		case answer == nil:
			return out, false
		default:
			out = *answer
			answer.Free()
			return out, true
		}
	}
}

// submit hands a call to its lock actor and returns at once.
func (r *Runtime) submit(call *request.Call) {
	key := kinds.KeyOf(call)
	a := r.locks.Get(key)
	if a == nil || !a.gate.Enter() {
		a = r.claimFree(key, call)
	}
	if a != nil {
		a.process.SendUserMessage(a.pid, call) // also to an actor that has stopped: its mailbox refuses the call
	} else if !r.toGuardian(call) {
		r.tooLate(call)
	}
}

// Withdraw cancels an Acquire whose context has ended, and returns at once. A grant that has arrived is released; the
// lock actor releases a grant that arrives later. The outcome is empty if there is no answer yet.
func (r *Runtime) Withdraw(acquire *request.Call) request.Outcome {
	acquire.Withdrawn.Store(true) // in case the cancel overtakes the acquire
	r.submit(acquire.About(request.OpCancel, 0))
	out := acquire.Future.Leave()
	if out.Kind == machine.Granted {
		r.submit(acquire.GiveBack(&out.Answer))
	}
	return out
}

// refuse answers a request that no lock actor carries out.
func (r *Runtime) refuse(call *request.Call, reason machine.Reason, detail string) {
	name, isLatch := call.Name, call.IsLatch()
	if !call.Requester().Awaits() {
		what := "lock"
		switch {
		case isLatch:
			what = "latch"
		case call.Count != nil:
			what = "semaphore"
		}
		r.host.Warn("a request without a sender was refused", what, name, "detail", detail)
	}
	if call.Op == request.OpAcquire { // first: after the answer, a goroutine may use the memory of the call again
		r.observer.Refused(call.LockKind(), reason)
	}
	refusal := request.Refusal(call.Op, reason, detail)
	givesBack := call.Op == request.OpRelease && call.Count != nil && reason != machine.Invalid
	if !call.Requester().Answered(r, call, &refusal) && givesBack {
		r.kinds.Forget(name, isLatch, detail) // no requester learns of the refusal
	}
}

// tooLate refuses a request to a system that has stopped.
func (r *Runtime) tooLate(call *request.Call) { r.refuse(call, machine.Closed, closedText) }

// refuseAny refuses a request that has not been handled.
func (r *Runtime) refuseAny(m any, sender *actor.PID, reason machine.Reason, detail string) {
	if a, ok := m.(*middleware.Admitted); ok {
		m, sender = a.Message, a.Sender
	}
	call, ok := unrepeated(m).(*request.Call)
	if !ok {
		call, _ = r.rules.Read(m, sender)
	}
	if call != nil {
		r.refuse(call, reason, detail)
	}
}

// stray handles a message that the lock actor does not take, or that came after the actor has left. A request goes back
// to the guardian.
func (r *Runtime) stray(ctx actor.Context) {
	m := ctx.Message()
	if call, ok := unrepeated(m).(*request.Call); ok {
		if !r.toGuardian(call) {
			r.tooLate(call)
		}
	} else if request.IsMessage(m) { // sent to the lock actor itself
		r.toGuardian(request.Envelope(m, ctx.Sender(), ctx.MessageHeader()))
	}
}

// frees reports whether a message is a request that frees something, such as a release.
func (r *Runtime) frees(m any, sender *actor.PID) bool {
	call, err := r.rules.Read(m, sender)
	return call != nil && err == nil && call.Op.Frees()
}

// refuseMiddleware refuses a request on which the middleware has panicked, or which left the middleware after the
// guardian had stopped.
func (r *Runtime) refuseMiddleware(m any, sender *actor.PID, panicked any) {
	if panicked == nil {
		r.refuseAny(m, sender, machine.Closed, closedText)
		return
	}
	r.refuseAny(m, sender, machine.Crashed, fmt.Sprintf("the middleware panicked while handling the request: %v", panicked))
}

// DoCount submits a call about a semaphore or a latch, and waits for its answer; answered is false if ctx ends first. A
// grant that comes after that is released. The call must not be used again.
func (r *Runtime) DoCount(ctx context.Context, call *request.CountCall) (a request.CountAnswer, answered bool) {
	r.submit(&call.Call)
	if _, out := call.Future.Await(ctx.Done()); out != nil {
		a = request.CountAnswerOf(out)
		out.Free()
		if a.Reason == 0 { // a refusal may come from another goroutine, which may still read the call
			call.Release()
		}
		return a, true
	}
	if call.Op == request.OpAcquire {
		call.Withdrawn.Store(true) // in case the cancel overtakes the acquire
		r.submit(call.About(request.OpCancel, 0))
	}
	out := call.Future.Leave()
	return request.CountAnswerOf(&out), out.Kind != 0
}

// Lend implements kinds.Actor. It offers the call as an errand to a goroutine that waits: the caller whose request is
// being handled, or with forWaiter the first waiter. It reports whether the goroutine takes the errand.
func (a *lockActor) Lend(forWaiter bool, call redisclient.Call) bool {
	helper, waiting := a.helper, false
	if helper == nil && forWaiter {
		helper, waiting = a.machine.FirstWaiter().(*request.Call)
	}
	if helper == nil || !helper.RunsErrands || !helper.MayRun(a.machine.Summary().LeaseUntil-a.now) {
		return false
	}
	errand := a.rt.redis.Errand(call)
	if errand == nil {
		return false
	}
	if !helper.Future.Offer(errand, waiting) {
		errand.Drop()
		return false
	}
	a.helper = nil
	return true
}
