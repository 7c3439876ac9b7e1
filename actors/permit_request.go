package actors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// PermitOp is what is asked of a semaphore or a latch.
type PermitOp uint8

// The operations. On a latch, PermitAcquire waits until it is open, PermitRelease counts down, and
// PermitSet sets the count.
const (
	PermitAcquire PermitOp = iota
	PermitRelease
	PermitCancel
	PermitSet
	PermitAdd
	PermitDrain
	PermitInspect
)

// PermitRequest is a request about a semaphore, or about a latch.
type PermitRequest struct {
	Op    PermitOp
	Latch bool
	// Try tries once and does not wait. IfExists makes no semaphore.
	Try, IfExists bool

	Name string
	// N is how many permits. TTL is that of a semaphore that is made, and Wait bounds the wait for
	// permits; each is 0 for none.
	N         int64
	TTL, Wait time.Duration
	// ID is that of a count-down, if it has one.
	ID string

	// from is when it reached its actor.
	from lock.Instant
}

func (q *PermitRequest) request() *PermitRequest { return q }

// key finds the actor.
func (q *PermitRequest) key() lockKey {
	if q.Latch {
		return lockKey{name: q.Name, made: ofLatch}
	}
	return lockKey{name: q.Name, made: ofSemaphore}
}

// The limits of a request about a latch. Lua's numbers are exact up to 2^53.
const (
	mostCount int64 = 1_000_000_000_000
	// mostID is in bytes.
	mostID = 512
)

// Check returns an error if a request is not valid.
func (q *PermitRequest) Check() error {
	const most = math.MaxInt32 // Redisson's limit
	switch {
	case q.Latch && q.Op == PermitSet && (q.N < 1 || q.N > mostCount):
		return fmt.Errorf("the count is %d, and must be between 1 and %d", q.N, mostCount)
	case len(q.ID) > mostID:
		return fmt.Errorf("the id has %d bytes, and %d are allowed", len(q.ID), mostID)
	case q.Op <= PermitRelease && !q.Latch && (q.N < 1 || q.N > most):
		return fmt.Errorf("%d permits: a request is for 1 to %d", q.N, most)
	case q.Op == PermitSet && !q.Latch && (q.N < 0 || q.N > most):
		return fmt.Errorf("%d permits: a semaphore has 0 to %d", q.N, most)
	case q.Op == PermitAdd && (q.N < -most || q.N > most):
		return fmt.Errorf("%d more permits: at most %d can be added or taken away", q.N, most)
	case q.TTL != 0 && (q.TTL < MinLease || q.TTL > MaxLease):
		return fmt.Errorf("the TTL is %v, and must be between %v and %v", q.TTL, MinLease, MaxLease)
	case q.Wait < 0:
		return fmt.Errorf("the wait is %v, and must not be negative", q.Wait)
	}
	return nil
}

// PermitCall is such a request by a goroutine of this process.
type PermitCall struct {
	PermitRequest
	// target is the acquire that a cancel withdraws.
	target *PermitCall

	id        atomic.Uint64
	withdrawn atomic.Bool

	progress atomic.Int32
	// answer is for the caller once it is callAnswered. ready is signalled then if it was callAwaited.
	answer semaphore.Answer
	ready  chan struct{}
}

// permitCalls has the memory of calls that were answered, with their channels, for the next ones. As
// garbage it would cost a tenth of a grant that is handed off. So whoever answers a call must not look at
// it afterwards, unless he refuses it.
var permitCalls = sync.Pool{New: func() any { return new(PermitCall) }}

// The progress of a PermitCall, which ends with callAnswered or callLeft. Mostly it is answered before
// the caller looks, since actors run on their senders' goroutines: only a caller that has to wait
// needs a channel.
const (
	callAsked int32 = iota
	callAwaited
	callAnswered
	callLeft
)

// complete delivers the answer, and reports whether the caller is still there. Nobody else may deliver one
// at the same time.
func (call *PermitCall) complete(a *semaphore.Answer) (taken bool) {
	for {
		before := call.progress.Load()
		if before >= callAnswered {
			return false
		}
		call.answer = *a
		if call.progress.CompareAndSwap(before, callAnswered) {
			if before == callAwaited {
				call.ready <- struct{}{}
			}
			return true
		}
	}
}

func (call *PermitCall) permitAnswered(_ *permitState, a *semaphore.Answer) (taken bool) {
	return call.complete(a)
}

// AskPermits has a request about a semaphore carried out, and waits for its answer; answered is
// false if ctx ends first. What is granted then is given back.
func (r *Runtime) AskPermits(ctx context.Context, q *PermitRequest) (a semaphore.Answer, answered bool) {
	call := permitCalls.Get().(*PermitCall)
	call.PermitRequest = *q
	r.submitPermits(call)
	if call.await(ctx.Done()) {
		// Who has refused it may still look at it: the actor is not the only one that refuses.
		if a = call.answer; a.Kind != semaphore.Refused {
			*call = PermitCall{ready: call.ready}
			permitCalls.Put(call)
		}
		return a, true
	}
	if q.Op == PermitAcquire {
		call.withdrawn.Store(true) // in case the cancel overtakes the acquire
		r.submitPermits(&PermitCall{PermitRequest: PermitRequest{Op: PermitCancel, Latch: q.Latch, Name: q.Name}, target: call})
	}
	if call.leave() {
		return semaphore.Answer{}, false
	}
	return call.answer, true // it came at the last moment
}

// leave is for a caller that has awaited an answer in vain. It reports whether there is none still, and
// will be none.
func (call *PermitCall) leave() bool { return call.progress.CompareAndSwap(callAwaited, callLeft) }

// await waits for the answer, and reports whether it came before the caller's end.
func (call *PermitCall) await(ended <-chan struct{}) bool {
	if call.progress.Load() == callAnswered {
		return true
	}
	if call.ready == nil {
		call.ready = make(chan struct{}, 1)
	}
	if call.progress.CompareAndSwap(callAsked, callAwaited) {
		if ended == nil {
			<-call.ready // for half of what a select costs
		} else {
			select {
			case <-call.ready:
			case <-ended:
				return false
			}
		}
	}
	return true
}

func (r *Runtime) submitPermits(call *PermitCall) {
	if c := r.table.get(call.key()); c != nil && c.gate.enter() {
		c.process.SendUserMessage(c.pid, call)
		return
	}
	if !r.deliver(r.guardian, call) {
		r.tooLate(call, nil)
	}
}

// permitReplier is whoever made a request about a semaphore.
type permitReplier interface {
	// permitAnswered delivers the one answer, and reports whether there was anybody to take it.
	permitAnswered(s *permitState, a *semaphore.Answer) (taken bool)
	// request is what was asked.
	request() *PermitRequest
}

// permitMessage is such a request that came as a message of package messages.
type permitMessage struct {
	PermitRequest
	semaphore *messages.Semaphore
	latch     *messages.Latch
	replyTo   *actor.PID
	// owner is nil for a request of nobody in particular, as a future is.
	owner *owner
}

// semaphoreRequest is what the request messages about a semaphore have in common.
type semaphoreRequest interface {
	GetSemaphore() *messages.Semaphore
}

// permitMessageOf reads a message; nil if it is no request about a semaphore or a latch.
func permitMessageOf(m any, sender *actor.PID) *permitMessage {
	request, ok := m.(semaphoreRequest)
	if !ok {
		return latchMessageOf(m, sender)
	}
	p := &permitMessage{semaphore: request.GetSemaphore(), replyTo: sender}
	p.Name = p.semaphore.GetName()
	switch m := m.(type) {
	case *messages.AcquirePermits:
		p.Op, p.N, p.Wait = PermitAcquire, orOne(m.GetPermits()), m.GetWait().AsDuration()
		p.Try = m.GetWait() != nil && p.Wait == 0
	case *messages.ReleasePermits:
		p.Op, p.N, p.IfExists = PermitRelease, orOne(m.GetPermits()), m.GetIfExists()
	case *messages.CancelPermits:
		p.Op = PermitCancel
	case *messages.TrySetPermits:
		p.Op, p.N, p.TTL = PermitSet, int64(m.GetPermits()), m.GetTtl().AsDuration()
	case *messages.AddPermits:
		p.Op, p.N = PermitAdd, int64(m.GetPermits())
	case *messages.DrainPermits:
		p.Op = PermitDrain
	case *messages.InspectPermits:
		p.Op = PermitInspect
	default:
		return nil
	}
	return p
}

// isPermitRequest reports whether a message is a request about a semaphore or a latch.
func isPermitRequest(m any) bool {
	switch m.(type) {
	case *PermitCall, *messages.AcquirePermits, *messages.ReleasePermits, *messages.CancelPermits, *messages.TrySetPermits, *messages.AddPermits,
		*messages.DrainPermits, *messages.InspectPermits,
		*messages.AwaitLatch, *messages.CountDown, *messages.CancelAwait, *messages.TrySetCount, *messages.InspectLatch:
		return true
	}
	return false
}

// freesPermits reports whether a message is a request about a semaphore or a latch that frees something.
func freesPermits(m any) bool {
	switch m := m.(type) {
	case *messages.ReleasePermits, *messages.CancelPermits, *messages.CountDown, *messages.CancelAwait:
		return true
	case *PermitCall:
		return m.Op == PermitRelease || m.Op == PermitCancel
	}
	return false
}

func orOne(n int32) int64 {
	if n == 0 {
		return 1
	}
	return int64(n)
}

func (p *permitMessage) permitAnswered(s *permitState, a *semaphore.Answer) (taken bool) {
	if p.owner != nil {
		s.owners.done(&s.keyActor, p.owner)
	}
	return s.rt.deliver(p.replyTo, p.message(a))
}

// message is an answer as package messages spells it.
func (p *permitMessage) message(a *semaphore.Answer) proto.Message {
	if p.Latch {
		return p.latchMessage(a)
	}
	switch {
	case a.Kind == semaphore.Granted && p.Op == PermitAcquire:
		return &messages.PermitsAcquired{Semaphore: p.semaphore, Permits: int32(a.N)}
	case a.Kind == semaphore.Returned:
		return &messages.PermitsReleased{Semaphore: p.semaphore, Released: a.Done}
	case a.Kind == semaphore.Refused:
		return &messages.PermitsRefused{Semaphore: p.semaphore, Reason: messages.Reason(a.Reason), Detail: a.Detail}
	}
	return &messages.PermitsChanged{Semaphore: p.semaphore, Done: a.Done, Permits: a.N}
}

// checkPermits validates a request about a semaphore, and finds its actor; asked is false for
// another message.
func (r *Runtime) checkPermits(m any, sender *actor.PID) (key lockKey, asked bool, err error) {
	if call, ok := m.(*PermitCall); ok {
		return call.key(), true, nil // it was checked before
	}
	p := permitMessageOf(m, sender)
	if p == nil {
		return lockKey{}, false, nil
	}
	switch {
	case p.semaphore == nil && p.latch == nil:
		err = errors.New("the request names no semaphore, or no latch")
	case p.Op == PermitAcquire && r.foreign(sender):
		err = errors.New("the request comes from another node, whose death looks like a broken connection: run a Lockkeeper System on that node")
	case p.Op == PermitAcquire && sender == nil:
		err = errors.New("the request has no sender: nobody would receive the answer")
	default:
		err = errors.Join(checkDurations(m), r.CheckPermits(&p.PermitRequest))
	}
	return p.key(), true, err
}

// checkDurations returns an error for a duration that is none, or that is zero and says nothing then.
func checkDurations(m any) error {
	switch m := m.(type) {
	case *messages.AcquirePermits:
		if m.GetWait() != nil {
			return m.GetWait().CheckValid()
		}
	case *messages.AwaitLatch:
		if m.GetWait() != nil {
			return m.GetWait().CheckValid()
		}
	case *messages.TrySetPermits:
		if m.GetTtl() != nil && m.GetTtl().CheckValid() == nil && m.GetTtl().AsDuration() == 0 {
			return errors.New("the ttl is zero: leave it out for none")
		} else if m.GetTtl() != nil {
			return m.GetTtl().CheckValid()
		}
	}
	return nil
}

// refusePermits answers a request about a semaphore that is not carried out; it reports whether m is
// one.
func (r *Runtime) refusePermits(m any, sender *actor.PID, reason lock.Reason, detail string) bool {
	a := &semaphore.Answer{Kind: semaphore.Refused, Reason: reason, Detail: detail}
	if call, ok := m.(*PermitCall); ok {
		call.complete(a)
		r.metrics.permitsTurnedAway(&call.PermitRequest, reason)
		return true
	}
	p := permitMessageOf(m, sender)
	if p == nil {
		return false
	}
	if sender == nil {
		r.host.Warn("a request without a sender was refused", "semaphore", p.Name, "detail", detail)
		return true
	}
	r.deliver(sender, p.message(a))
	r.metrics.permitsTurnedAway(&p.PermitRequest, reason)
	return true
}
