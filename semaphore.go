package lockkeeper

import (
	"context"
	"errors"
	"time"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Semaphore is a number of permits, shared with all Lockkeeper systems and Redisson clients that use
// the same name on the same Redis; Redisson's RSemaphore. A Semaphore is only a name with methods:
// make as many as needed, and use them from any goroutine.
//
// Some process must set how many permits there are, with TrySetPermits or AddPermits. Before, and after
// Redis has lost its data, methods that acquire fail with ErrNoPermits, whether they would wait or not.
// Nothing is set again by itself, since nothing tells when the permits are back that were acquired before.
//
// Permits have no owner. Anybody may release permits that another has acquired, and those of a process
// that has died, or that has closed its System without releasing them, stay taken until somebody
// releases them with Release or AddPermits.
//
// Permits are acquired in order of arrival within a System: who wants few does not overtake who wants
// many. Processes compete for them, and each hands permits over to its own waiters for at most
// Config.HandOffLimit while other processes wait, too.
//
// A method other than Acquire returns after at most Config.CallTimeout and 250 ms, even if ctx never
// ends. Its errors are ErrUnavailable, ErrRejected, ErrInvalid, ErrClosed, ErrCrashed, and the cause
// of ctx.
type Semaphore struct {
	runtime *actors.Runtime
	name    string
}

// Semaphore returns the semaphore of that name. For what a name may be, see Lock.
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

// TrySetPermits makes the semaphore with n permits, unless there is one, and reports whether it did.
// The semaphore ends after the ttl, however many permits are taken then; with a ttl of zero it lasts.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int, ttl time.Duration) (set bool, err error) {
	call := actors.NewCountCall(actors.OpSetPermits, int64(n))
	call.TTL = ttl
	a, err := s.ask(ctx, "set the permits of", call)
	return a.Done, err
}

// AddPermits adds n permits to those that there are. A negative n takes permits away, more than are
// free if need be: as many must come back then before anybody gets one. A process hands permits on to
// its own waiters meanwhile, for at most Config.HandOffLimit.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error {
	_, err := s.ask(ctx, "add permits to", actors.NewCountCall(actors.OpAddPermits, int64(n)))
	return err
}

// Acquire waits until it has n permits. When ctx ends it gives up with the cause of ctx (and
// ErrTimeout if a deadline was exceeded), and withdraws the request. WithWait also bounds the wait; no
// other option is valid. The other errors are ErrTimeout, ErrQueueFull, ErrClosed, ErrUnavailable
// (only if WithWait bounds the wait), ErrRejected, ErrInvalid and ErrCrashed.
//
// Nobody but the caller knows that it has the permits: it must release them, whatever happens.
func (s *Semaphore) Acquire(ctx context.Context, n int, options ...Option) error {
	const op = "acquire permits of"
	call := actors.NewCountCall(actors.OpAcquire, int64(n))
	if err := waitOnly(options, call, "the permits of a semaphore have no owner and no lease: WithWait is the only option"); err != nil {
		return invalid(op, s.Name(), err)
	}
	_, err := s.ask(ctx, op, call)
	return err
}

// waitOnly puts WithWait into a call, and returns an error if there is another option: why says why.
func waitOnly(options []Option, call *actors.CountCall, why string) error {
	if len(options) == 0 {
		return nil // without memory for what is not there
	}
	var r request
	for _, option := range options {
		if option == nil {
			return errNoOption
		}
		option(&r)
	}
	if r.wait != nil {
		call.Wait, call.Try = *r.wait, *r.wait == 0
	}
	if r.lease != nil || r.maxHold != nil || r.once || r.atRisk != nil {
		return errors.New(why)
	}
	return nil
}

// TryAcquire tries once to acquire n permits and does not wait. It fails with ErrHeld if there are too
// few, or if others wait for permits in this System already.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) error {
	call := actors.NewCountCall(actors.OpAcquire, int64(n))
	call.Try = true
	_, err := s.ask(ctx, "try to acquire permits of", call)
	return err
}

// Release gives n permits back, whoever has acquired them. If there is no semaphore, it fails with
// ErrNoPermits: those permits belong to one that Redis has lost. With
// ErrUnavailable, and if ctx ends, the permits are given back in the background: do not release
// them again. With any other error they are not given back.
func (s *Semaphore) Release(ctx context.Context, n int) error {
	_, err := s.ask(ctx, "release permits of", actors.NewCountCall(actors.OpRelease, int64(n)))
	return err
}

// ReleaseIfExists is like Release, but a semaphore that does not exist is no error. It reports whether
// there is one.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (released bool, err error) {
	call := actors.NewCountCall(actors.OpRelease, int64(n))
	call.IfExists = true
	a, err := s.ask(ctx, "release permits of", call)
	return a.Done, err
}

// Drain acquires all permits that are free, and returns how many that were. If more were taken away
// than were free, it returns a negative number, and zero are free then.
func (s *Semaphore) Drain(ctx context.Context) (n int, err error) {
	a, err := s.ask(ctx, "drain", actors.NewCountCall(actors.OpDrain, 0))
	return int(a.N), err
}

// Available returns how many permits are free; less than zero if more were taken away than were free. It
// fails with ErrNoPermits if no number of permits is set.
func (s *Semaphore) Available(ctx context.Context) (n int, err error) {
	a, err := s.ask(ctx, "look at", actors.NewCountCall(actors.OpInspect, 0))
	return int(a.N), err
}

// ask has a call carried out.
func (s *Semaphore) ask(ctx context.Context, op string, call *actors.CountCall) (actors.CountAnswer, error) {
	if s == nil {
		return actors.CountAnswer{}, invalid(op, "", errors.New("the semaphore is nil"))
	}
	call.Kind, call.Name = messages.Kind_KIND_SEMAPHORE, s.name
	return doCount(ctx, s.runtime, op, call)
}

// doCount has a call about a semaphore or a latch carried out. It must not be used afterwards.
func doCount(ctx context.Context, runtime *actors.Runtime, op string, call *actors.CountCall) (actors.CountAnswer, error) {
	name := call.Name
	if ctx == nil {
		return actors.CountAnswer{}, invalid(op, name, errNoContext)
	}
	if ctx.Err() != nil && call.Op != actors.OpRelease {
		return actors.CountAnswer{}, ended(ctx, op, name, "")
	}
	if runtime == nil {
		return actors.CountAnswer{}, invalid(op, name, errors.New("the System is nil: From gives nil where no New has succeeded"))
	}
	if err := call.Check(); err != nil {
		return actors.CountAnswer{}, invalid(op, name, err)
	}
	a, answered := runtime.DoCount(ctx, call)
	switch {
	case !answered, a.Reason == lock.CancelledByRequest:
		return actors.CountAnswer{}, ended(ctx, op, name, a.Detail)
	case a.Reason != 0:
		return actors.CountAnswer{}, failed(op, name, messages.Reason(a.Reason), a.Detail, false)
	}
	return a, nil
}
