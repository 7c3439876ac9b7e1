package lockkeeper

import (
	"context"
	"errors"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Latch keeps those who wait until others have counted it down, in any process; Redisson's
// RCountDownLatch. It is open, unless it has a count. It opens when as many as that have counted down,
// and lets all pass then, also those who come later, until it is given a count again. A Latch is only
// a name with methods: make as many as needed, and use them from any goroutine.
//
// A method other than Wait returns after at most Config.CallTimeout and 250 ms, even if ctx never
// ends. Its errors are ErrUnavailable, ErrRejected, ErrInvalid, ErrClosed, ErrCrashed, and the cause
// of ctx.
type Latch struct {
	runtime *actors.Runtime
	name    string
}

// Latch returns the latch of that name. For what a name may be, see Lock.
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

// TrySetCount closes the latch with a count of n, from 1 to 10^12, unless it is closed already, and
// reports whether it did.
func (l *Latch) TrySetCount(ctx context.Context, n int64) (set bool, err error) {
	a, err := l.ask(ctx, "set the count of", actors.NewCountCall(actors.OpSetPermits, n))
	return a.Done, err
}

// CountDown counts the latch down by one; an open latch stays as it is. A reply that is lost counts
// nothing twice. With ErrUnavailable, and if ctx ends, it is counted down in the background, for at
// most half an hour and until the System is closed: do not repeat it. With any other error it is not
// counted down.
func (l *Latch) CountDown(ctx context.Context) error {
	_, err := l.ask(ctx, "count down", actors.NewCountCall(actors.OpRelease, 0))
	return err
}

// CountDownOnce is CountDown, but that calls with the same id are counted once, whoever makes them;
// an id has 1 to 512 bytes. The ids are forgotten when the latch opens, and a week after the last of
// these calls.
func (l *Latch) CountDownOnce(ctx context.Context, id string) error {
	const op = "count down"
	if id == "" {
		return invalid(op, l.Name(), errors.New("the id is empty"))
	}
	call := actors.NewCountCall(actors.OpRelease, 0)
	call.ID = id
	_, err := l.ask(ctx, op, call)
	return err
}

// Wait waits until the latch is open. When ctx ends it gives up with the cause of ctx (and ErrTimeout
// if a deadline was exceeded). WithWait also bounds the wait; zero looks once, and fails with ErrHeld
// if the latch is closed. No other option is valid. The other errors are ErrTimeout, ErrQueueFull,
// ErrClosed, ErrUnavailable (only if WithWait bounds the wait), ErrRejected, ErrInvalid and
// ErrCrashed.
//
// If the latch is closed again before the System has seen it open, Wait goes on waiting.
func (l *Latch) Wait(ctx context.Context, options ...Option) error {
	const op = "wait for"
	call := actors.NewCountCall(actors.OpAcquire, 0)
	if err := waitOnly(options, call, "nobody holds a latch: WithWait is the only option"); err != nil {
		return invalid(op, l.Name(), err)
	}
	_, err := l.ask(ctx, op, call)
	return err
}

// Count returns how many count-downs are missing; 0 if the latch is open.
func (l *Latch) Count(ctx context.Context) (n int64, err error) {
	a, err := l.ask(ctx, "look at", actors.NewCountCall(actors.OpInspect, 0))
	return a.N, err
}

// ask has a request carried out.
func (l *Latch) ask(ctx context.Context, op string, call *actors.CountCall) (actors.CountAnswer, error) {
	if l == nil {
		return actors.CountAnswer{}, invalid(op, "", errors.New("the latch is nil"))
	}
	call.Kind, call.Name = messages.Kind_KIND_LATCH, l.name
	return doCount(ctx, l.runtime, op, call)
}
