package request

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Op is what a Call asks for.
type Op uint8

// The operations of a Call. Every Call gets one Outcome.
const (
	OpAcquire Op = iota
	// OpRelease ends a hold, gives permits back, or counts a latch down.
	OpRelease
	OpCancel
	OpForceRelease
	OpInspect
	OpEnsure
	// OpExtend gives a hold another lease; if Lease is 0, the lease of the watchdog.
	OpExtend
	// OpReleaseID gives back a permit by its id.
	OpReleaseID
	// OpSet sets how many permits there are, or the count of a latch.
	OpSet
	// OpAdd adds permits to a semaphore.
	OpAdd
	// OpDrain takes all free permits of a semaphore.
	OpDrain
	// OpDelete deletes a semaphore or a latch.
	OpDelete
	// OpList asks only the lock actor, which answers without asking Redis.
	OpList
)

// operations says for each operation whether it frees something, and the kind of its refusal.
var operations = [OpList + 1]struct {
	frees   bool
	refusal machine.AnswerKind
}{
	OpAcquire:      {false, machine.NotGranted},
	OpRelease:      {true, machine.NotFreed},
	OpCancel:       {true, machine.NotDone},
	OpForceRelease: {false, machine.NotDone},
	OpInspect:      {false, machine.NotDone},
	OpEnsure:       {false, machine.NotDone},
	OpExtend:       {false, machine.NotDone},
	OpReleaseID:    {true, machine.NotFreed},
	OpSet:          {false, machine.NotDone},
	OpAdd:          {false, machine.NotDone},
	OpDrain:        {false, machine.NotDone},
	OpDelete:       {false, machine.NotDone},
	OpList:         {false, machine.NotDone},
}

// Frees reports whether the operation frees something, and so must be carried out even if its requester has gone.
func (op Op) Frees() bool { return operations[op].frees }

// Call is a request about a lock, a semaphore or a latch. A goroutine makes its Call itself, which spares it protobuf
// and proto.actor's futures; the guardian turns each message into a Call (see requestMessages). A lock actor knows no
// other requests.
type Call struct {
	Op Op
	// Try makes an OpAcquire try once and not wait.
	Try bool
	// NoReentry refuses a re-entry.
	NoReentry bool
	// Leads marks the Acquire of an Elect, whose wait and hold may last for days.
	Leads bool
	// DropsMinimum: an OpRelease is for the first grant of a hold, which no requester has received, so its minimum time
	// ends.
	DropsMinimum bool
	// RunsErrands: the caller may run a command.
	RunsErrands bool
	// Unwatched: the death of an owner would not end the hold of an OpAcquire.
	Unwatched bool
	// Withdrawn: the caller has given up.
	Withdrawn atomic.Bool
	Kind      messages.Kind
	Mode      messages.Mode
	Name      string
	// Members are the members of a MultiLock, which has no name.
	Members *Members

	// Lease is the fixed lease of an OpAcquire or an OpExtend; 0 for none.
	Lease time.Duration
	// MaxHold is the max hold of an OpAcquire; 0 for none.
	MaxHold time.Duration
	// AtLeast is the minimum time of the hold of an OpAcquire; 0 for none.
	AtLeast time.Duration
	// Wait bounds the wait of an OpAcquire; 0 for no limit.
	Wait time.Duration
	// Note is the text that other processes see with the hold; "" for none.
	Note string
	// Owner makes an Acquire the re-entry of a hold that an earlier Call got.
	Owner machine.Owner
	// Holder is notified when the hold is at risk, lost or extended. An OpRelease that is to have a span has a Holder,
	// too.
	Holder Holder

	// HoldID is the hold to release, to ensure or to extend.
	HoldID uint64
	// Within is the time for which an ensured hold must stay valid.
	Within time.Duration
	// Permit contains the arguments for an expirable semaphore. For other kinds it is nil if a goroutine has made the
	// Call.
	Permit *Permit
	// Count contains the arguments for a semaphore or a latch; nil for other kinds.
	Count *Count
	// Owners are the owners that an OpForceRelease releases; nil for the present holders.
	Owners []string
	// Target is the Acquire that an OpCancel withdraws.
	Target *Call

	// By gets the answer; nil for a goroutine, which finds the answer in Future.
	By Requester
	// Future takes the Outcome. If the caller runs errands, Future may take an errand first: a caller that would only
	// wait may as well run the command, which spares waking another goroutine.
	Future Future
	actorFields
}

// actorFields are the fields of a Call that only the lock actor writes.
type actorFields struct {
	// RequestID is the number of an Acquire in the machine.
	RequestID atomic.Uint64
	// Record is the lock actor's record of an owner that is an actor; nil until there is a record.
	Record any
	// Until is the end of the lease of the hold that was granted.
	Until *atomic.Int64
	// Since is the time at which the request was handled or, after a grant, granted.
	Since machine.Instant
}

// Outcome answers a Call.
type Outcome struct {
	machine.Answer
	// Owner is the owner to name in a later Call that re-enters the hold.
	Owner machine.Owner
	// Holder is notified about the hold: the Call's own Holder, or for a re-entry the Holder of the Call that was
	// granted the hold.
	Holder Holder
	// Until is the end of the hold's lease, on the system's clock. It is kept up to date
	// while the hold lasts.
	Until *atomic.Int64
	// Status answers an Inspect, and an OpList if the lock is in use.
	Status *messages.Status
}

// Holder is notified about its hold by the lock actor. Its methods must not block.
type Holder interface {
	LeaseLost(reason machine.Reason, detail string)
	LeaseAtRisk(until machine.Instant, detail string)
	// Bounded notes that the hold has another end; bound is the end of its own fixed lease or max hold, 0 for none.
	Bounded(bound machine.Instant)
	// Stack returns the program counters of the call that took the lock; nil if they are not kept.
	Stack() []uintptr
	// Parent returns the context of the request, for its spans.
	Parent() context.Context
}

// Requester has made a request. It gets the answer, and the notifications about the hold.
type Requester interface {
	// Answered delivers the one answer to a request, and reports whether it was taken. The answer is valid until
	// Answered returns; the same holds for Lost and AtRisk.
	Answered(from Sender, call *Call, a *machine.Answer) (taken bool)
	// Inspected answers an Inspect.
	Inspected(from Sender, call *Call, status *messages.Status)
	// Lost and AtRisk notify a holder about its hold.
	Lost(from Sender, call *Call, a *machine.Answer)
	AtRisk(from Sender, call *Call, a *machine.Answer)
	// Parent returns the context with the span that the spans of the request belong to; nil if there is none.
	Parent(call *Call) context.Context
	// Owner returns the actor that the request belongs to, and the process that it had when the request was posted.
	// Both are nil if there is no such actor; life is also nil for an actor that was dead, or is on another node.
	Owner() (pid *actor.PID, life actor.Process)
	// Awaits reports whether the answer has a receiver.
	Awaits() bool
	// MessageType is the type of the message that made the request.
	MessageType() string
}

// Sender sends messages to requesters. A Runtime is a Sender.
type Sender interface {
	// DeliverTo sends a message if the PID still has the process life, or any process if life is nil, and reports
	// whether the message was taken.
	DeliverTo(life actor.Process, pid *actor.PID, message any) (taken bool)
	// Foreign reports whether a PID belongs to a process on another node.
	Foreign(pid *actor.PID) bool
	Now() machine.Instant
}

func (call *Call) Requester() Requester {
	if call.By == nil {
		return Goroutine{}
	}
	return call.By
}

// LockKind returns the kind of the lock, for metrics and logs.
func (call *Call) LockKind() messages.Kind {
	if call.Members != nil {
		return messages.Kind_KIND_MULTI
	}
	return call.Kind
}

// Requested implements faultinject.Request.
func (call *Call) Requested() (messageType, lock string) {
	return call.Requester().MessageType(), call.Name
}

// Goroutine is the requester of a Call that a goroutine has made.
type Goroutine struct{}

func (Goroutine) Answered(_ Sender, call *Call, a *machine.Answer) (taken bool) {
	o := NewOutcome()
	o.Answer = *a
	if a.Kind == machine.Granted {
		o.Owner, o.Until = call.Owner, call.Until
		if call.Permit != nil {
			o.Until = &call.Permit.Until
		}
		if root, ok := a.FirstRef.(*Call); ok {
			o.Holder = root.Holder
		}
	}
	return call.Complete(o)
}

func (Goroutine) Inspected(_ Sender, call *Call, s *messages.Status) {
	o := NewOutcome()
	o.Status = s
	call.Complete(o)
}

func (Goroutine) Lost(_ Sender, call *Call, a *machine.Answer) {
	if call.Holder != nil {
		call.Holder.LeaseLost(a.Reason, a.Detail)
	}
}

func (Goroutine) AtRisk(_ Sender, call *Call, a *machine.Answer) {
	if call.Holder != nil {
		call.Holder.LeaseAtRisk(a.Until, a.Detail)
	}
}

func (Goroutine) Parent(call *Call) context.Context {
	if call.Holder == nil {
		return nil
	}
	return call.Holder.Parent()
}

func (Goroutine) Owner() (*actor.PID, actor.Process) { return nil, nil }
func (Goroutine) Awaits() bool                       { return true }
func (Goroutine) MessageType() string                { return "*request.Call" }

// Unawaited is the requester of a Call whose answer is not needed.
type Unawaited struct{ Goroutine }

func (Unawaited) Answered(Sender, *Call, *machine.Answer) (taken bool) { return true }

// Complete delivers the answer, which belongs to the caller from now on, and reports whether the caller is still there.
// An errand that the caller has not begun is handed back.
func (call *Call) Complete(o *Outcome) (taken bool) {
	unrun, taken := call.Future.Complete(o)
	if unrun != nil {
		unrun.HandBack()
	}
	return taken
}

// MayRun reports whether the caller waits longer than any command takes, so that it may run a command; left is the rest
// of the lease. A command has a deadline, but the client ignores the deadline while it waits for a connection that it
// opens for another command.
func (call *Call) MayRun(left time.Duration) bool {
	switch call.Op {
	case OpAcquire:
		return !call.Try && call.Wait == 0
	case OpRelease:
		return left >= longestDial // the caller returns when the lease ends, at the latest
	}
	return false
}

// longestDial is the time in which rueidis must open a connection, unless its user has set another.
const longestDial = 5 * time.Second

// WaitsUntil returns when the wait of a request that is made now ends; 0 for a wait without limit.
func (call *Call) WaitsUntil(now machine.Instant) machine.Instant {
	if call.Wait <= 0 || call.Wait > math.MaxInt64-now {
		return 0
	}
	return now + call.Wait
}

// AsRequested returns the lock as the request ref names it, if ref is a Call.
func AsRequested(ref any, label string) *messages.Lock {
	named := &messages.Lock{Name: label}
	if call, is := ref.(*Call); is {
		named.Kind, named.Mode = call.LockKind(), call.Mode
	}
	return named
}

// About returns a new Call with operation op on the same lock. Its Target is call.
func (call *Call) About(op Op, holdID uint64) *Call {
	return &Call{Op: op, Kind: call.Kind, Mode: call.Mode, Name: call.Name, Members: call.Members, HoldID: holdID, Target: call}
}

// GiveBack returns a Call that releases a grant which the caller has not received.
func (call *Call) GiveBack(grant *machine.Answer) *Call {
	back := call.About(OpRelease, grant.HoldID)
	back.DropsMinimum = call.BeganHold(grant)
	return back
}

// BeganHold reports whether the grant began a hold, and was not a re-entry.
func (call *Call) BeganHold(grant *machine.Answer) bool { return grant.FirstRef == any(call) }

// Refusal returns the answer to a request that is refused.
func Refusal(op Op, reason machine.Reason, detail string) machine.Answer {
	return machine.Answer{Kind: operations[op].refusal, Reason: reason, TTL: -1, Detail: detail}
}

// IgnoreDeadLetterLogging implements a marker of proto.actor.
func (*Call) IgnoreDeadLetterLogging() {}
