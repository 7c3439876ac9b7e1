package lockkeeper

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Option changes how a lock, or a permit of an expirable semaphore, is acquired. Acquire and TryAcquire take it, and so
// do the methods that take a [WorkOption] or a [LeadOption].
type Option interface {
	WorkOption
	forHolds()
}

// WorkOption is an option of the methods that run work under a lock: Do, Spawn and Respond, and the methods that take a
// [LeadOption].
type WorkOption interface {
	LeadOption
	forWork()
}

// LeadOption is an option of the methods that wait for the lock again after a loss: Elect, Lead, LeaderProps and
// Singleton.Props.
type LeadOption interface {
	apply(*acquireOptions)
}

// WaitOption is an Option that Semaphore.Acquire, Latch.Wait and Singleton.Proxy take, too. They have no hold and no
// lease, so they take no other option.
type WaitOption interface {
	Option
	applyWait(*request.CountCall)
}

// WithWait bounds the wait, in addition to the context; d must not be negative. With zero, the method tries once, and
// fails with ErrHeld instead of waiting. By default only the context bounds the wait. TryAcquire never waits, whatever
// d is.
func WithWait(d time.Duration) WaitOption { return waitOption(d) }

// WithLease asks for a fixed lease of at least 10 ms. The lease is not renewed, and the hold is lost when the lease
// ends. By default the watchdog renews the lease until the hold is released or the process ends. WithLease cannot be
// combined with WithMaxHold.
//
// The lease begins when Redis is asked for it. If the lease is over when Redis answers, the request is refused with
// ErrUnavailable; the lease does not bound the wait.
//
// A re-entry joins the hold. If the hold has a fixed lease, a lease that ends later prolongs
// the hold for its whole call tree. A lease that ends before the hold, or any lease for a hold
// that the watchdog renews, is refused with ErrInvalid.
func WithLease(d time.Duration) Option { return lockOption(func(r *acquireOptions) { r.lease = &d }) }

// WithMaxHold bounds how long the watchdog keeps the hold alive: d after the grant the hold is lost. d is at least 10
// ms; by default there is no bound. A re-entry with this option is refused with ErrInvalid if the hold may last longer.
func WithMaxHold(d time.Duration) Option {
	return lockOption(func(r *acquireOptions) { r.maxHold = &d })
}

// WithAtLeast keeps the lock for at least d from the grant, 10 ms or more: if the hold ends earlier, by Release, the
// end of the work or Close, and Redis confirms that, no other client gets the lock until then. So a job that takes a
// moment runs once, although the clocks of the processes that start it differ. The key is left to expire in Redis, and
// no process needs to be alive for that. Release returns as usual. A re-entry can only prolong the time.
//
// WithAtLeast may be used with plain, fenced and fair locks, and with a MultiLock of such locks. If a process dies
// while it holds the lock, the lock stays held for the rest of the lease, as without the option. A forced release, or a
// loss other than by WithMaxHold, ends the minimum time. Waiters get the lock up to Config.Poll after the time, which
// is 1 % and 2 ms longer by the clock of Redis.
func WithAtLeast(d time.Duration) Option {
	return lockOption(func(r *acquireOptions) { r.atLeast = &d })
}

// WithNote shows a text with the hold to other processes: the address of a leader, a user, a job. The text is at most
// 256 bytes of UTF-8; the default is "", no note. [Lock.Inspect], [Lock.Watch], the program lockkeeper and the console
// show the note as long as the lock is held, in any process; for permits, the console shows the first note of its own
// process. The System keeps the note in its record in Redis, which it writes after the grant: other processes see the
// note a moment later (some 100 ms), and no call waits for that. They see no note of a System that is Anonymous. If the
// notes of a System exceed 3 to 7 KiB in total, other processes see only the notes of the longest holds.
//
// A note is never shown for the hold of another process. When a lock is handed off within its process, the note of the
// last hold may be seen for a moment. If several holders in one process share a lease, the first note among them is
// shown. A re-entry joins the hold, and its note is not shown.
func WithNote(text string) Option { return lockOption(func(r *acquireOptions) { r.note = text }) }

// WithPermits takes n permits of an ExpirableSemaphore together, all or none; n is from 1 to 1000, and 1 by default.
// They are one [Permit]: they are renewed, extended and released together, and the loss of one permit is the loss of
// all.
//
// The requests of a process are served in their order, so later requests wait until n permits are free. While the
// request is the first that waits in its process, Redis reserves the free permits for it, and no process takes them
// before that. If several processes wait for several permits each, Redis reserves the permits for one process after the
// other, in no particular order; another Acquire for one permit may come in between. Redisson's clients also take
// permits that are reserved. If there are fewer than n permits in all, the request waits until the number is raised.
func WithPermits(n int) Option {
	return lockOption(func(r *acquireOptions) {
		if r.permits = n; n < 1 {
			r.invalid = fmt.Errorf("WithPermits(%d): at least 1 permit must be wanted", n)
		}
	})
}

// WithAtRisk makes the System call f, in a new goroutine, when renewals begin to fail. Unless a renewal succeeds, the
// hold is lost after the time left. A panic in f is logged. By default only the loss is reported, by the context of the
// hold.
func WithAtRisk(f func(left time.Duration)) Option {
	return lockOption(func(r *acquireOptions) {
		if f == nil {
			r.invalid = errors.New("the function of WithAtRisk is nil")
		}
		r.atRisk = f
	})
}

// WithoutReentry makes an Acquire that would re-enter the lock fail with ErrReentry. Use it for goroutines that may
// have the Context of a hold but must not share the lock. An ExpirableSemaphore has no re-entry.
func WithoutReentry() Option { return lockOption(func(r *acquireOptions) { r.noReentry = true }) }

// acquireOptions contains the values of the options of an Acquire; a time that was not given is nil.
type acquireOptions struct {
	lease, wait, maxHold, atLeast, drain *time.Duration
	noReentry, leads                     bool
	atRisk                               func(left time.Duration)
	ended                                func(err error)
	note                                 string
	permits                              int
	// invalid is why an option cannot be used.
	invalid error
}

// gather applies the options of a method; it returns nil if there are none.
func gather[O LeadOption](options []O) *acquireOptions {
	if len(options) == 0 {
		return nil
	}
	r := new(acquireOptions)
	for _, option := range options {
		if any(option) == nil {
			r.invalid = errNoOption
			continue
		}
		option.apply(r)
	}
	return r
}

type leadOption func(*acquireOptions)

func (o leadOption) apply(r *acquireOptions) { o(r) }

type workOption func(*acquireOptions)

func (o workOption) apply(r *acquireOptions) { o(r) }
func (workOption) forWork()                  {}

type lockOption func(*acquireOptions)

func (o lockOption) apply(r *acquireOptions) { o(r) }
func (lockOption) forWork()                  {}
func (lockOption) forHolds()                 {}

// waitOption is the longest wait.
type waitOption time.Duration

func (o waitOption) apply(r *acquireOptions) {
	d := time.Duration(o)
	r.wait = &d
}

func (waitOption) forWork()  {}
func (waitOption) forHolds() {}

func (o waitOption) applyWait(call *request.CountCall) {
	call.Wait, call.Try = time.Duration(o), o == 0
}
