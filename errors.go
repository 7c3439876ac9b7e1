package lockkeeper

import (
	"errors"
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The errors, for errors.Is. What is returned is an *Error around one of them, or
// around the error of the caller's context.
var (
	// ErrInvalid: the request is wrong; the text says what is allowed.
	ErrInvalid = errors.New("invalid request")
	// ErrHeld: somebody else holds the lock, and the call did not want to wait.
	ErrHeld = errors.New("lock is held")
	// ErrTimeout: the wait of WithWait was over before the lock became free.
	ErrTimeout = errors.New("wait timed out")
	// ErrQueueFull: Config.QueueLimit requests wait for the lock already.
	ErrQueueFull = errors.New("queue is full")
	// ErrClosed: the System is closing or closed.
	ErrClosed = errors.New("system is closed")
	// ErrUnavailable: Redis did not answer, or not in time. Trying again may help.
	ErrUnavailable = errors.New("redis is unavailable")
	// ErrRejected: Redis refuses for good; the text has its words and what to do.
	ErrRejected = errors.New("redis rejected the request")
	// ErrCrashed: the lock actor crashed over the request, or was given up.
	ErrCrashed = errors.New("lock actor crashed")
	// ErrNotHeld: there is no such hold, or no more.
	ErrNotHeld = errors.New("not held")
	// ErrReentry: the caller holds the lock already, and may not take it once more in
	// this way: WithoutReentry was given, or a reader wants to write.
	ErrReentry = errors.New("lock cannot be re-entered")
	// ErrLost: the hold was lost before it was released.
	ErrLost = errors.New("lock was lost")
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
}

// Error says what failed, for which lock, and why.
type Error struct {
	// Op is what was tried: "acquire", "release", "hold", …
	Op   string
	Lock string
	// Reason is the same as in the messages.
	Reason messages.Reason
	Detail string
	// Err is one of the package's errors, or the error of a context.
	Err error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("lockkeeper: %s %q: %v", e.Op, e.Lock, e.Err)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap gives Err.
func (e *Error) Unwrap() error { return e.Err }

func failed(op, lock string, a core.Answer) error {
	reason := messages.Reason(a.Reason)
	return &Error{Op: op, Lock: lock, Reason: reason, Detail: a.Detail, Err: sentinels[reason]}
}

func invalid(op, lock string, err error) error {
	return &Error{Op: op, Lock: lock, Reason: messages.Reason_REASON_INVALID, Detail: err.Error(), Err: ErrInvalid}
}

// lost is the cause with which the context of a lost hold is cancelled. Besides
// ErrLost it is the error that belongs to the reason, if there is one.
func lost(lock string, reason core.Reason, detail string) error {
	why := messages.Reason(reason)
	err := ErrLost
	if also := sentinels[why]; also != nil && also != ErrLost {
		err = errors.Join(ErrLost, also)
	}
	return &Error{Op: "hold", Lock: lock, Reason: why, Detail: detail, Err: err}
}
