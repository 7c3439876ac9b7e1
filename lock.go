package lockkeeper

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Lock is a lock of any kind; all are reentrant. It is shared with all Lockkeeper systems and Redisson clients that use
// the same name and kind on the same Redis. It is only a name with methods: make as many as needed, and use them from
// any goroutine.
type Lock struct {
	runtime *actors.Runtime
	kind    messages.Kind
	mode    messages.Mode
	name    string
	// members are the members of a MultiLock; nil for other kinds.
	members *request.Members
	invalid error
	// total is the number of permits that ExpirableSemaphore.WithTotal has given; 0 if none.
	total int64
}

// Lock returns the plain lock of that name, Redisson's RLock. A valid name has 1 to 512 bytes of
// UTF-8, including the key prefix, and is not reserved (see docs/kinds.md). The methods of a Lock
// with an invalid name fail with ErrInvalid.
func (s *System) Lock(name string) *Lock {
	return &Lock{runtime: s.inner(), name: name}
}

// Name returns the name of the lock, without the key prefix; for a MultiLock, the sorted names of its
// members.
func (l *Lock) Name() string {
	switch {
	case l == nil:
		return ""
	case l.members != nil:
		return l.members.String()
	}
	return l.name
}

// checkUsable returns an error if the lock cannot be used.
func (l *Lock) checkUsable() error {
	switch {
	case l == nil:
		return errors.New("the lock is nil")
	case l.invalid != nil:
		return l.invalid
	case l.runtime == nil:
		return errors.New("the System of the lock is nil: From returns nil for an actor system without one")
	}
	return nil
}

// checkCall returns an error if the lock or the context cannot be used.
func (l *Lock) checkCall(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return l.checkUsable()
}

// Acquire waits until the lock is granted. When ctx ends, Acquire withdraws the request and returns the cause of ctx
// (and ErrTimeout if a deadline was exceeded). Its other errors are ErrTimeout (with WithWait(0) ErrHeld),
// ErrQueueFull, ErrReentry, ErrClosed, ErrUnavailable (only with WithWait or WithLease, or if the lease is over before
// Redis has answered), ErrNotReplicated (only with WithWait), ErrRejected, ErrInvalid, ErrCrashed, and for a re-entry
// ErrLost.
//
// ctx bounds only the wait. Its end neither releases the lock nor cancels the hold's Context; see Do for a function
// that ends with ctx.
//
// Acquire with the Context of a hold of the same lock re-enters the lock, as long as any hold
// of that call tree is held. The call tree is the first hold and all holds that have
// re-entered it. All goroutines that share such a context re-enter, unless they use
// WithoutReentry. Every other Acquire has a new owner.
func (l *Lock) Acquire(ctx context.Context, options ...Option) (*Hold, error) {
	return l.acquire(ctx, "acquire", gather(options))
}

// TryAcquire tries once to acquire the lock and does not wait. It fails with ErrHeld if another owner holds the lock or
// waits for it, with ErrUnavailable if Redis does not answer, with ErrNotReplicated if too few replicas confirm the
// grant (Config.Replicas), and otherwise like Acquire. It returns after at most Config.CallTimeout and 250 ms, even if
// ctx never ends.
func (l *Lock) TryAcquire(ctx context.Context, options ...Option) (*Hold, error) {
	return l.acquire(ctx, "try to acquire", gather(append(options[:len(options):len(options)], WithWait(0))))
}

func (l *Lock) acquire(ctx context.Context, op string, r *acquireOptions) (*Hold, error) {
	if err := l.checkCall(ctx); err != nil {
		return nil, invalidError(op, l.Name(), err)
	}
	if ctx.Err() != nil {
		return nil, endedError(ctx, op, l.Name(), "")
	}
	hold := &Hold{lock: l, parent: ctx, outer: innermostHold(ctx)}
	hold.root = hold
	call, err := l.call(hold, r)
	if err != nil {
		return nil, invalidError(op, l.Name(), err)
	}
	if tree := l.reentered(hold.outer); tree != nil {
		call.Owner = tree.owner
	}
	if call.Leads {
		l.runtime.Observer().Standbys(l.kind, 1)
		defer l.runtime.Observer().Standbys(l.kind, -1)
	}
	out, answered := l.runtime.Do(ctx, call)
	if !answered {
		out = l.runtime.Withdraw(call)
		return nil, endedError(ctx, op, l.Name(), out.Detail)
	}
	if out.Kind != machine.Granted {
		return nil, l.failedError(op, out.Answer)
	}
	hold.granted(out)
	return hold, nil
}

// call returns the request of an Acquire; r is nil without options.
func (l *Lock) call(hold *Hold, r *acquireOptions) (*request.Call, error) {
	call := l.newCall(request.OpAcquire)
	call.Holder = (*holder)(hold)
	if r == nil {
		hold.initRareFields(nil, nil)
		call.Permit = hold.permit()
		return call, nil
	}
	if r.invalid != nil {
		return nil, r.invalid
	}
	value := func(d *time.Duration) time.Duration {
		if d == nil {
			return 0
		}
		return *d
	}
	call.Lease, call.MaxHold, call.AtLeast, call.Wait = value(r.lease), value(r.maxHold), value(r.atLeast), value(r.wait)
	call.Try = r.wait != nil && *r.wait == 0
	call.NoReentry, call.Leads, call.Note = r.noReentry, r.leads, r.note
	hold.initRareFields(r.atRisk, r.drain)
	if call.Permit = hold.permit(); call.Permit != nil {
		call.Permit.Together = r.permits
	}
	if r.lease != nil && *r.lease == 0 || r.maxHold != nil && *r.maxHold == 0 || r.atLeast != nil && *r.atLeast == 0 {
		return nil, errors.New("a lease, a max hold or a minimum time of zero would be over at once; leave the option out for none")
	}
	return call, errors.Join(call.CheckTimes(), call.CheckNote(), call.CheckTogether(r.permits),
		l.runtime.Rules().CheckRed(l.kind, l.members, call.Lease), r.checkDrain(l.runtime.Rules().Config))
}

// newCall returns a call for this lock.
func (l *Lock) newCall(op request.Op) *request.Call {
	return l.describe(&request.Call{Op: op})
}

// describe makes a call about the lock.
func (l *Lock) describe(call *request.Call) *request.Call {
	call.Kind, call.Mode, call.Name, call.Members = l.kind, l.mode, l.name, l.members
	return call
}

// same reports whether both are the same lock, in any mode.
func (l *Lock) same(other *Lock) bool {
	if l.members != nil && other.members != nil {
		return l.members.ID() == other.members.ID()
	}
	return l.members == nil && other.members == nil && actors.SameKey(l.kind, other.kind) && l.name == other.name
}

// ForceRelease releases the lock if one of the owners holds it, in any process, and reports whether an owner held it.
// Owners are as in Status.Owners; without any, the current owners in Redis are meant. Even if the command reaches Redis
// late, it does not release the hold of another owner. After an error the lock may have been released, or may be
// released later.
//
// A holder in this System is notified at once, a holder in another System at its next renewal, with a fixed lease
// at its release or the end of the lease. ForceRelease returns after at most Config.CallTimeout and 250 ms, even if
// ctx never ends. The error is ErrInvalid for more than 1000 owners, and for an owner that is not valid.
func (l *Lock) ForceRelease(ctx context.Context, owners ...string) (wasHeld bool, err error) {
	const op = "force release"
	if err := cmp.Or(l.checkCall(ctx), request.CheckOwners(owners)); err != nil {
		return false, invalidError(op, l.Name(), err)
	}
	call := l.newCall(request.OpForceRelease)
	call.Owners = owners
	out, err := l.submit(ctx, op, call)
	if err != nil {
		return false, err
	}
	return out.Count > 0, nil
}

// Status is the state of a lock at one moment.
type Status struct {
	// Locked reports whether the lock is held, is kept for a minimum time (WithAtLeast), or lingers in a process
	// (Config.Linger).
	Locked bool
	// HeldHere reports whether this System holds the lock.
	HeldHere bool
	// Shared reports whether readers hold the lock.
	Shared bool
	// Holders is the number of clients that hold the lock; a writer that also reads counts twice.
	Holders int
	// Holder is the owner field of a holder in Redis, "<client uuid>:<number>"; with several holders, of any holder.
	Holder string
	// HoldCount is the hold count of Holder.
	HoldCount int
	// Owners are all owner fields, without ":write"; at most 1000 readers.
	Owners []string
	// Process is the process of Holder.
	Process Process
	// TTL is the rest of the holder's lease; negative if the lock is free or its key has no TTL.
	TTL time.Duration
	// Waiters is the number of requests that wait in this System.
	Waiters int
	// Subscribers is the number of clients that are subscribed to the lock's channel, or were until
	// a moment ago. For a fair lock it is the length of the queue in Redis.
	Subscribers int
	// Token is the fencing token of this System's hold; 0 if there is none.
	Token int64
	// HeldFor is the time for which the first holder in this System has held the lock.
	HeldFor time.Duration
	// WaitingFor is the time for which the first request that waits in this System has waited.
	WaitingFor time.Duration
	// HolderWaiters is the number of requests for the lock that wait in the process of the holder; 0 for a free lock.
	// For another process the number comes from its record, which is some seconds old; it is -1 if the record does not
	// have the number.
	HolderWaiters int
	// HeldAtLeast is the minimum time for which the process of the holder has held the lock; 0 for a free lock. For
	// another process it comes from its record, and is 0 if the record does not have it.
	HeldAtLeast time.Duration
	// Note is the text that the holder has given WithNote; "" if there is none, or if the note is not known. For another
	// process the note comes from its record, a moment after the grant. Other clients may have written the note: escape
	// it where it is shown.
	Note string
}

// Inspect returns the state of the lock in Redis and in this System. If another process holds the
// lock, a second script reads the record of its System. Inspect changes nothing and reserves no name.
// If this System uses the name for another kind, the error is ErrInvalid and names that kind. Inspect
// returns after at most Config.CallTimeout and 250 ms, even if ctx never ends.
func (l *Lock) Inspect(ctx context.Context) (Status, error) {
	out, err := l.ask(ctx, "inspect", request.OpInspect)
	if err != nil {
		return Status{}, err
	}
	return statusOf(out.Status), nil
}

// statusOf converts a message.
func statusOf(m *messages.Status) Status {
	s := Status{
		Locked: m.Locked, HeldHere: m.HeldHere, Holder: m.Holder, HoldCount: int(m.HoldCount),
		TTL: -1, Waiters: int(m.Waiters), Subscribers: int(m.Subscribers), Token: m.Token,
		Shared: m.Mode == messages.Mode_MODE_SHARED, Holders: int(m.Holders), Process: processFrom(m.Process), Owners: m.Owners,
		HeldFor: m.HeldFor.AsDuration(), WaitingFor: m.WaitingFor.AsDuration(), HolderWaiters: int(m.GetHolderWaiters()),
		HeldAtLeast: m.HeldAtLeast.AsDuration(), Note: m.Note,
	}
	if m.Ttl != nil {
		s.TTL = m.Ttl.AsDuration()
	}
	if m.Locked && m.HolderWaiters == nil {
		s.HolderWaiters = -1
	}
	return s
}

// ask submits a call with no arguments, and waits for the answer or for ctx.
func (l *Lock) ask(ctx context.Context, op string, what request.Op) (request.Outcome, error) {
	if err := l.checkCall(ctx); err != nil {
		return request.Outcome{}, invalidError(op, l.Name(), err)
	}
	return l.submit(ctx, op, l.newCall(what))
}

// submit submits a call that is not an Acquire, and waits for the answer or for ctx.
func (l *Lock) submit(ctx context.Context, op string, call *request.Call) (request.Outcome, error) {
	out, answered := l.runtime.Do(ctx, call)
	if !answered {
		return out, &Error{Op: op, Lock: l.Name(), Err: context.Cause(ctx)}
	}
	if out.Reason != 0 {
		return out, l.failedError(op, out.Answer)
	}
	return out, nil
}
