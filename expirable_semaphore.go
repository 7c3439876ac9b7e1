package lockkeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Permits are the permits that expire of a name, Redisson's RPermitExpirableSemaphore: as many
// holders as there are permits, in all processes together. A permit is renewed as long as it is held,
// it is free again when its holder dies, and its holder is told if it is lost. Permits is only a name
// with methods, like a Lock.
//
// Some process must set how many permits there are, once, with TrySetPermits for instance. Before, and
// after Redis has lost its data, Acquire fails with ErrNoPermits; see WithPermits.
type ExpirableSemaphore struct{ lock *Lock }

// PermitsOption is an option of System.Permits.
type ExpirableSemaphoreOption func(*ExpirableSemaphore)

// WithPermits says how many permits there are, from 1. If an Acquire finds that no number is set, since
// Redis has lost its data, or since this is the first use, the number is set. That takes
// Config.Watchdog, until nobody trusts a permit from before; permits that this System still holds stay
// taken. TrySetPermits sets the number at once.
//
// Other Systems should have the same Watchdog. What they have acquired with a longer WithLease is not
// known after a loss.
func WithPermits(n int) ExpirableSemaphoreOption {
	return func(p *ExpirableSemaphore) {
		if p.lock.total = int64(n); n < 1 || n > actors.MaxPermits {
			p.lock.wrong = fmt.Errorf("WithPermits(%d): the number of permits must be between 1 and %d", n, actors.MaxPermits)
		}
	}
}

// Permits returns the permits that expire of that name; see Lock for the names.
func (s *System) ExpirableSemaphore(name string, options ...ExpirableSemaphoreOption) *ExpirableSemaphore {
	p := &ExpirableSemaphore{&Lock{runtime: s.inner(), kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE, name: name}}
	for _, option := range options {
		if option == nil {
			p.lock.wrong = errors.New("an option is nil; leave it out instead")
			continue
		}
		option(p)
	}
	return p
}

// Name returns the name of the permits, without the key prefix.
func (p *ExpirableSemaphore) Name() string { return p.inner().Name() }

// inner is nil if there are no Permits.
func (p *ExpirableSemaphore) inner() *Lock {
	if p == nil {
		return nil
	}
	return p.lock
}

// Acquire waits until it has a permit. The options and errors are those of Lock.Acquire, and ctx
// bounds only the wait. Nothing is re-entered: whoever holds a permit and acquires gets another one,
// and waits if none is free.
//
// Without WithLease the watchdog renews the permit until it is released or the process ends.
func (p *ExpirableSemaphore) Acquire(ctx context.Context, options ...Option) (*Permit, error) {
	return asPermit(p.inner().Acquire(ctx, options...))
}

// TryAcquire takes a permit if one is free, and does not wait; see Lock.TryAcquire. It fails with
// ErrHeld if no permit is free.
func (p *ExpirableSemaphore) TryAcquire(ctx context.Context, options ...Option) (*Permit, error) {
	return asPermit(p.inner().TryAcquire(ctx, options...))
}

func asPermit(hold *Hold, err error) (*Permit, error) {
	if err != nil {
		return nil, err
	}
	return &Permit{hold}, nil
}

// Do acquires a permit, runs f, and releases the permit; see Lock.Do.
func (p *ExpirableSemaphore) Do(ctx context.Context, f func(ctx context.Context) error, options ...Option) error {
	return p.inner().Do(ctx, f, options...)
}

// ReleaseID releases a permit by its id, whoever holds it: for instance one that a Java process has
// acquired. A holder in this System is told that it has lost its permit, a holder in another finds
// out with its next renewal. ReleaseID fails with ErrNotHeld if there is no such permit, and with
// ErrInvalid if id does not consist of 32 hexadecimal digits. It returns after at most
// Config.CallTimeout and 250 ms, even if ctx never ends.
func (p *ExpirableSemaphore) ReleaseID(ctx context.Context, id string) error {
	const op = "release"
	parsed, err := actors.ParsePermitID(id)
	if err != nil {
		return invalid(op, p.Name(), err)
	}
	_, err = p.ask(ctx, op, actors.OpReleaseID, &actors.Permit{ID: parsed})
	return err
}

// TrySetPermits sets how many permits there are, unless that was set before, and reports whether it
// did. n is at most 2147483647. It returns after at most twice Config.CallTimeout and a second, even
// if ctx never ends. If it fails with ErrUnavailable, the number may have been set all the same. That
// holds for SetPermits and AddPermits, too.
func (p *ExpirableSemaphore) TrySetPermits(ctx context.Context, n int) (set bool, err error) {
	return p.set(ctx, expirable.Try, n)
}

// SetPermits sets how many permits there are, free and taken together. While more are taken than
// that, nobody gets a permit from Redis. A process hands permits on to its own waiters meanwhile, but one
// goes at every Config.HandOffLimit until none is too many.
func (p *ExpirableSemaphore) SetPermits(ctx context.Context, n int) error {
	_, err := p.set(ctx, expirable.Total, n)
	return err
}

// AddPermits makes n more permits, or fewer if n is negative. If fewer are free than are to go, the
// rest goes as permits are released; see SetPermits.
func (p *ExpirableSemaphore) AddPermits(ctx context.Context, n int) error {
	_, err := p.set(ctx, expirable.Add, n)
	return err
}

func (p *ExpirableSemaphore) set(ctx context.Context, how expirable.How, n int) (set bool, err error) {
	const op = "set permits"
	if err := actors.CheckPermits(how, int64(n)); err != nil {
		return false, invalid(op, p.Name(), err)
	}
	out, err := p.ask(ctx, op, actors.OpSetPermits, &actors.Permit{How: how, Count: int64(n)})
	return out.Done, err
}

// Available returns how many permits are free. It is negative while more are taken than there should
// be, after SetPermits or AddPermits. It fails with ErrNoPermits if no number of permits is set, and returns
// after at most Config.CallTimeout and 250 ms, even if ctx never ends; that holds for Acquired and Total, too.
func (p *ExpirableSemaphore) Available(ctx context.Context) (int, error) {
	s, err := p.count(ctx)
	return int(s.GetFreePermits()), err
}

// Acquired returns how many permits are taken and have not expired, in all processes.
func (p *ExpirableSemaphore) Acquired(ctx context.Context) (int, error) {
	s, err := p.count(ctx)
	return int(s.GetTakenPermits()), err
}

// Total returns how many permits there are, free and taken.
func (p *ExpirableSemaphore) Total(ctx context.Context) (int, error) {
	s, err := p.count(ctx)
	return int(s.GetAllPermits()), err
}

func (p *ExpirableSemaphore) count(ctx context.Context) (*messages.Status, error) {
	out, err := p.ask(ctx, "count permits", actors.OpInspect, nil)
	return out.Status, err
}

func (p *ExpirableSemaphore) ask(ctx context.Context, op string, what actors.Op, about *actors.Permit) (actors.Outcome, error) {
	if err := p.inner().askable(ctx); err != nil {
		return actors.Outcome{}, invalid(op, p.Name(), err)
	}
	call := p.lock.about(what)
	call.Permit = about
	return p.lock.submit(ctx, op, call)
}

// Permit is a permit that was acquired, until it is released or lost. Its methods may be called from
// any goroutine.
type Permit struct{ hold *Hold }

// inner is nil if there is no Permit.
func (p *Permit) inner() *Hold {
	if p == nil {
		return nil
	}
	return p.hold
}

// ID returns the id of the permit in Redis, 32 hexadecimal digits, by which others can release it, as
// with ReleaseID or with Redisson. A permit whose ID was asked for is not handed on to the next waiter
// of this process when it is released. Ask for it before: afterwards it may be that of another holder.
func (p *Permit) ID() string {
	if p.inner().unusable() != nil {
		return ""
	}
	permit := p.hold.permit()
	permit.Shown.Store(true)
	return permit.ID.String()
}

// Context returns the context for the work under the permit. It is cancelled when the permit is
// released, and when it is lost, with a cause that wraps ErrLost; see Hold.Context.
func (p *Permit) Context() context.Context { return p.inner().Context() }

// Err returns nil while the permit is held, and then an error that wraps ErrLost or ErrNotHeld.
func (p *Permit) Err() error { return p.inner().Err() }

// Valid reports whether the permit is certainly held at this moment; see Hold.Valid.
func (p *Permit) Valid() bool { return p.inner().Valid() }

// Release releases the permit. It returns nil when Redis has confirmed that, or when the next waiter
// of this process has the permit. Its errors are those of Hold.Release. It returns after at most
// Config.CallTimeout and 250 ms, even if ctx never ends.
func (p *Permit) Release(ctx context.Context) error { return p.inner().Release(ctx) }
