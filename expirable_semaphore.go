package lockkeeper

import (
	"context"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// ExpirableSemaphore is a semaphore whose permits have holders and leases, Redisson's RPermitExpirableSemaphore. All
// processes together hold at most as many permits as there are. A permit is renewed while it is held and becomes free
// when its holder dies; a holder that loses its permit is notified. An ExpirableSemaphore is only a name with methods,
// like a Lock.
//
// Set the number of permits once for all processes, for instance with TrySetPermits. Until then, and after Redis has
// lost its data, Acquire fails with ErrNoPermits. If each process is to set the number by itself, use only WithTotal: a
// TrySetPermits at each start does not wait for the permits that were granted before Redis lost its data.
type ExpirableSemaphore struct{ lock *Lock }

// ExpirableSemaphore returns the expirable semaphore of that name. See Lock for valid names.
func (s *System) ExpirableSemaphore(name string) *ExpirableSemaphore {
	return &ExpirableSemaphore{&Lock{runtime: s.inner(), kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE, name: name}}
}

// WithTotal returns the same semaphore with a number of permits, at least 1, for its Acquire, TryAcquire and Do: they
// set the number if none is set, because this is the first use or because Redis has lost its data. Setting the number
// takes Config.Watchdog, the time until all earlier permits have expired; permits that this System still holds stay
// taken. TrySetPermits sets the number at once. If n is not valid, all methods of the returned semaphore fail with
// ErrInvalid.
//
// Other Systems should have the same Watchdog: permits that they have acquired with a longer WithLease
// are not known after Redis has lost its data.
func (s *ExpirableSemaphore) WithTotal(n int) *ExpirableSemaphore {
	if s.inner() == nil {
		return nil
	}
	lock := *s.lock
	if lock.total = int64(n); n < 1 || n > machine.MaxPermits {
		lock.invalid = fmt.Errorf("WithTotal(%d): the number of permits must be between 1 and %d", n, machine.MaxPermits)
	}
	return &ExpirableSemaphore{&lock}
}

// Name returns the name of the semaphore, without the key prefix.
func (s *ExpirableSemaphore) Name() string { return s.inner().Name() }

// inner returns the lock, or nil for a nil semaphore.
func (s *ExpirableSemaphore) inner() *Lock {
	if s == nil {
		return nil
	}
	return s.lock
}

// Acquire waits until it has a permit. It has the options and the errors of Lock.Acquire, and also fails with
// ErrNoPermits; ctx bounds only the wait. There is no re-entry: each Acquire takes another permit, even with the
// context of a permit, and waits if none is free.
//
// Without WithLease the watchdog renews the permit until it is released or the process ends.
func (s *ExpirableSemaphore) Acquire(ctx context.Context, options ...Option) (*Permit, error) {
	return asPermit(s.inner().Acquire(ctx, options...))
}

// TryAcquire takes a permit if one is free, and does not wait; see Lock.TryAcquire. It fails with
// ErrHeld if no permit is free.
func (s *ExpirableSemaphore) TryAcquire(ctx context.Context, options ...Option) (*Permit, error) {
	return asPermit(s.inner().TryAcquire(ctx, options...))
}

func asPermit(hold *Hold, err error) (*Permit, error) {
	if err != nil {
		return nil, err
	}
	return &Permit{hold}, nil
}

// Do acquires a permit, runs f, and releases the permit; see Lock.Do.
func (s *ExpirableSemaphore) Do(ctx context.Context, f func(ctx context.Context) error, options ...WorkOption) error {
	return s.inner().Do(ctx, f, options...)
}

// ReleaseID releases the permit with that id, which another process may hold, for instance a Java process. A holder in
// this System is notified of the loss at once, a holder in another process at its next renewal, with a fixed lease at
// the end of the lease or at Release. The holder then gives back all permits that it acquired together with this one.
// ReleaseID fails with ErrNotHeld if there is no such permit, and with ErrInvalid if id does not consist of 32
// hexadecimal digits. It returns after at most Config.CallTimeout and 250 ms, even if ctx never ends.
func (s *ExpirableSemaphore) ReleaseID(ctx context.Context, id string) error {
	const op = "release"
	parsed, err := request.ParsePermitID(id)
	if err != nil {
		return invalidError(op, s.Name(), err)
	}
	_, err = s.ask(ctx, op, request.OpReleaseID, &request.Permit{ID: parsed})
	return err
}

// TrySetPermits sets the number of permits unless it is set, and reports whether it did. n is at most
// 2147483647. It returns after at most twice Config.CallTimeout and a second, even if ctx never ends.
// If it fails with ErrUnavailable, the number may have been set. The same limits and errors apply to
// SetPermits, AddPermits and Delete.
func (s *ExpirableSemaphore) TrySetPermits(ctx context.Context, n int) (set bool, err error) {
	return s.set(ctx, messages.SetPermitsHow_SET_PERMITS_HOW_TRY, n)
}

// SetPermits sets the number of permits, free and taken together. While more permits are taken, Redis grants none. A
// process still hands permits off to its own waiters, but gives up one permit at every Config.HandOffLimit until the
// number is right.
func (s *ExpirableSemaphore) SetPermits(ctx context.Context, n int) error {
	_, err := s.set(ctx, messages.SetPermitsHow_SET_PERMITS_HOW_TOTAL, n)
	return err
}

// AddPermits adds n permits, or removes permits if n is negative. If too few permits are free, the rest is removed as
// permits are released; see SetPermits.
func (s *ExpirableSemaphore) AddPermits(ctx context.Context, n int) error {
	_, err := s.set(ctx, messages.SetPermitsHow_SET_PERMITS_HOW_ADD, n)
	return err
}

// Delete deletes the semaphore and reports whether it did: it does nothing if no number of permits is set, or while a
// permit is taken. Waiting requests then fail with ErrNoPermits; with WithTotal, an Acquire sets the number again.
func (s *ExpirableSemaphore) Delete(ctx context.Context) (deleted bool, err error) {
	return s.set(ctx, messages.SetPermitsHow_SET_PERMITS_HOW_DELETE, 0)
}

func (s *ExpirableSemaphore) set(ctx context.Context, how messages.SetPermitsHow, n int) (set bool, err error) {
	op := "set permits"
	if how == messages.SetPermitsHow_SET_PERMITS_HOW_DELETE {
		op = "delete"
	}
	if err := request.CheckPermits(how, int64(n)); err != nil {
		return false, invalidError(op, s.Name(), err)
	}
	out, err := s.ask(ctx, op, request.OpSet, &request.Permit{How: how, Count: int64(n)})
	return out.Done, err
}

// Available returns how many permits are free. The number is negative while more permits are taken than there should
// be, after SetPermits or AddPermits. Available fails with ErrNoPermits if no number of permits is set, and returns
// after at most Config.CallTimeout and 250 ms, even if ctx never ends. The same applies to Acquired and Total.
func (s *ExpirableSemaphore) Available(ctx context.Context) (int, error) {
	status, err := s.count(ctx)
	return int(status.GetFreePermits()), err
}

// Acquired returns how many permits are taken and have not expired, in all processes.
func (s *ExpirableSemaphore) Acquired(ctx context.Context) (int, error) {
	status, err := s.count(ctx)
	return int(status.GetTakenPermits()), err
}

// Total returns how many permits there are, free and taken.
func (s *ExpirableSemaphore) Total(ctx context.Context) (int, error) {
	status, err := s.count(ctx)
	return int(status.GetAllPermits()), err
}

func (s *ExpirableSemaphore) count(ctx context.Context) (*messages.Status, error) {
	out, err := s.ask(ctx, "count permits", request.OpInspect, nil)
	return out.Status, err
}

func (s *ExpirableSemaphore) ask(ctx context.Context, op string, what request.Op, about *request.Permit) (request.Outcome, error) {
	if err := s.inner().checkCall(ctx); err != nil {
		return request.Outcome{}, invalidError(op, s.Name(), err)
	}
	call := s.lock.newCall(what)
	call.Permit = about
	return s.lock.submit(ctx, op, call)
}

// Permit is an acquired permit of an ExpirableSemaphore, or several that were acquired together, until it is released
// or lost. Its methods may be called from any goroutine.
type Permit struct{ hold *Hold }

// inner returns the hold, or nil for a nil Permit.
func (p *Permit) inner() *Hold {
	if p == nil {
		return nil
	}
	return p.hold
}

// ID returns the id of the permit in Redis, 32 hexadecimal digits. Other clients can release the permit by this id,
// with ReleaseID or with Redisson. Call ID before Release: afterwards the permit may have another holder. A permit
// whose ID was called is not handed off to the next waiter of this process.
func (p *Permit) ID() string {
	if ids := p.IDs(); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// IDs returns the ids of all permits that were acquired together (WithPermits). ID returns the first of them.
func (p *Permit) IDs() []string {
	if p.inner().checkUsable() != nil {
		return nil
	}
	permit := p.hold.permit()
	permit.Shown.Store(true)
	return permit.IDs()
}

// Context returns the context for the work under the permit. It is cancelled when the permit is
// released, and when it is lost, with a cause that wraps ErrLost; see Hold.Context.
func (p *Permit) Context() context.Context { return p.inner().Context() }

// Err returns nil while the permit is held, and then an error that wraps ErrLost or ErrNotHeld.
func (p *Permit) Err() error { return p.inner().Err() }

// Valid reports whether the permit is certainly held at this moment; see Hold.Valid.
func (p *Permit) Valid() bool { return p.inner().Valid() }

// Left returns the time for which the permit certainly stays held unless its lease is renewed; see Hold.Left.
func (p *Permit) Left() time.Duration { return p.inner().Left() }

// Extend gives the permit a fixed lease of d from now on, as Redisson's updateLeaseTime; see Hold.Extend.
func (p *Permit) Extend(ctx context.Context, d time.Duration) error { return p.inner().Extend(ctx, d) }

// KeepAlive makes the watchdog renew the lease of the permit from now on; see Hold.KeepAlive.
func (p *Permit) KeepAlive(ctx context.Context) error { return p.inner().KeepAlive(ctx) }

// Release releases the permit. It returns nil when Redis has confirmed the release, or when the next waiter of this
// process has the permit. Release has the errors of Hold.Release, and returns after at most Config.CallTimeout and 250
// ms, even if ctx never ends.
func (p *Permit) Release(ctx context.Context) error { return p.inner().Release(ctx) }
