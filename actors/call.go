package actors

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Op is what a Call asks for.
type Op uint8

// The operations of a Call. Every Call gets one Outcome.
const (
	OpAcquire Op = iota
	OpRelease
	OpCancel
	OpForceRelease
	OpInspect
	OpEnsure
	// OpReleaseID gives back a permit by its id.
	OpReleaseID
	// OpSetPermits sets how many permits there are, or the count of a latch.
	OpSetPermits
	// OpAddPermits and OpDrain are for semaphores.
	OpAddPermits
	OpDrain
	// OpList asks only the lock actor, and only what it knows without Redis.
	OpList
)

// frees reports whether the operation frees something, and so must be carried out even if its requester has gone.
func (op Op) frees() bool { return op == OpRelease || op == OpReleaseID || op == OpCancel }

// Call is a request about a lock, a semaphore or a latch. A goroutine makes one itself, which spares it protobuf and
// proto.actor's futures; the guardian makes one of each message (see requestMessages). A lock actor knows no other
// requests.
type Call struct {
	Op   Op
	Kind messages.Kind
	Mode messages.Mode
	Name string
	// Members are those of a MultiLock, instead of a name.
	Members *Members

	// For OpAcquire: the fixed lease, the max hold and the wait, each 0 for none. Try tries once
	// and does not wait.
	Lease   time.Duration
	MaxHold time.Duration
	Wait    time.Duration
	Try     bool
	// NoReentry refuses a re-entry. Leads is that of an Elect: its wait and its hold may last for days.
	NoReentry, Leads bool
	// lends: the caller may run a command; withdrawn: it has left. Here they take no memory.
	lends     bool
	withdrawn atomic.Bool
	// Owner makes an Acquire the re-entry of a hold that an earlier Call got.
	Owner lock.Owner
	// Holder is notified of what happens to the hold. An OpRelease that is to have a span has one, too.
	Holder Holder

	// HoldID is the hold to release or to ensure; Within is how long it must stay valid.
	HoldID uint64
	Within time.Duration
	// Permit is for an expirable semaphore, and Count for a semaphore or a latch; nil for others.
	Permit *Permit
	Count  *Count
	// Owners are those that an OpForceRelease is meant for; nil for those that hold the lock now.
	Owners []string
	// Target is the Acquire that an OpCancel withdraws.
	Target *Call

	// by is who gets the answer; nil for a goroutine, which finds it in the future.
	by requester
	// future takes the Outcome. If the caller lends its goroutine, it takes a command first: a
	// caller that would only wait may as well run the command, which spares waking another
	// goroutine.
	future future
	id     atomic.Uint64
	// owner is what the lock actor knows of the actor that the request belongs to, nil until it has watched that; and until
	// is how long the hold that was granted is good for.
	owner any
	until *atomic.Int64
	// from is when an Acquire or a Release was asked for, and then when it was granted; the lock actor's.
	from lock.Instant
}

// Outcome answers a Call.
type Outcome struct {
	lock.Answer
	// Owner is the owner to name in a later Call that re-enters the hold.
	Owner lock.Owner
	// Holder is notified of what happens to the hold: the Call's own Holder, or for a re-entry
	// that of the Call that was granted the hold.
	Holder Holder
	// Until is the end of the hold's validity, on the system's clock. It is kept up to date
	// while the hold lasts.
	Until *atomic.Int64
	// Status answers an Inspect, and an OpList if the lock is in use.
	Status *messages.Status
}

// Holder is notified about its hold by the lock actor. Its methods must not block.
type Holder interface {
	LeaseLost(reason lock.Reason, detail string)
	LeaseAtRisk(until lock.Instant, detail string)
	// Stack returns the program counters of the call that took the lock; nil if they are not kept.
	Stack() []uintptr
	// Parent returns the context of the request, for its spans.
	Parent() context.Context
}

// requester is what made a request: it gets the answer, and what happens to the hold afterwards.
type requester interface {
	// answered delivers the one answer to a request, and reports whether it was taken.
	answered(from sender, call *Call, a *lock.Answer) (taken bool)
	// inspected answers an Inspect.
	inspected(from sender, call *Call, status *messages.Status)
	// lost and atRisk notify a holder about its hold.
	lost(from sender, call *Call, a *lock.Answer)
	atRisk(from sender, call *Call, a *lock.Answer)
	// parent returns the context with the span that the spans of the request belong to; nil if it has none.
	parent(call *Call) context.Context
}

// sender sends what a requester is to get. A Runtime is one.
type sender interface {
	// deliver sends a message and reports whether it was taken.
	deliver(pid *actor.PID, message any) (taken bool)
	// Foreign reports whether a PID is that of a process on another node.
	Foreign(pid *actor.PID) bool
	Now() lock.Instant
	// unanswered logs that a request without a sender was refused.
	unanswered(call *Call, detail string)
}

func (call *Call) requester() requester {
	if call.by == nil {
		return goroutine{}
	}
	return call.by
}

// kind is that of the lock, for metrics and logs.
func (call *Call) kind() messages.Kind {
	if call.Members != nil {
		return messages.Kind_KIND_MULTI
	}
	return call.Kind
}

// key finds the lock actor.
func (call *Call) key() lockKey {
	if call.Members != nil {
		return lockKey{name: call.Members.id, made: ofMembers}
	}
	return keyOf(call.Kind, call.Name)
}

// Requested implements faultinject.Request.
func (call *Call) Requested() (messageType, lock string) {
	if m, is := call.by.(*byMessage); is && m.row != nil {
		return m.row.message.String(), call.Name
	}
	return fmt.Sprintf("%T", call), call.Name
}

// goroutine is the requester of a Call that a goroutine has made.
type goroutine struct{}

func (goroutine) answered(_ sender, call *Call, a *lock.Answer) (taken bool) {
	o := newOutcome()
	o.Answer = *a
	if a.Kind == lock.Granted {
		o.Owner, o.Until = call.Owner, call.until
		if call.Permit != nil {
			o.Until = &call.Permit.Until
		}
		if root, ok := a.FirstRef.(*Call); ok {
			o.Holder = root.Holder
		}
	}
	return call.complete(o)
}

func (goroutine) inspected(_ sender, call *Call, s *messages.Status) {
	o := newOutcome()
	o.Status = s
	call.complete(o)
}

func (goroutine) lost(_ sender, call *Call, a *lock.Answer) {
	if call.Holder != nil {
		call.Holder.LeaseLost(a.Reason, a.Detail)
	}
}

func (goroutine) atRisk(_ sender, call *Call, a *lock.Answer) {
	if call.Holder != nil {
		call.Holder.LeaseAtRisk(a.Until, a.Detail)
	}
}

func (goroutine) parent(call *Call) context.Context {
	if call.Holder == nil {
		return nil
	}
	return call.Holder.Parent()
}

// complete delivers the answer, which belongs to the caller from now on, and reports whether that is still there. A
// worker runs a lent command that the caller has not begun.
func (call *Call) complete(o *Outcome) (taken bool) {
	unrun, taken := call.future.complete(o)
	if unrun != nil {
		unrun.lender.handBack(unrun.call)
	}
	return taken
}

// refuse answers a request that no lock actor carries out.
func (r *Runtime) refuse(call *Call, reason lock.Reason, detail string) {
	if call.Op == OpAcquire { // first: once it is answered, a goroutine may use its memory again
		r.observer.Refused(call.kind(), reason)
	}
	a := refusal(call.Op, reason, detail)
	call.requester().answered(r, call, &a)
}

// tooLate refuses a request to a system that has stopped.
func (r *Runtime) tooLate(call *Call) { r.refuse(call, lock.Closed, closedText) }

const closedText = "the Lockkeeper system is closed"

// refusal is the answer to a request that is refused.
func refusal(op Op, reason lock.Reason, detail string) lock.Answer {
	return lock.Answer{Kind: refusalKind(op), Reason: reason, TTL: -1, Detail: detail}
}

func refusalKind(op Op) lock.AnswerKind {
	switch op {
	case OpAcquire:
		return lock.NotGranted
	case OpRelease, OpReleaseID:
		return lock.NotFreed
	}
	return lock.NotDone
}

// mayRun reports whether the caller waits longer than any command takes, so that it may run one;
// left is the rest of the lease. A command has a deadline, but the client ignores it while it waits
// for a connection that it opens for another command.
func (call *Call) mayRun(left time.Duration) bool {
	switch call.Op {
	case OpAcquire:
		return !call.Try && call.Wait == 0
	case OpRelease:
		return left >= longestDial // it returns when the lease ends, at the latest
	}
	return false
}

// longestDial is how long rueidis gives a connection to be opened, unless its user has said
// otherwise.
const longestDial = 5 * time.Second

// Do submits a call and waits for its outcome; answered is false if ctx ends first.
func (r *Runtime) Do(ctx context.Context, call *Call) (out Outcome, answered bool) {
	ended, within := ctx.Done(), context.Background()
	if r.Traces() {
		within = ctx // the client may have spans of its own
	}
	call.lends = ended == nil
	r.submit(call)
	for {
		job, answered := call.future.await(ended, &out)
		if job == nil {
			return out, answered
		}
		job.lender.run(within, &job.call)
	}
}

// submit hands a call to its lock actor and returns at once.
func (r *Runtime) submit(call *Call) {
	if s := r.table.get(call.key()); s != nil && s.gate.enter() {
		s.process.SendUserMessage(s.pid, call) // also when it has stopped: its mailbox refuses then
		return
	}
	if !r.deliver(r.guardian, call) {
		r.tooLate(call)
	}
}

// Withdraw cancels an Acquire whose context has ended, and returns at once. A grant that has
// arrived is released; the lock actor releases one that arrives later. The outcome is empty if
// there is no answer yet.
func (r *Runtime) Withdraw(acquire *Call) Outcome {
	acquire.withdrawn.Store(true) // in case the cancel overtakes the acquire
	r.submit(acquire.about(OpCancel, 0))
	out := acquire.future.leave()
	if out.Kind == lock.Granted {
		r.submit(acquire.about(OpRelease, out.HoldID))
	}
	return out
}

// about is another call about the lock of an Acquire.
func (call *Call) about(op Op, holdID uint64) *Call {
	return &Call{Op: op, Kind: call.Kind, Mode: call.Mode, Name: call.Name, Members: call.Members, HoldID: holdID, Target: call}
}
