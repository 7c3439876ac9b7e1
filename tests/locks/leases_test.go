package locks_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestEnsure_RenewsOnlyWhenTooLittleIsLeft(t *testing.T) {
	t.Parallel()
	r := locktest.NewRemote(t, redistest.Shared(t), lockkeeper.Config{Watchdog: time.Minute, CallTimeout: time.Second})
	ensure := func(hold *lockkeeper.Hold, d time.Duration) error { return hold.Ensure(locktest.Within(t), d) }
	hold := r.Acquire(t, r.Key)
	redistest.Eventually(t, "some of the lease to pass", func() bool { return r.TTL(t) < time.Minute-50*time.Millisecond })
	old := r.Expiry(t)
	if err := ensure(hold, 30*time.Second); err != nil || r.Expiry(t) != old {
		t.Errorf("%v, and the expiry went from %v to %v, though more was left than was asked for", err, old, r.Expiry(t))
	}
	const most = 59*time.Second + 398*time.Millisecond // 1 % and 2 ms less than the TTL
	_ = ensure(hold, most)                             // the lease can hardly be long enough without a renewal
	if !r.Expiry(t).After(old) {
		t.Error("nothing was renewed")
	}
	for _, d := range []time.Duration{most + time.Millisecond, -1} {
		locktest.IsError(t, ensure(hold, d), lockkeeper.ErrInvalid)
	}
	for what, fault := range map[string]func(on bool){"refused": r.Proxy.Refuse, "no replies": r.Proxy.DropReplies} {
		fault(true)
		locktest.InTime(t, what, func() { locktest.IsError(t, ensure(hold, most), lockkeeper.ErrUnavailable) })
		if !hold.Valid() || hold.Err() != nil {
			t.Errorf("%s: the hold ended with an Ensure that failed", what)
		}
		fault(false)
	}
	redistest.Eventually(t, "Redis to answer again", func() bool { return ensure(hold, most-5*time.Second) == nil })
	locktest.Release(t, hold)
	locktest.IsError(t, ensure(hold, 0), lockkeeper.ErrNotHeld)

	fixed := r.Acquire(t, r.Key, lockkeeper.WithLease(20*time.Second))
	locktest.Check(t, ensure(fixed, 10*time.Second))
	locktest.IsError(t, ensure(fixed, 25*time.Second), lockkeeper.ErrInvalid)
	locktest.Release(t, fixed)
}

// A reader with a fixed lease keeps its own end when a reader under the watchdog joins and the lease in Redis becomes
// longer.
func TestLease_FixedReaderKeepsItsEnd(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	lock := s.ReadWriteLock(k.LockName).Read()
	fixed := locktest.Acquire(t, lock, lockkeeper.WithLease(3*time.Second))
	joined := locktest.Acquire(t, lock)
	locktest.IsError(t, fixed.Ensure(locktest.Within(t), 10*time.Second), lockkeeper.ErrInvalid)
	locktest.Ensure(t, joined, 10*time.Second)
	locktest.Await(t, "the end of the fixed lease", fixed.Context().Done())
	if fixed.Valid() || !joined.Valid() {
		t.Errorf("the hold whose fixed lease has ended is valid: %v, the one under the watchdog: %v", fixed.Valid(), joined.Valid())
	}
	locktest.Release(t, joined)
}

// A re-entry joins the hold. Its options are granted or refused: TestDecisions has every case; this test checks calls
// and messages.
func TestReentry_HonoursOrRefusesItsOptions(t *testing.T) {
	t.Parallel()
	const short, long = 5 * time.Second, 20 * time.Second
	s, k := locktest.New(t, lockkeeper.Config{})
	outer := s.Acquire(t, k, lockkeeper.WithLease(short))
	locktest.Fails(s.Lock(k.LockName).Acquire(outer.Context(), lockkeeper.WithLease(time.Second)))(t, lockkeeper.ErrInvalid, "at least")
	k.HeldBy(t, s, "1")
	// A longer lease prolongs the hold, and so every Hold of its call tree.
	inner := s.AcquireIn(t, outer.Context(), k, lockkeeper.WithLease(long))
	for _, hold := range []*lockkeeper.Hold{outer, inner} {
		locktest.Ensure(t, hold, long*3/4)
		locktest.Release(t, hold)
	}
	p := s.Probe(t)
	locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(short)})
	locktest.ExpectRefusal(t, p, &messages.Acquire{Lock: k.Message(), MaxHold: durationpb.New(time.Second)}, messages.Reason_REASON_INVALID, "max hold")
	longer := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(long)})
	if v := longer.Validity.AsDuration(); v < long*3/4 {
		t.Errorf("the prolonged hold is good for %v", v)
	}
}
