package lockkeeper

import (
	"context"
	"errors"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Latch is Redisson's RCountDownLatch: Wait blocks until the latch has been counted down to zero; any process may count
// it down. A latch is open unless it has a count. It opens after as many count-downs as the count, and stays open until
// a new count is set. A Latch is only a name with methods: make as many as needed, and use them from any goroutine.
//
// A method other than Wait returns after at most Config.CallTimeout and 250 ms, even if ctx never
// ends. Its errors are ErrUnavailable, ErrRejected, ErrInvalid, ErrClosed, ErrCrashed, and the cause
// of ctx.
type Latch struct {
	runtime *actors.Runtime
	name    string
}

// Latch returns the latch of that name. See Lock for valid names.
func (s *System) Latch(name string) *Latch {
	return &Latch{runtime: s.inner(), name: name}
}

// Name returns the name of the latch, without the key prefix.
func (l *Latch) Name() string {
	if l == nil {
		return ""
	}
	return l.name
}

// TrySetCount sets the count to n, from 1 to 10^12, and so closes the latch. If the latch is closed already,
// TrySetCount does nothing and returns false.
func (l *Latch) TrySetCount(ctx context.Context, n int64) (set bool, err error) {
	a, err := l.ask(ctx, "set the count of", request.NewCountCall(request.OpSet, n))
	return a.Done, err
}

// CountDown counts the latch down by one; an open latch stays open. If a reply is lost, the repeated command is not
// counted twice. After ErrUnavailable, or if ctx ends, do not repeat the call, since the System keeps trying in the
// background, for at most half an hour and until it is closed. After any other error the latch was not counted down.
func (l *Latch) CountDown(ctx context.Context) error {
	_, err := l.ask(ctx, "count down", request.NewCountCall(request.OpRelease, 0))
	return err
}

// CountDownOnce is like CountDown, but all calls with the same id, in any process, are counted once. An id has 1 to 512
// bytes. The ids are deleted when the latch opens, or a week after the last such call.
func (l *Latch) CountDownOnce(ctx context.Context, id string) error {
	const op = "count down"
	if id == "" {
		return invalidError(op, l.Name(), errors.New("the id is empty"))
	}
	call := request.NewCountCall(request.OpRelease, 0)
	call.ID = id
	_, err := l.ask(ctx, op, call)
	return err
}

// Wait waits until the latch is open. When ctx ends it returns the cause of ctx (and ErrTimeout
// if a deadline was exceeded). WithWait also bounds the wait; with zero, Wait does not wait, and fails with
// ErrHeld if the latch is closed. The other errors are ErrTimeout, ErrQueueFull, ErrClosed, ErrUnavailable
// (only if WithWait bounds the wait), ErrRejected, ErrInvalid and ErrCrashed.
//
// If the latch is closed again before the System has noticed that it was open, Wait continues to wait.
func (l *Latch) Wait(ctx context.Context, options ...WaitOption) error {
	const op = "wait for"
	call := request.NewCountCall(request.OpAcquire, 0)
	if err := applyWaits(options, call); err != nil {
		return invalidError(op, l.Name(), err)
	}
	_, err := l.ask(ctx, op, call)
	return err
}

// Delete opens the latch until a count is set again, which ends all waits, and reports whether the latch was closed.
// Use it for a latch whose count-downs will not come, which would stay closed in Redis for ever. If Delete fails with
// ErrUnavailable, the latch may have been deleted.
func (l *Latch) Delete(ctx context.Context) (deleted bool, err error) {
	a, err := l.ask(ctx, "delete", request.NewCountCall(request.OpDelete, 0))
	return a.Done, err
}

// Count returns how many count-downs remain; 0 if the latch is open.
func (l *Latch) Count(ctx context.Context) (n int64, err error) {
	a, err := l.ask(ctx, "look at", request.NewCountCall(request.OpInspect, 0))
	return a.N, err
}

// ask sends a call about the latch, and returns the answer.
func (l *Latch) ask(ctx context.Context, op string, call *request.CountCall) (request.CountAnswer, error) {
	if l == nil {
		return request.CountAnswer{}, invalidError(op, "", errors.New("the latch is nil"))
	}
	call.Kind, call.Name = messages.Kind_KIND_LATCH, l.name
	return doCount(ctx, l.runtime, op, call)
}
