package lockkeeper

import (
	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Claim is an actor's record of a lock, or of a permit of an expirable semaphore, that the actor acquires by message.
// The zero value is ready for use, as a field of the actor:
//
//	func (b *biller) Receive(ctx actor.Context) {
//		switch b.invoices.Handle(ctx) { // first, with every message
//		case lockkeeper.ClaimGranted:
//			ctx.Send(ctx.Self(), bill{b.invoices.Held()})
//		case lockkeeper.ClaimLost:
//			b.invoices.Acquire(ctx, request) // again; it is refused if the System is closed
//		case lockkeeper.ClaimRefused, lockkeeper.ClaimReleased:
//			ctx.Stop(ctx.Self()) // b.invoices.Err() says why
//		}
//		switch m := ctx.Message().(type) {
//		case *actor.Started:
//			b.invoices.Acquire(ctx, request)
//		case bill:
//			if m.under != b.invoices.Held() {
//				return // the bill belongs to a hold that has ended
//			}
//			…
//			b.invoices.Release(ctx)
//		}
//	}
//
// A Claim ends with the instance of its actor. When the actor is restarted, the Claim releases what it holds and
// withdraws its request; the next instance begins without the lock, and its Claim ignores the answers to the last
// instance. When the actor stops, the System releases the lock; no Release is needed.
//
// An actor may have several Claims, each for another lock. Only the actor itself may use them, while it handles a
// message. An Acquire goes to the System that [From] returns: the System that was started last in the actor system. The
// Release of that hold goes to the same System.
type Claim struct {
	state claimState
	// id is the correlation id of the present or last Acquire. No other Acquire has this id, in any life of the actor.
	id string
	// guardian is the guardian of the System that received that Acquire.
	guardian *actor.PID
	// life is the process behind guardian. It shows whether the guardian of another System has taken the name since.
	life actor.Process
	lock *messages.Lock
	held *messages.Acquired
	// next is sent when the release is answered.
	next *messages.Acquire
	err  error
	// left are the requests whose withdrawal has failed, by id. A late grant to such a request is released.
	left map[string]leftRequest
}

// leftRequest is a request of a Claim that the System of a guardian may still grant.
type leftRequest struct {
	lock     *messages.Lock
	guardian *actor.PID
}

type claimState uint8

const (
	claimIdle claimState = iota
	claimWaiting
	claimHeld
	claimReleasing // also while a request is withdrawn
)

// ClaimEvent says what a message has changed for a [Claim].
type ClaimEvent string

const (
	// ClaimUnchanged: the message changes nothing for the user of the Claim; most messages have nothing to do with it.
	ClaimUnchanged ClaimEvent = ""
	// ClaimGranted: the actor has the lock; Held returns the grant.
	ClaimGranted ClaimEvent = "granted"
	// ClaimRefused: the lock was not granted; Err says why. Another Acquire may succeed after ErrTimeout, and after a
	// pause also after ErrHeld, ErrQueueFull, ErrNoPermits, ErrUnavailable, ErrNotReplicated and ErrCrashed; it is
	// refused at once after ErrClosed, ErrInvalid, ErrRejected and ErrReentry.
	ClaimRefused ClaimEvent = "refused"
	// ClaimAtRisk: renewals fail. The message is a LeaseAtRisk, and says for how long the lease is valid.
	ClaimAtRisk ClaimEvent = "at risk"
	// ClaimLost: the lock was lost before it was released, and another owner may have it; Err says why.
	ClaimLost ClaimEvent = "lost"
	// ClaimReleased: a Release is answered. Err is nil, or says why it is not confirmed: it wraps ErrNotReleased, unless
	// the System is closed (ErrClosed) or the withdrawal of a request has failed.
	ClaimReleased ClaimEvent = "released"
)

// Acquire requests the lock, and Handle returns ClaimGranted or ClaimRefused later. The request says which lock, for
// how long it waits, and its lease. The actor is the owner, and no re-entry is granted: the request is refused with
// ErrReentry if the actor has the lock by another Claim or request. While the Claim waits for the lock or has it,
// Acquire does nothing; after a Release, Acquire waits for the answer to the Release. The Claim replaces the
// correlation_id of the request with its own.
func (c *Claim) Acquire(ctx actor.Context, request *messages.Acquire) {
	if c == nil || ctx == nil || c.state == claimWaiting || c.state == claimHeld {
		return
	}
	own := &messages.Acquire{}
	if request != nil {
		own = proto.CloneOf(request)
	}
	own.Owner, own.NoReentry = nil, true
	if c.state == claimReleasing {
		c.next = own
		return
	}
	c.request(ctx, c.begin(own))
}

// request sends a request to the System of the present Acquire.
func (c *Claim) request(ctx actor.Context, m proto.Message) {
	if _, begins := m.(*messages.Acquire); begins {
		c.guardian = From(ctx.ActorSystem()).Guardian()
		c.life, _ = ctx.ActorSystem().ProcessRegistry.GetLocal(c.guardian.Id)
	}
	requestFrom(c.guardian, ctx, m)
}

// begin returns the request with which the Claim waits for the lock.
func (c *Claim) begin(own *messages.Acquire) *messages.Acquire {
	c.id = uuid.NewString()
	own.CorrelationId = c.id
	c.state, c.lock, c.next = claimWaiting, own.Lock, nil
	return own
}

// Release releases the lock, or withdraws the request that waits for it; Handle returns ClaimReleased later, or
// ClaimLost. If the Claim neither has the lock nor waits for it, Release does nothing.
func (c *Claim) Release(ctx actor.Context) {
	if c == nil || ctx == nil {
		return
	}
	c.next = nil
	switch c.state {
	case claimWaiting:
		if isStopped(ctx) {
			return // the System ends the request of an actor that stops
		}
		c.request(ctx, &messages.Cancel{Lock: c.lock, CorrelationId: c.id})
	case claimHeld:
		c.request(ctx, c.release(c.held.HoldId))
	default:
		return
	}
	c.state, c.held = claimReleasing, nil
}

func (c *Claim) release(hold string) *messages.Release {
	return &messages.Release{Lock: c.lock, HoldId: hold, CorrelationId: c.id}
}

// Handle looks at the message that the actor is handling, and returns what the message has changed. Call it first, with
// every message, including the messages of proto.actor.
func (c *Claim) Handle(ctx actor.Context) ClaimEvent {
	if c == nil || ctx == nil {
		return ClaimUnchanged
	}
	switch m := ctx.Message().(type) {
	case *actor.Restarting:
		asked := c.state == claimWaiting || c.state == claimReleasing
		c.Release(ctx)
		if asked {
			c.request(ctx, c.release("")) // a grant may be on its way, and its hold id is not known
		}
		for _, one := range c.left {
			requestFrom(one.guardian, ctx, &messages.Cancel{Lock: one.lock})
			requestFrom(one.guardian, ctx, &messages.Release{Lock: one.lock})
		}
		*c = Claim{} // the next instance may be the same value
	case *actor.DeadLetterResponse:
		// A DeadLetterResponse does not say what it answers: any message of the actor, or a request to a System that is
		// closed.
		if now, lives := ctx.ActorSystem().ProcessRegistry.GetLocal(c.guardian.GetId()); !lives || !request.SameLife(now, c.life) {
			return c.answeredBy(ctx, m)
		}
	case interface{ GetCorrelationId() string }:
		if one, is := c.left[m.GetCorrelationId()]; is {
			c.answeredLate(ctx, one, m)
			return ClaimUnchanged
		}
		if c.id == "" || m.GetCorrelationId() != c.id {
			return ClaimUnchanged
		}
		return c.answeredBy(ctx, m)
	}
	return ClaimUnchanged
}

// answeredBy handles a message that is for the present Acquire.
func (c *Claim) answeredBy(ctx actor.Context, message any) ClaimEvent {
	request, happened := c.step(message)
	if request != nil {
		c.request(ctx, request)
	}
	return happened
}

// answeredLate handles a message for a request whose withdrawal has failed.
func (c *Claim) answeredLate(ctx actor.Context, one leftRequest, message any) {
	switch m := message.(type) {
	case *messages.Acquired:
		requestFrom(one.guardian, ctx, &messages.Release{Lock: one.lock, HoldId: m.HoldId, CorrelationId: m.CorrelationId})
	case *messages.NotAcquired:
		delete(c.left, m.CorrelationId)
	case *messages.Released, *messages.NotReleased:
		delete(c.left, message.(interface{ GetCorrelationId() string }).GetCorrelationId())
	}
}

// step handles a message that is for the present Acquire. It returns a request to be sent, or nil.
func (c *Claim) step(message any) (request proto.Message, happened ClaimEvent) {
	switch m := message.(type) {
	case *messages.Acquired:
		if c.state != claimWaiting { // the Claim has withdrawn the request
			return c.release(m.HoldId), ClaimUnchanged
		}
		c.state, c.held, c.err = claimHeld, m, nil
		return nil, ClaimGranted
	case *messages.LeaseAtRisk:
		if c.state == claimHeld {
			return nil, ClaimAtRisk
		}
	case *messages.LeaseLost:
		if c.state == claimHeld || c.state == claimReleasing {
			happened = c.ended(ErrorOf(m), ClaimLost)
		}
	case *messages.NotAcquired:
		err := ErrorOf(m)
		if c.state == claimReleasing {
			err = nil // the request was withdrawn, as the Claim asked
		}
		happened = c.answered(err)
	case *messages.Released:
		happened = c.answered(nil)
	case *actor.DeadLetterResponse: // the System is closed
		op := "acquire"
		if c.state == claimReleasing {
			op = "release"
		}
		happened = c.answered(&Error{Op: op, Lock: c.lock.GetName(), Reason: messages.Reason_REASON_CLOSED, Err: ErrClosed})
	case *messages.Failed: // a withdrawal
		if c.state == claimReleasing {
			if c.left == nil {
				c.left = map[string]leftRequest{}
			}
			c.left[c.id] = leftRequest{c.lock, c.guardian}
		}
		happened = c.answered(ErrorOf(m))
	case *messages.NotReleased:
		switch m.Reason {
		case messages.Reason_REASON_LOST, messages.Reason_REASON_NOT_HELD:
			if c.state == claimReleasing {
				happened = c.ended(ErrorOf(m), ClaimLost)
			}
		default:
			happened = c.answered(ErrorOf(m))
		}
	}
	if happened != ClaimUnchanged && c.next != nil {
		request = c.begin(c.next)
	}
	return request, happened
}

// answered ends a wait for the lock, or a release.
func (c *Claim) answered(err error) ClaimEvent {
	switch c.state {
	case claimWaiting:
		return c.ended(err, ClaimRefused)
	case claimReleasing:
		return c.ended(err, ClaimReleased)
	}
	return ClaimUnchanged
}

func (c *Claim) ended(err error, as ClaimEvent) ClaimEvent {
	c.state, c.held, c.err = claimIdle, nil, err
	return as
}

// Held returns the grant of the hold, with its token, and nil while the actor does not have the lock, as far as Handle
// has seen: a loss during a handler shows in the next handler. The pointer is the same for the whole hold, and differs
// between holds: put it into the messages that the actor sends itself, and ignore messages with the pointer of another
// hold.
func (c *Claim) Held() *messages.Acquired {
	if c == nil {
		return nil
	}
	return c.held
}

// Err returns why the lock was refused or lost, or its release is not confirmed; nil after a grant or a release.
func (c *Claim) Err() error {
	if c == nil {
		return nil
	}
	return c.err
}
