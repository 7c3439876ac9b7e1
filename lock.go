package lockkeeper

import (
	"context"
	"errors"
	"time"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Lock is a reentrant lock, shared with everybody who uses the same name on the
// same Redis: Lockkeeper systems, and Redisson's RLock. It is a name with methods;
// any number of them may be made, and used by any number of goroutines.
type Lock struct {
	system *System
	name   string
}

// Lock names a reentrant lock: 1 to 512 bytes of UTF-8, key prefix included. A name
// that is not allowed is reported by the methods, with ErrInvalid.
func (s *System) Lock(name string) *Lock { return &Lock{system: s, name: name} }

// Name is the name of the lock, without the key prefix.
func (l *Lock) Name() string { return l.name }

// Option changes how a lock is acquired.
type Option func(*request)

// request is an Acquire as the options left it; a time that was not given is nil.
type request struct {
	lease, wait, maxHold *time.Duration
	atRisk               func(left time.Duration)
}

// WithLease asks for a fixed lease, at least 10 ms: it is not renewed, and the hold
// is lost when it is over. Without it the watchdog keeps the lock for as long as the
// process lives and does not release it.
func WithLease(d time.Duration) Option { return func(r *request) { r.lease = &d } }

// WithWait bounds the wait, besides the context; zero tries once. Without it only
// the context does.
func WithWait(d time.Duration) Option { return func(r *request) { r.wait = &d } }

// WithMaxHold bounds how long the watchdog keeps the hold alive, at least 10 ms.
func WithMaxHold(d time.Duration) Option { return func(r *request) { r.maxHold = &d } }

// WithAtRisk has f called, on a goroutine of its own, when renewals begin to fail:
// unless one succeeds, the hold is lost when what is left is over.
func WithAtRisk(f func(left time.Duration)) Option { return func(r *request) { r.atRisk = f } }

// Acquire waits until the lock is granted. It gives up when ctx ends, leaving
// nothing behind, with an error that is ctx's; or with ErrTimeout, ErrQueueFull,
// ErrClosed, ErrUnavailable (only if the wait is bounded by WithWait), ErrRejected,
// ErrInvalid or ErrCrashed.
//
// ctx bounds the wait, and it is the parent of the hold's Context; the lock itself
// stays held until Release. Acquire with the Context of a hold of the same lock
// re-enters that hold; any other call is another holder.
func (l *Lock) Acquire(ctx context.Context, options ...Option) (*Hold, error) {
	return l.acquire(ctx, "acquire", options)
}

// TryAcquire asks for the lock once and does not wait: ErrHeld says that somebody
// else has it, ErrUnavailable that Redis did not answer.
func (l *Lock) TryAcquire(ctx context.Context, options ...Option) (*Hold, error) {
	return l.acquire(ctx, "try to acquire", append(options[:len(options):len(options)], WithWait(0)))
}

func (l *Lock) acquire(ctx context.Context, op string, options []Option) (*Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Op: op, Lock: l.name, Err: context.Cause(ctx)}
	}
	hold := &Hold{lock: l, parent: ctx}
	call, err := l.call(hold, options)
	if err != nil {
		return nil, invalid(op, l.name, err)
	}
	outer, _ := ctx.Value(holdKey{l.system, l.name}).(*Hold)
	if outer != nil && outer.active() {
		call.Owner = outer.owner
	}
	out, answered := l.system.runtime.Do(ctx, call)
	if !answered {
		out = l.system.runtime.Withdraw(call)
		return nil, &Error{Op: op, Lock: l.name, Reason: messages.Reason_REASON_CANCELLED, Detail: out.Detail, Err: context.Cause(ctx)}
	}
	if out.Kind != core.Granted {
		return nil, failed(op, l.name, out.Answer)
	}
	hold.granted(out)
	return hold, nil
}

// call makes the request of an Acquire.
func (l *Lock) call(hold *Hold, options []Option) (*actors.Call, error) {
	call := &actors.Call{Op: actors.OpAcquire, Name: l.name, Holder: hold}
	if len(options) == 0 {
		return call, nil
	}
	var r request
	for _, option := range options {
		option(&r)
	}
	value := func(d *time.Duration) time.Duration {
		if d == nil {
			return 0
		}
		return *d
	}
	call.Lease, call.MaxHold, call.Wait = value(r.lease), value(r.maxHold), value(r.wait)
	call.Try = r.wait != nil && *r.wait == 0
	hold.onRisk = r.atRisk
	if r.lease != nil && *r.lease == 0 || r.maxHold != nil && *r.maxHold == 0 {
		return nil, errors.New("a lease or a max hold of zero would be over at once; leave the option out for none")
	}
	return call, actors.CheckAcquire(call.Lease, call.Wait, call.MaxHold)
}

// ForceRelease frees the lock, whoever holds it and in whichever process, and tells
// whether it was held. A holder in this System is told at once, one in another
// when it next renews its lease.
func (l *Lock) ForceRelease(ctx context.Context) (wasHeld bool, err error) {
	out, err := l.ask(ctx, "force release", &actors.Call{Op: actors.OpForceRelease})
	if err != nil {
		return false, err
	}
	return out.Count > 0, nil
}

// Status is what is known of a lock at one moment.
type Status struct {
	// Locked says that somebody holds the lock, HeldHere that it is this System.
	Locked   bool
	HeldHere bool
	// Holder is the owner field in Redis, "<client uuid>:<number>"; HoldCount how
	// often the holder has it.
	Holder    string
	HoldCount int
	// TTL is what is left of the holder's lease; negative if the lock is free, or
	// is held without an end.
	TTL time.Duration
	// Waiters is how many requests wait in this System, Subscribers how many
	// clients in all listen for the lock's release.
	Waiters     int
	Subscribers int
}

// Inspect asks Redis, and this System, about the lock.
func (l *Lock) Inspect(ctx context.Context) (Status, error) {
	out, err := l.ask(ctx, "inspect", &actors.Call{Op: actors.OpInspect})
	if err != nil {
		return Status{}, err
	}
	m := out.Status
	s := Status{
		Locked: m.Locked, HeldHere: m.HeldHere, Holder: m.Holder, HoldCount: int(m.HoldCount),
		TTL: -1, Waiters: int(m.Waiters), Subscribers: int(m.Subscribers),
	}
	if m.Ttl != nil {
		s.TTL = m.Ttl.AsDuration()
	}
	return s, nil
}

// ask submits a call that is not an Acquire, and waits for the answer or for ctx.
func (l *Lock) ask(ctx context.Context, op string, call *actors.Call) (actors.Outcome, error) {
	call.Name = l.name
	out, answered := l.system.runtime.Do(ctx, call)
	if !answered {
		return out, &Error{Op: op, Lock: l.name, Err: context.Cause(ctx)}
	}
	if out.Reason != 0 {
		return out, failed(op, l.name, out.Answer)
	}
	return out, nil
}
