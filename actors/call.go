package actors

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Op is what a Call asks for.
type Op uint8

// The operations of a Call; each is answered once.
const (
	OpAcquire Op = iota
	OpRelease
	OpCancel
	OpForceRelease
	OpInspect
	OpEnsure
)

// Call is a request by a goroutine of this process. It is the blocking API's way
// past protobuf and futures; a lock actor treats it like the message it stands for.
type Call struct {
	Op   Op
	Kind messages.Kind
	Mode messages.Mode
	Name string
	// Members are those of a MultiLock, instead of a name.
	Members *Members

	// Acquire: the fixed lease or 0, the bound of the hold or 0, and how long to
	// wait: Try asks once, else Wait, where 0 is without limit.
	Lease   time.Duration
	MaxHold time.Duration
	Wait    time.Duration
	Try     bool
	// Once refuses a re-entry.
	Once bool
	// Owner makes an Acquire the re-entry of a hold that an earlier Call got.
	Owner core.Owner
	// Holder is told what becomes of the hold.
	Holder Holder

	// HoldID is the hold to release or to ensure; Within how much of it is needed.
	HoldID uint64
	Within time.Duration
	// Target is the Acquire that a Cancel withdraws.
	Target *Call

	// slot takes the one Outcome; or first a command, if the caller lends its goroutine: one
	// that would only wait may as well run the command that it waits for. That spares waking
	// up another.
	slot  slot
	lends bool

	id        atomic.Uint64
	withdrawn atomic.Bool
}

// Outcome answers a Call.
type Outcome struct {
	core.Answer
	// Owner re-enters the hold when a later Call names it.
	Owner core.Owner
	// Holder is who will be told what becomes of the hold: the Call's own, or for a
	// re-entry that of the Call that was granted the hold.
	Holder Holder
	// Until is kept up to date while the hold lasts: how long it is good for, on the system's clock.
	Until *atomic.Int64
	// Status answers an Inspect.
	Status *messages.Status
}

// Holder is told about a hold by the lock actor; it must not block.
type Holder interface {
	LeaseLost(reason core.Reason, detail string)
	LeaseAtRisk(until core.Instant, detail string)
}

func (call *Call) asked() Op { return call.Op }

func (call *Call) answered(c *cell, a core.Answer) {
	o := Outcome{Answer: a}
	if a.Kind == core.Granted {
		o.Owner, o.Until = call.Owner, c.until
		if root, ok := a.Root.(*Call); ok {
			o.Holder = root.Holder
		}
	}
	if !call.put(o) && a.Kind == core.Granted {
		c.giveBack(a.HoldID, call.Mode)
	}
}

func (call *Call) lost(_ *cell, a core.Answer) {
	if call.Holder != nil {
		call.Holder.LeaseLost(a.Reason, a.Detail)
	}
}

func (call *Call) atRisk(_ *cell, a core.Answer) {
	if call.Holder != nil {
		call.Holder.LeaseAtRisk(a.Until, a.Detail)
	}
}

func (call *Call) over(*cell) {}

func (call *Call) key() lockKey {
	if call.Members != nil {
		return lockKey{name: call.Members.id, made: ofMembers}
	}
	return keyOf(call.Kind, call.Name)
}

func (call *Call) inspected(_ *cell, s *messages.Status) {
	call.put(Outcome{Status: s})
}

// put brings the caller its answer, and reports whether it has not left. A command that
// it was lent and has not begun is run by a worker.
func (call *Call) put(o Outcome) (taken bool) {
	unrun, taken := call.slot.put(o)
	if unrun != nil {
		unrun.rt.lenders.Add(-1)
		unrun.rt.redis.Run(unrun.call)
	}
	return taken
}

// refuse answers a call that cannot be carried out.
func (call *Call) refuse(reason core.Reason, detail string) {
	call.put(Outcome{Answer: refusal(call.Op, reason, detail)})
}

// refusal is the answer "no" to each kind of request.
func refusal(op Op, reason core.Reason, detail string) core.Answer {
	kind := core.NotDone
	switch op {
	case OpAcquire:
		kind = core.NotGranted
	case OpRelease:
		kind = core.NotFreed
	}
	return core.Answer{Kind: kind, Reason: reason, TTL: -1, Detail: detail}
}

// unbounded reports whether the caller waits for longer than any command takes, so that it
// may run one. A command has a deadline, but the client does not look at it while it waits
// for a connection that it opens for another.
func (call *Call) unbounded(lease time.Duration) bool {
	switch call.Op {
	case OpAcquire:
		return !call.Try && call.Wait == 0
	case OpRelease:
		return lease >= longestDial // that is when it returns at the latest
	}
	return false
}

// longestDial is more than rueidis gives a connection to be opened, 5 s, unless its user
// has said otherwise.
const longestDial = 10 * time.Second

// Do submits a call and waits for its outcome; answered is false if ctx ended first.
func (r *Runtime) Do(ctx context.Context, call *Call) (out Outcome, answered bool) {
	ended := ctx.Done()
	call.lends = ended == nil && call.unbounded(r.cfg.Lease)
	r.submit(call)
	for {
		job, out, answered := call.slot.take(ended)
		if job == nil {
			return out, answered
		}
		r.redis.RunHere(&job.call)
		r.lenders.Add(-1)
	}
}

// submit hands a call to its lock actor and returns at once.
func (r *Runtime) submit(call *Call) {
	if c := r.table.get(call.key()); c != nil && c.gate.enter() && r.deliver(c.pid, call) {
		return
	}
	if !r.deliver(r.guardian, call) {
		r.tooLate(call, nil)
	}
}

// Withdraw cancels an Acquire whose wait was ended by its context, wherever it is by
// now, and returns at once. A grant that has come is given back, and one that is still
// to come by the lock actor, since its caller has left. The outcome is empty if there is
// no answer yet.
func (r *Runtime) Withdraw(acquire *Call) Outcome {
	acquire.withdrawn.Store(true) // in case the cancel overtakes the acquire
	r.submit(acquire.about(OpCancel, 0))
	out := acquire.slot.leave()
	if out.Kind == core.Granted {
		r.submit(acquire.about(OpRelease, out.HoldID))
	}
	return out
}

// about is another call about the lock of an Acquire.
func (call *Call) about(op Op, holdID uint64) *Call {
	return &Call{Op: op, Kind: call.Kind, Mode: call.Mode, Name: call.Name, Members: call.Members, HoldID: holdID, Target: call}
}
