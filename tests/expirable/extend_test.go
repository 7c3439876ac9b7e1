package expirable_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// An extension moves the time at which the permit expires in Redis, as Redisson's updateLeaseTime, and does not move
// the time of another permit.
func TestExtend_SetsTheExpiry(t *testing.T) {
	t.Parallel()
	server, name := redistest.Shared(t), redistest.Name(t)
	_, p := open(t, server.URL(), name, 3, lockkeeper.Config{Watchdog: 10 * time.Minute})
	renewed, fixed := acquire(t, p), acquire(t, p, lockkeeper.WithLease(time.Minute))
	is := func(permit *lockkeeper.Permit, lease time.Duration, all ...time.Duration) {
		t.Helper()
		if left := permit.Left(); left > lease-lease/100 || left < lease-lease/100-30*time.Second {
			t.Errorf("%v are left of %v", left, lease)
		}
		for i, end := range expiries(t, server, name) {
			if left := time.Until(end); left > all[i]+time.Second || left < all[i]-30*time.Second {
				t.Errorf("permit %d expires in %v, want %v of %v", i, left, all[i], all)
			}
		}
	}
	locktest.OK(t, renewed.Extend(locktest.Within(t), time.Hour))
	is(renewed, time.Hour, time.Minute, time.Hour)
	locktest.OK(t, renewed.Extend(locktest.Within(t), 5*time.Minute))
	is(renewed, 5*time.Minute, time.Minute, 5*time.Minute)
	locktest.OK(t, fixed.KeepAlive(locktest.Within(t)))
	is(fixed, 10*time.Minute, 5*time.Minute, 10*time.Minute)
	locktest.OK(t, fixed.Extend(locktest.Within(t), time.Second))
	locktest.Await(t, "the end of the lease", fixed.Context().Done())
	locktest.Equal(t, locktest.IsError(t, fixed.Err(), lockkeeper.ErrLost), messages.Reason_REASON_EXPIRED, "lost because of %v")
	locktest.IsError(t, fixed.Extend(locktest.Within(t), time.Minute), lockkeeper.ErrLost)
	locktest.IsError(t, renewed.Extend(locktest.Within(t), 0), lockkeeper.ErrInvalid)
	locktest.OK(t, p.ReleaseID(locktest.Within(t), renewed.ID()))
	locktest.IsError(t, renewed.Extend(locktest.Within(t), time.Minute), lockkeeper.ErrLost)
	awaitPermits(t, p, 3, 0)
}

// An extension by message is about the permit that it names, or about the sender's permit.
func TestExtend_ByMessageNamesThePermit(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	name, holder, other := k.LockName, s.Probe(t), s.Probe(t)
	locktest.Must(s.ExpirableSemaphore(name).TrySetPermits(locktest.Within(t), 2))(t)
	granted := locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: message(name)})
	for _, m := range []*messages.Extend{{Lease: durationpb.New(time.Hour)}, {HoldId: granted.HoldId, Lease: durationpb.New(2 * time.Hour)}} {
		m.Lock = message(name)
		if a := locktest.Ask[*messages.Extended](t, holder, m); a.HoldId != granted.HoldId || a.Validity.AsDuration() < 50*time.Minute {
			t.Errorf("answered %v", a)
		}
	}
	locktest.ExpectRefusal(t, other, &messages.Extend{Lock: message(name)}, messages.Reason_REASON_NOT_HELD)
	ofFuture := locktest.Future[*messages.Acquired](t, s, &messages.Acquire{Lock: message(name), Lease: durationpb.New(time.Minute)})
	locktest.ExpectRefusal(t, other, &messages.Extend{Lock: message(name), HoldId: ofFuture.HoldId}, messages.Reason_REASON_INVALID, "give a lease")
	locktest.Ask[*messages.Released](t, other, &messages.Release{Lock: message(name), HoldId: ofFuture.HoldId})
	holder.Die()
	redistest.Eventually(t, "the permit of the dead", func() bool { return numbersOf(t, other, name) == "2 0 2 0" })
}
