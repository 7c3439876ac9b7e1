package lockkeeper

import (
	"context"
	"errors"
	"time"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Lock is a lock of any kind, shared with everybody who uses the same name and kind on
// the same Redis: Lockkeeper systems, and Redisson. It is a name with methods; any
// number of them may be made, and used by any number of goroutines.
type Lock struct {
	runtime *actors.Runtime
	kind    messages.Kind
	mode    messages.Mode
	name    string
	// members are those of a MultiLock; wrong is why it cannot be used.
	members *actors.Members
	wrong   error
}

// Lock names a reentrant lock, Redisson's RLock: 1 to 512 bytes of UTF-8, key prefix
// included. A name that is not allowed is reported by the methods, with ErrInvalid.
func (s *System) Lock(name string) *Lock {
	return &Lock{runtime: s.inner(), name: name}
}

// Name is the name of the lock, without the key prefix; of a MultiLock, those of its
// members in the order in which they are taken.
func (l *Lock) Name() string {
	switch {
	case l == nil:
		return ""
	case l.members != nil:
		return l.members.String()
	}
	return l.name
}

// unusable says why there is nothing to lock with; nil if there is.
func (l *Lock) unusable() error {
	switch {
	case l == nil:
		return errors.New("the lock is nil")
	case l.wrong != nil:
		return l.wrong
	case l.runtime == nil:
		return errors.New("the System of the lock is nil: From gives nil where no New has succeeded")
	}
	return nil
}

// Option changes how a lock is acquired.
type Option func(*request)

// request is an Acquire as the options left it; a time that was not given is nil.
type request struct {
	lease, wait, maxHold *time.Duration
	once                 bool
	atRisk               func(left time.Duration)
}

// WithLease asks for a fixed lease, at least 10 ms: it is not renewed, and the hold
// is lost when it is over. Without it the watchdog renews the lease until the hold is
// released or the process ends. It cannot be combined with WithMaxHold.
//
// A re-entry joins the hold. If the hold has a fixed lease, a lease that ends later
// prolongs the hold, for all that have re-entered it. A lease that would end before the
// hold, or any lease on a hold that the watchdog keeps, is refused with ErrInvalid.
func WithLease(d time.Duration) Option { return func(r *request) { r.lease = &d } }

// WithWait bounds the wait, in addition to the context; zero tries once. Without it only
// the context bounds it.
func WithWait(d time.Duration) Option { return func(r *request) { r.wait = &d } }

// WithMaxHold bounds how long the watchdog keeps the hold alive, at least 10 ms. A
// re-entry is refused with ErrInvalid if the hold that it joins may last longer.
func WithMaxHold(d time.Duration) Option { return func(r *request) { r.maxHold = &d } }

// WithoutReentry refuses a re-entry with ErrReentry instead of granting it.
func WithoutReentry() Option { return func(r *request) { r.once = true } }

// WithAtRisk has f called, on a goroutine of its own, when renewals begin to fail:
// unless one succeeds, the hold is lost when what is left is over. A panic in f is logged.
func WithAtRisk(f func(left time.Duration)) Option { return func(r *request) { r.atRisk = f } }

// Acquire waits until the lock is granted. It gives up when ctx ends, leaving
// nothing behind, with an error that is ctx's; or with ErrTimeout, ErrQueueFull,
// ErrClosed, ErrUnavailable (only if the wait is bounded by WithWait), ErrRejected,
// ErrInvalid or ErrCrashed.
//
// ctx bounds the wait, and it is the parent of the hold's Context; the lock itself
// stays held until Release. Acquire with the Context of a hold of the same lock
// re-enters the lock, as long as that hold or any other of its call tree is not released.
// The call tree is the first hold and all that have re-entered it. Any other call is
// another holder.
func (l *Lock) Acquire(ctx context.Context, options ...Option) (*Hold, error) {
	return l.acquire(ctx, "acquire", options)
}

// TryAcquire asks for the lock once and does not wait: ErrHeld says that somebody
// else has it, ErrUnavailable that Redis did not answer. It returns after
// Config.CallTimeout and 250 ms at the latest, also if ctx never ends.
func (l *Lock) TryAcquire(ctx context.Context, options ...Option) (*Hold, error) {
	return l.acquire(ctx, "try to acquire", append(options[:len(options):len(options)], WithWait(0)))
}

func (l *Lock) acquire(ctx context.Context, op string, options []Option) (*Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Op: op, Lock: l.Name(), Err: context.Cause(ctx)}
	}
	if err := l.unusable(); err != nil {
		return nil, invalid(op, l.Name(), err)
	}
	hold := &Hold{lock: l, parent: ctx, outer: l.outerOf(ctx)}
	hold.root = hold
	call, err := l.call(hold, options)
	if err != nil {
		return nil, invalid(op, l.Name(), err)
	}
	if tree := l.reentered(hold.outer); tree != nil {
		call.Owner = tree.owner
	}
	out, answered := l.runtime.Do(ctx, call)
	if !answered {
		out = l.runtime.Withdraw(call)
		bind(out) // a re-entry that is given back at once has still moved the end of the hold
		return nil, &Error{Op: op, Lock: l.Name(), Reason: messages.Reason_REASON_CANCELLED, Detail: out.Detail, Err: context.Cause(ctx)}
	}
	if out.Kind != core.Granted {
		return nil, failed(op, l.Name(), out.Answer)
	}
	hold.granted(out)
	return hold, nil
}

// call makes the request of an Acquire.
func (l *Lock) call(hold *Hold, options []Option) (*actors.Call, error) {
	call := l.about(actors.OpAcquire)
	call.Holder = hold
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
	call.Once, hold.onRisk = r.once, r.atRisk
	if r.lease != nil && *r.lease == 0 || r.maxHold != nil && *r.maxHold == 0 {
		return nil, errors.New("a lease or a max hold of zero would be over at once; leave the option out for none")
	}
	err := actors.CheckAcquire(call.Lease, call.Wait, call.MaxHold)
	return call, errors.Join(err, l.runtime.CheckRed(l.kind, l.members, call.Lease))
}

// about is a call about this lock.
func (l *Lock) about(op actors.Op) *actors.Call {
	return &actors.Call{Op: op, Kind: l.kind, Mode: l.mode, Name: l.name, Members: l.members}
}

// same reports whether two name the same lock, in whichever mode.
func (l *Lock) same(other *Lock) bool {
	if l.members != nil && other.members != nil {
		return l.members.ID() == other.members.ID()
	}
	return l.members == nil && other.members == nil && actors.SameKey(l.kind, other.kind) && l.name == other.name
}

// ForceRelease frees the lock, whoever holds it and in whichever process, and reports
// whether it was held. A holder in this System is told at once, one in another
// when it next renews its lease. It returns after Config.CallTimeout and 250 ms at the
// latest, also if ctx never ends.
func (l *Lock) ForceRelease(ctx context.Context) (wasHeld bool, err error) {
	out, err := l.ask(ctx, "force release", actors.OpForceRelease)
	if err != nil {
		return false, err
	}
	return out.Count > 0, nil
}

// Status is what is known of a lock at one moment.
type Status struct {
	// Locked reports whether somebody holds the lock, HeldHere whether this System does.
	Locked   bool
	HeldHere bool
	// Shared reports whether readers hold it; Holders is how many clients hold it.
	Shared  bool
	Holders int
	// Holder is the owner field in Redis, "<client uuid>:<number>", or one of them;
	// HoldCount how often that holder has it.
	Holder    string
	HoldCount int
	// TTL is what is left of the holder's lease; negative if the lock is free, or
	// its key has no TTL.
	TTL time.Duration
	// Waiters is how many requests wait in this System, Subscribers how many
	// clients in all listen for the lock's release, or did until a moment ago; of a fair
	// lock, how many requests stand in its queue.
	Waiters     int
	Subscribers int
	// Token is the fencing token of the hold in this System; 0 if there is none.
	Token int64
}

// Inspect reports what Redis and this System know of the lock. It returns after Config.CallTimeout
// and 250 ms at the latest, also if ctx never ends.
func (l *Lock) Inspect(ctx context.Context) (Status, error) {
	out, err := l.ask(ctx, "inspect", actors.OpInspect)
	if err != nil {
		return Status{}, err
	}
	m := out.Status
	s := Status{
		Locked: m.Locked, HeldHere: m.HeldHere, Holder: m.Holder, HoldCount: int(m.HoldCount),
		TTL: -1, Waiters: int(m.Waiters), Subscribers: int(m.Subscribers), Token: m.Token,
		Shared: m.Mode == messages.Mode_MODE_SHARED, Holders: int(m.Holders),
	}
	if m.Ttl != nil {
		s.TTL = m.Ttl.AsDuration()
	}
	return s, nil
}

// ask asks something about the lock, and waits for the answer or for ctx.
func (l *Lock) ask(ctx context.Context, op string, what actors.Op) (actors.Outcome, error) {
	if err := l.unusable(); err != nil {
		return actors.Outcome{}, invalid(op, l.Name(), err)
	}
	return l.submit(ctx, op, l.about(what))
}

// submit submits a call that is not an Acquire, and waits for the answer or for ctx.
func (l *Lock) submit(ctx context.Context, op string, call *actors.Call) (actors.Outcome, error) {
	out, answered := l.runtime.Do(ctx, call)
	if !answered {
		return out, &Error{Op: op, Lock: l.Name(), Err: context.Cause(ctx)}
	}
	if out.Reason != 0 {
		return out, failed(op, l.Name(), out.Answer)
	}
	return out, nil
}
