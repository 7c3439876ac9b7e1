package lockkeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/printable"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The errors, for errors.Is. Calls about a lock, a semaphore or a latch return an *Error that wraps one of these
// errors, or the error of the caller's context.
var (
	// ErrInvalid: the request is not valid; the text says what is allowed.
	ErrInvalid = errors.New("invalid request")
	// ErrHeld: another owner holds the lock or waits for it, too few permits are free, or the latch is closed; and
	// the call does not wait. If another process has the lock, the text has its owner field; Inspect names the process.
	ErrHeld = errors.New("lock is held")
	// ErrTimeout: the wait of WithWait, or the deadline of the context, ended before the lock
	// was granted.
	ErrTimeout = errors.New("wait timed out")
	// ErrQueueFull: Config.QueueLimit requests already wait for the lock.
	ErrQueueFull = errors.New("queue is full")
	// ErrClosed: the System is closing or closed.
	ErrClosed = errors.New("system is closed")
	// ErrUnavailable: Redis did not answer in time, or could not carry out the request at that time, for example while
	// its memory is full. Trying again may help.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrRejected: Redis refuses the request, and would refuse it again; the text has the error of Redis and says what
	// to do.
	ErrRejected = errors.New("redis rejected the request")
	// ErrCrashed: the actor of the lock, the semaphore or the latch crashed while it handled the
	// request, or was stopped after many crashes.
	ErrCrashed = errors.New("actor crashed")
	// ErrNotHeld: there is no such hold, or it was released.
	ErrNotHeld = errors.New("not held")
	// ErrReentry: the caller already holds the lock and may not re-enter it this way:
	// WithoutReentry was given, or a reader wants to write.
	ErrReentry = errors.New("lock cannot be re-entered")
	// ErrNotReplicated: too few replicas of Redis have confirmed the grant in time, and the grant was undone.
	// Hold.Extend returns it if too few have confirmed the lease. See Config.Replicas. Trying again may help.
	ErrNotReplicated = errors.New("not replicated")
	// ErrNoPermits: the number of permits is not set under that name. It was never set, or Redis has lost its data. Set
	// the number, or use ExpirableSemaphore.WithTotal.
	ErrNoPermits = errors.New("no number of permits is set")
	// ErrLost: the hold was lost before it was released.
	ErrLost = errors.New("lock was lost")
	// ErrNotReleased: the hold has ended, but its release is not confirmed; the error also wraps the
	// reason. The lock is free when its lease, and its minimum time (WithAtLeast), have ended at the latest. With Do,
	// Elect, Lead, Spawn and Respond the work was called, unless too little of the lease was left for a WithDrain; if
	// it failed, the error also wraps the error of the work.
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
	// Op is what was tried, in the words of the text: "acquire", "release", "acquire permits of", …; "hold" if a hold
	// was lost.
	Op string
	// Lock is the name of the lock, the semaphore or the latch.
	Lock string
	// Reason is the reason that an answer by message would have; 0 if there is none.
	Reason messages.Reason
	// Detail explains the error; it may be empty.
	Detail string
	// Err is one of the package's errors or the error of a context, or wraps several errors.
	Err error
}

func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	text := fmt.Sprintf("lockkeeper: %s %s: %v", e.Op, printable.Quote(e.Lock), e.Err)
	if e.Detail != "" {
		text += ": " + printable.Text(e.Detail) // it may quote a key
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

// failedError returns the error of a request about the lock or the expirable semaphore.
func (l *Lock) failedError(op string, a machine.Answer) error {
	return failedError(op, l.Name(), messages.Reason(a.Reason), a.Detail, !request.TraitsOf(l.kind).Permits)
}

// failedError returns the error of a request. ErrHeld and ErrLost have other texts if the request is not about a lock.
func failedError(op, name string, reason messages.Reason, detail string, isLock bool) error {
	err := sentinels[reason]
	switch {
	case err == nil: // a reason of a later version, on another node
		err = errors.New(reason.String())
	case !isLock && err == ErrHeld:
		err = refusedError{}
	case !isLock && err == ErrLost:
		err = permitLostError{}
	}
	return &Error{Op: op, Lock: name, Reason: reason, Detail: detail, Err: err}
}

// notReleased returns a copy of err, the error of a release, that also wraps ErrNotReleased.
func notReleased(err error) error {
	var e *Error
	errors.As(err, &e)
	also := *e
	also.Err = unconfirmedError{e.Err}
	return &also
}

// unconfirmedError is ErrNotReleased with the reason.
type unconfirmedError struct{ why error }

func (u unconfirmedError) Error() string   { return ErrNotReleased.Error() + ": " + u.why.Error() }
func (u unconfirmedError) Unwrap() []error { return []error{ErrNotReleased, u.why} }

// refusedError is ErrHeld for a synchronizer; the detail of the Error says what was missing.
type refusedError struct{}

func (refusedError) Error() string { return "refused" }
func (refusedError) Unwrap() error { return ErrHeld }

// permitLostError is ErrLost for a permit.
type permitLostError struct{}

func (permitLostError) Error() string { return "permit was lost" }
func (permitLostError) Unwrap() error { return ErrLost }

// ErrorOf converts the answer to a request by message to an error; it returns nil for an answer that is not a refusal.
// The error is an *[Error] that wraps the error which the methods of a [Lock] return for the same reason. For a
// LeaseLost the error is the cause of a lost hold's context. For proto.actor's DeadLetterResponse, the answer after
// Close, it wraps ErrClosed.
func ErrorOf(answer any) error {
	switch m := answer.(type) {
	case *messages.NotAcquired:
		return refusalError("acquire", m.GetLock(), m)
	case *messages.NotReleased:
		err := refusalError("release", m.GetLock(), m)
		switch m.GetReason() {
		case messages.Reason_REASON_LOST, messages.Reason_REASON_NOT_HELD, messages.Reason_REASON_INVALID:
			return err
		}
		return notReleased(err)
	case *messages.Failed:
		return refusalError("request", m.GetLock(), m)
	case *messages.LeaseLost:
		return lostError(m.GetLock().GetKind(), m.GetLock().GetName(), m.GetReason(), m.GetDetail())
	case *messages.PermitsRefused:
		return failedError("semaphore", m.GetSemaphore().GetName(), m.GetReason(), m.GetDetail(), false)
	case *messages.LatchRefused:
		return failedError("latch", m.GetLatch().GetName(), m.GetReason(), m.GetDetail(), false)
	case *actor.DeadLetterResponse:
		return &Error{Op: "request", Reason: messages.Reason_REASON_CLOSED, Err: ErrClosed}
	}
	return nil
}

// refusalError returns the error of a refusal about a lock.
func refusalError(op string, l *messages.Lock, m interface {
	GetReason() messages.Reason
	GetDetail() string
}) error {
	return failedError(op, l.GetName(), m.GetReason(), m.GetDetail(), !request.TraitsOf(l.GetKind()).Permits)
}

func invalidError(op, lock string, err error) error {
	return &Error{Op: op, Lock: lock, Reason: messages.Reason_REASON_INVALID, Detail: err.Error(), Err: ErrInvalid}
}

var (
	errNoContext  = errors.New("the context is nil")
	errNoFunction = errors.New("the function is nil")
	errNoOption   = errors.New("an option is nil")
	errNoHold     = errors.New("there is no hold: it is nil, or did not come from an Acquire")
)

// endedError returns the error of an Acquire whose context has ended.
func endedError(ctx context.Context, op, lock, detail string) error {
	reason, err := messages.Reason_REASON_CANCELLED, context.Cause(ctx)
	if why := ctx.Err(); errors.Is(why, context.DeadlineExceeded) {
		if reason = messages.Reason_REASON_TIMED_OUT; !errors.Is(err, why) {
			err = fmt.Errorf("%w: %w", why, err)
		}
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return &Error{Op: op, Lock: lock, Reason: reason, Detail: detail, Err: err}
}

// lostError returns the cause with which the context of a lost hold is cancelled. It wraps ErrLost, and
// the error for the reason if there is one.
func lostError(kind messages.Kind, name string, why messages.Reason, detail string) error {
	err := ErrLost
	if request.TraitsOf(kind).Permits {
		err = permitLostError{}
	}
	if also := sentinels[why]; also != nil && also != ErrLost {
		err = fmt.Errorf("%w: %w", err, also)
	}
	return &Error{Op: "hold", Lock: name, Reason: why, Detail: detail, Err: err}
}
