package lockkeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/printable"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The errors, for errors.Is. Methods return an *Error that wraps one of them, or the error of
// the caller's context.
var (
	// ErrInvalid: the request is not valid; the text says what is allowed.
	ErrInvalid = errors.New("invalid request")
	// ErrHeld: another owner holds the lock, too few permits are free, or the latch is closed, and
	// the call does not wait.
	ErrHeld = errors.New("lock is held")
	// ErrTimeout: the wait of WithWait, or the deadline of the context, ended before the lock
	// was granted.
	ErrTimeout = errors.New("wait timed out")
	// ErrQueueFull: Config.QueueLimit requests already wait for the lock.
	ErrQueueFull = errors.New("queue is full")
	// ErrClosed: the System is closing or closed.
	ErrClosed = errors.New("system is closed")
	// ErrUnavailable: Redis did not answer, or not in time. Trying again may help.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrRejected: Redis refuses for good; the text has its error and what to do.
	ErrRejected = errors.New("redis rejected the request")
	// ErrCrashed: the actor of the lock, the semaphore or the latch crashed while it handled the request, or was given up.
	ErrCrashed = errors.New("actor crashed")
	// ErrNotHeld: there is no such hold, or it was released.
	ErrNotHeld = errors.New("not held")
	// ErrReentry: the caller already holds the lock and may not re-enter it this way:
	// WithoutReentry was given, or a reader wants to write.
	ErrReentry = errors.New("lock cannot be re-entered")
	// ErrNotReplicated: too few replicas of Redis have confirmed the grant in time; see
	// Config.Replicas. It is taken back. Trying again may help.
	ErrNotReplicated = errors.New("not replicated")
	// ErrNoPermits: no number of permits is set under that name. It never was, or Redis has lost its
	// data. Set it, or give it with WithPermits.
	ErrNoPermits = errors.New("no number of permits is set")
	// ErrLost: the hold was lost before it was released.
	ErrLost = errors.New("lock was lost")
	// ErrNotReleased: the hold is over, but its release is not confirmed, for the reason that the
	// error also wraps. The lock is free when its lease ends at the latest. With Do, Elect, Lead,
	// Spawn and Respond it says nothing of the work: that was called, and if it has failed, the error
	// wraps its error, too.
	ErrNotReleased = errors.New("release is not confirmed")
)

var sentinels = map[messages.Reason]error{
	messages.Reason_REASON_INVALID:     ErrInvalid,
	messages.Reason_REASON_HELD:        ErrHeld,
	messages.Reason_REASON_TIMED_OUT:   ErrTimeout,
	messages.Reason_REASON_QUEUE_FULL:  ErrQueueFull,
	messages.Reason_REASON_CLOSED:      ErrClosed,
	messages.Reason_REASON_UNAVAILABLE: ErrUnavailable,
	messages.Reason_REASON_REJECTED:    ErrRejected,
	messages.Reason_REASON_CRASHED:     ErrCrashed,
	messages.Reason_REASON_NOT_HELD:    ErrNotHeld,
	messages.Reason_REASON_LOST:        ErrLost,
	messages.Reason_REASON_REENTRY:     ErrReentry,

	messages.Reason_REASON_NOT_REPLICATED: ErrNotReplicated,
	messages.Reason_REASON_NO_PERMITS:     ErrNoPermits,
	messages.Reason_REASON_CANCELLED:      context.Canceled, // by a Cancel; a call ends with its context's cause
}

// Error describes what failed, for which lock, and why.
type Error struct {
	// Op is the operation: "acquire", "release", "hold", …
	Op   string
	Lock string
	// Reason is the reason as the messages give it.
	Reason messages.Reason
	Detail string
	// Err is one of the package's errors, or the error of a context; or it wraps several of them.
	Err error
}

func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	text := fmt.Sprintf("lockkeeper: %s %s: %v", e.Op, printable.Quote(e.Lock), e.Err)
	if e.Detail != "" {
		text += ": " + printable.Text(e.Detail) // Redis may quote a key in it
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// failed returns the error of a request about the lock, or about the permits.
func (l *Lock) failed(op string, a lock.Answer) error {
	return failed(op, l.Name(), messages.Reason(a.Reason), a.Detail, l.kind != messages.Kind_KIND_EXPIRABLE_SEMAPHORE)
}

// failed returns the error of a request. ErrHeld and ErrLost have other words where the request is not about a lock.
func failed(op, name string, reason messages.Reason, detail string, isLock bool) error {
	err := sentinels[reason]
	switch {
	case err == nil: // of a later version, on another node
		err = errors.New(reason.String())
	case !isLock && err == ErrHeld:
		err = refused{}
	case !isLock && err == ErrLost:
		err = permitLost{}
	}
	return &Error{Op: op, Lock: name, Reason: reason, Detail: detail, Err: err}
}

// notReleased returns the error of a release that is also ErrNotReleased.
func notReleased(err error) error {
	var e *Error
	errors.As(err, &e)
	also := *e
	also.Err = unconfirmed{e.Err}
	return &also
}

// unconfirmed is why a release is not confirmed.
type unconfirmed struct{ why error }

func (u unconfirmed) Error() string   { return ErrNotReleased.Error() + ": " + u.why.Error() }
func (u unconfirmed) Unwrap() []error { return []error{ErrNotReleased, u.why} }

// refused is ErrHeld of what is no lock: the detail says what was missing.
type refused struct{}

func (refused) Error() string { return "refused" }
func (refused) Unwrap() error { return ErrHeld }

// permitLost is ErrLost of a permit.
type permitLost struct{}

func (permitLost) Error() string { return "permit was lost" }
func (permitLost) Unwrap() error { return ErrLost }

// ErrorOf returns the error that an answer to a request by message stands for, and nil if that is no refusal:
// an *[Error] that wraps what the methods of a [Lock] return for the same reason, or the cause of a LeaseLost.
// proto.actor's DeadLetterResponse, which is the guardian's answer after Close, is ErrClosed.
func ErrorOf(answer any) error {
	switch m := answer.(type) {
	case *messages.NotAcquired:
		return answered("acquire", m.GetLock(), m)
	case *messages.NotReleased:
		err := answered("release", m.GetLock(), m)
		switch m.GetReason() {
		case messages.Reason_REASON_LOST, messages.Reason_REASON_NOT_HELD, messages.Reason_REASON_INVALID:
			return err
		}
		return notReleased(err)
	case *messages.Failed:
		return answered("request", m.GetLock(), m)
	case *messages.LeaseLost:
		return lost(m.GetLock().GetKind(), m.GetLock().GetName(), m.GetReason(), m.GetDetail())
	case *messages.PermitsRefused:
		return failed("semaphore", m.GetSemaphore().GetName(), m.GetReason(), m.GetDetail(), false)
	case *messages.LatchRefused:
		return failed("latch", m.GetLatch().GetName(), m.GetReason(), m.GetDetail(), false)
	case *actor.DeadLetterResponse:
		return &Error{Op: "request", Reason: messages.Reason_REASON_CLOSED, Err: ErrClosed}
	}
	return nil
}

// answered returns the error of a refusal about a lock.
func answered(op string, l *messages.Lock, m interface {
	GetReason() messages.Reason
	GetDetail() string
}) error {
	return failed(op, l.GetName(), m.GetReason(), m.GetDetail(), l.GetKind() != messages.Kind_KIND_EXPIRABLE_SEMAPHORE)
}

func invalid(op, lock string, err error) error {
	return &Error{Op: op, Lock: lock, Reason: messages.Reason_REASON_INVALID, Detail: err.Error(), Err: ErrInvalid}
}

// What is missing, for invalid.
var (
	errNoContext  = errors.New("the context is nil")
	errNoFunction = errors.New("the function is nil")
	errNoOption   = errors.New("an option is nil")
	errNoHold     = errors.New("there is no hold: it is nil, or did not come from an Acquire")
)

// ended returns the error of an Acquire whose context has ended.
func ended(ctx context.Context, op, lock, detail string) error {
	reason, err := messages.Reason_REASON_CANCELLED, context.Cause(ctx)
	if why := ctx.Err(); errors.Is(why, context.DeadlineExceeded) {
		if reason = messages.Reason_REASON_TIMED_OUT; !errors.Is(err, why) {
			err = fmt.Errorf("%w: %w", why, err)
		}
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return &Error{Op: op, Lock: lock, Reason: reason, Detail: detail, Err: err}
}

// lost is the cause of cancelling the context of a lost hold. It wraps ErrLost, and the error
// for the reason if there is one.
func lost(kind messages.Kind, name string, why messages.Reason, detail string) error {
	err := ErrLost
	if kind == messages.Kind_KIND_EXPIRABLE_SEMAPHORE {
		err = permitLost{}
	}
	if also := sentinels[why]; also != nil && also != ErrLost {
		err = fmt.Errorf("%w: %w", err, also)
	}
	return &Error{Op: "hold", Lock: name, Reason: why, Detail: detail, Err: err}
}
