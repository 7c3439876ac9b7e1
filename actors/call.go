package actors

import (
	"context"
	"sync/atomic"
	"time"

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
	// OpReleaseID gives back a permit by its id, and OpSetPermits sets how many permits there are.
	OpReleaseID
	OpSetPermits
	// OpList asks only the lock actor, and only what it knows without Redis.
	OpList
)

// frees reports whether the operation frees something.
func (op Op) frees() bool { return op == OpRelease || op == OpReleaseID || op == OpCancel }

// Call is a request by a goroutine of this process. It spares the blocking API protobuf and
// proto.actor's futures; a lock actor treats it like the corresponding message.
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
	// Permit is for the permits that expire; nil for a lock.
	Permit *Permit
	// Owners are those that an OpForceRelease is meant for; nil for those that hold the lock now.
	Owners []string
	// Target is the Acquire that an OpCancel withdraws.
	Target *Call

	// future takes the Outcome. If the caller lends its goroutine, it takes a command first: a
	// caller that would only wait may as well run the command, which spares waking another
	// goroutine.
	future future
	id     atomic.Uint64
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
	// Stack returns the program counters of whoever took the lock; nil if they are not kept.
	Stack() []uintptr
	// Parent returns the context of the request, for its spans.
	Parent() context.Context
}

func (call *Call) asked() Op { return call.Op }

func (call *Call) parent() context.Context {
	if call.Holder == nil {
		return nil
	}
	return call.Holder.Parent()
}

func (call *Call) kind() messages.Kind { return kindOf(call) }

func (call *Call) leads() bool { return call.Leads }

func (call *Call) since() lock.Instant { return call.from }

func (call *Call) answered(s *lockState, a lock.Answer) {
	o := &Outcome{Answer: a}
	if a.Kind == lock.Granted {
		call.from = s.now
		o.Owner, o.Until = call.Owner, s.until
		if call.Permit != nil {
			o.Until = &call.Permit.Until
		}
		if root, ok := a.FirstRef.(*Call); ok {
			o.Holder = root.Holder
		}
	}
	if !call.complete(o) && a.Kind == lock.Granted {
		s.giveBack(a.HoldID, call.Mode)
	}
}

func (call *Call) lost(_ *lockState, a lock.Answer) {
	if call.Holder != nil {
		call.Holder.LeaseLost(a.Reason, a.Detail)
	}
}

func (call *Call) atRisk(_ *lockState, a lock.Answer) {
	if call.Holder != nil {
		call.Holder.LeaseAtRisk(a.Until, a.Detail)
	}
}

func (call *Call) over(*lockState) {}

func (call *Call) key() lockKey {
	if call.Members != nil {
		return lockKey{name: call.Members.id, made: ofMembers}
	}
	return keyOf(call.Kind, call.Name)
}

func (call *Call) inspected(_ *lockState, s *messages.Status) {
	call.complete(&Outcome{Status: s})
}

// complete delivers the answer, and reports whether the caller is still there. A worker runs a
// lent command that the caller has not begun.
func (call *Call) complete(o *Outcome) (taken bool) {
	unrun, taken := call.future.complete(o)
	if unrun != nil {
		unrun.rt.lenders.Add(-1)
		unrun.rt.redis.Run(unrun.call)
	}
	return taken
}

// refuse answers a call that cannot be carried out.
func (call *Call) refuse(reason lock.Reason, detail string) {
	call.complete(&Outcome{Answer: refusal(call.Op, reason, detail)})
}

// refusal is the answer to a request that is refused, for each kind of request.
func refusal(op Op, reason lock.Reason, detail string) lock.Answer {
	kind := lock.NotDone
	switch op {
	case OpAcquire:
		kind = lock.NotGranted
	case OpRelease, OpReleaseID:
		kind = lock.NotFreed
	}
	return lock.Answer{Kind: kind, Reason: reason, TTL: -1, Detail: detail}
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
		r.redis.RunHere(within, &job.call)
		r.lenders.Add(-1)
	}
}

// submit hands a call to its lock actor and returns at once.
func (r *Runtime) submit(call *Call) {
	if s := r.table.get(call.key()); s != nil && s.gate.enter() {
		s.process.SendUserMessage(s.pid, call) // also when it has stopped: its mailbox refuses then
		return
	}
	if !r.deliver(r.guardian, call) {
		r.tooLate(call, nil)
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
