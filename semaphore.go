package lockkeeper

import (
	"context"
	"errors"
	"time"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Semaphore is a number of permits, Redisson's RSemaphore. If the permits of a dead process must come back, use an
// ExpirableSemaphore. A Semaphore is shared with all Lockkeeper systems and Redisson clients that use the same name on
// the same Redis. It is only a name with methods: make as many as needed, and use them from any goroutine.
//
// A process must set the number of permits, with TrySetPermits or AddPermits. Until then, and after Redis
// has lost its data, Acquire and TryAcquire fail with ErrNoPermits even if they would wait. The System does
// not set the number again, since it cannot know when the permits that were acquired before are released.
//
// Permits have no owner: any client may release them. The permits of a process that has died, or that has closed its
// System without releasing them, stay taken until a client releases them with Release or AddPermits.
//
// Within a System, permits are acquired in order of arrival: a request for few permits never overtakes
// an earlier request for many. Processes take turns: while others wait, each hands permits off to its own
// waiters for at most Config.HandOffLimit.
//
// A method other than Acquire returns after at most Config.CallTimeout and 250 ms, even if ctx never
// ends. The errors of such a method are ErrUnavailable, ErrRejected, ErrInvalid, ErrClosed, ErrCrashed, and
// the cause of ctx. After ErrUnavailable, or if ctx ends, the command may have been carried out.
type Semaphore struct {
	runtime *actors.Runtime
	name    string
}

// Semaphore returns the semaphore of that name. See Lock for valid names.
func (s *System) Semaphore(name string) *Semaphore {
	return &Semaphore{runtime: s.inner(), name: name}
}

// Name returns the name of the semaphore, without the key prefix.
func (s *Semaphore) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// TrySetPermits creates the semaphore with n permits, 0 to 2147483647, unless it exists, and reports whether it did.
// The semaphore is deleted after the ttl, at least 10 ms, even if permits are taken; zero is no ttl.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int, ttl time.Duration) (set bool, err error) {
	call := request.NewCountCall(request.OpSet, int64(n))
	call.TTL = ttl
	a, err := s.ask(ctx, "set the permits of", call)
	return a.Done, err
}

// AddPermits adds n permits. A negative n removes permits, even more than are free: then no permit is
// free until enough are released. Meanwhile a process hands permits off to its own waiters for at most
// Config.HandOffLimit.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error {
	_, err := s.ask(ctx, "add permits to", request.NewCountCall(request.OpAdd, int64(n)))
	return err
}

// Acquire waits until it has n permits, at least 1. When ctx ends, it withdraws the request and returns the cause of
// ctx (and ErrTimeout if a deadline was exceeded). WithWait also bounds the wait. The other errors are
// ErrTimeout (with WithWait(0) ErrHeld), ErrNoPermits, ErrQueueFull, ErrClosed, ErrUnavailable (only if
// WithWait bounds the wait), ErrRejected, ErrInvalid and ErrCrashed.
//
// The System does not keep track of acquired permits, so the caller must release them in every case.
func (s *Semaphore) Acquire(ctx context.Context, n int, options ...WaitOption) error {
	const op = "acquire permits of"
	call := request.NewCountCall(request.OpAcquire, int64(n))
	if err := applyWaits(options, call); err != nil {
		return invalidError(op, s.Name(), err)
	}
	_, err := s.ask(ctx, op, call)
	return err
}

// applyWaits puts the options into a call.
func applyWaits(options []WaitOption, call *request.CountCall) error {
	for _, option := range options {
		if option == nil {
			return errNoOption
		}
		option.applyWait(call)
	}
	return nil
}

// TryAcquire tries once to acquire n permits and does not wait. It fails with ErrHeld if too few permits are free, or
// if the free permits are left for requests that wait in this System or in another process.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) error {
	call := request.NewCountCall(request.OpAcquire, int64(n))
	call.Try = true
	_, err := s.ask(ctx, "try to acquire permits of", call)
	return err
}

// Release releases n permits, which another client may have acquired. If the semaphore does not exist, since it was
// deleted or Redis has lost it, Release fails with ErrNoPermits. After ErrUnavailable, or if ctx ends, do not release
// the permits again, since the System keeps trying in the background. After any other error they were not released.
func (s *Semaphore) Release(ctx context.Context, n int) error {
	_, err := s.ask(ctx, "release permits of", request.NewCountCall(request.OpRelease, int64(n)))
	return err
}

// ReleaseIfExists is like Release, but returns no error if the semaphore does not exist. It reports whether it exists.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (released bool, err error) {
	call := request.NewCountCall(request.OpRelease, int64(n))
	call.IfExists = true
	a, err := s.ask(ctx, "release permits of", call)
	return a.Done, err
}

// Drain acquires all free permits and returns their number. The number is negative if AddPermits has removed more
// permits than were free; then Drain sets it to zero. If no number is set, Drain returns 0 and no error.
func (s *Semaphore) Drain(ctx context.Context) (n int, err error) {
	a, err := s.ask(ctx, "drain", request.NewCountCall(request.OpDrain, 0))
	return int(a.N), err
}

// Delete deletes the semaphore, and reports whether it existed. Requests that wait for permits fail with ErrNoPermits,
// and so does a later Release. If the permits are set again before that Release, it adds its permits to the new ones,
// since Redis does not know which clients have permits. If Delete fails with ErrUnavailable, the semaphore may have
// been deleted.
func (s *Semaphore) Delete(ctx context.Context) (deleted bool, err error) {
	a, err := s.ask(ctx, "delete", request.NewCountCall(request.OpDelete, 0))
	return a.Done, err
}

// Available returns how many permits are free. The number is negative if AddPermits has removed more permits than were
// free. Available fails with ErrNoPermits if no number of permits is set.
func (s *Semaphore) Available(ctx context.Context) (n int, err error) {
	a, err := s.ask(ctx, "look at", request.NewCountCall(request.OpInspect, 0))
	return int(a.N), err
}

// ask sends a call about the semaphore, and returns the answer.
func (s *Semaphore) ask(ctx context.Context, op string, call *request.CountCall) (request.CountAnswer, error) {
	if s == nil {
		return request.CountAnswer{}, invalidError(op, "", errors.New("the semaphore is nil"))
	}
	call.Kind, call.Name = messages.Kind_KIND_SEMAPHORE, s.name
	return doCount(ctx, s.runtime, op, call)
}

// doCount sends a call about a semaphore or a latch, and returns the answer. The call must not be used afterwards.
func doCount(ctx context.Context, runtime *actors.Runtime, op string, call *request.CountCall) (request.CountAnswer, error) {
	name := call.Name
	if ctx == nil {
		return request.CountAnswer{}, invalidError(op, name, errNoContext)
	}
	if ctx.Err() != nil && call.Op != request.OpRelease {
		return request.CountAnswer{}, endedError(ctx, op, name, "")
	}
	if runtime == nil {
		return request.CountAnswer{}, invalidError(op, name, errors.New("the System is nil: From returns nil for an actor system without one"))
	}
	if err := call.Check(); err != nil {
		return request.CountAnswer{}, invalidError(op, name, err)
	}
	a, answered := runtime.DoCount(ctx, call)
	switch {
	case !answered, a.Reason == machine.CancelledByRequest:
		return request.CountAnswer{}, endedError(ctx, op, name, a.Detail)
	case a.Reason != 0:
		return request.CountAnswer{}, failedError(op, name, messages.Reason(a.Reason), a.Detail, false)
	}
	return a, nil
}
