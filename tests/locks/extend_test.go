package locks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// TestDecisions has every case; these tests check calls, messages and what is in Redis.

// An extension sets the TTL, and is about the whole call tree.
func TestExtend_SetsTheLease(t *testing.T) {
	t.Parallel()
	const long, short = time.Hour, 20 * time.Minute
	s, k := locktest.New(t, lockkeeper.Config{Watchdog: 10 * time.Minute})
	outer := s.Acquire(t, k)
	inner := s.AcquireIn(t, outer.Context(), k)
	has := func(what string, lease time.Duration) {
		t.Helper()
		if ttl := k.TTL(t); ttl > lease || ttl < lease-time.Minute {
			t.Errorf("%s: the TTL is %v", what, ttl)
		}
		for _, hold := range []*lockkeeper.Hold{outer, inner} {
			if left := hold.Left(); left > lease-lease/100 || left < lease-lease/100-time.Minute {
				t.Errorf("%s: %v are left", what, left)
			}
		}
		k.HeldBy(t, s, "2")
	}
	locktest.Extend(t, outer, long)
	has("a fixed lease", long)
	locktest.Extend(t, inner, short)
	has("a shorter one", short)
	locktest.OK(t, inner.KeepAlive(locktest.Within(t)))
	has("the watchdog's", 10*time.Minute)
	locktest.IsError(t, outer.Ensure(locktest.Within(t), long), lockkeeper.ErrInvalid, "a renewed lease")

	for _, d := range []time.Duration{0, -1, time.Millisecond, 101 * 365 * 24 * time.Hour} {
		locktest.IsError(t, inner.Extend(locktest.Within(t), d), lockkeeper.ErrInvalid, "lease")
	}
	locktest.Release(t, inner)
	locktest.IsError(t, inner.Extend(locktest.Within(t), long), lockkeeper.ErrNotHeld)
	locktest.Extend(t, outer, time.Second)
	locktest.EndedBy(t, outer, messages.Reason_REASON_EXPIRED)
	k.AwaitFree(t)
	locktest.IsError(t, outer.KeepAlive(locktest.Within(t)), lockkeeper.ErrLost)

	bounded := s.Acquire(t, k, lockkeeper.WithMaxHold(short))
	locktest.IsError(t, bounded.Extend(locktest.Within(t), long), lockkeeper.ErrInvalid, "max hold")
	locktest.Extend(t, bounded, time.Minute)
	locktest.OK(t, bounded.KeepAlive(locktest.Within(t)))
	if left := bounded.Left(); left < 9*time.Minute {
		t.Errorf("%v are left of a hold that the watchdog renews", left)
	}
	locktest.Release(t, bounded)
}

// The drain begins before the end of the lease that the hold has by then.
func TestExtend_MovesTheDrain(t *testing.T) {
	t.Parallel()
	for what, lease := range map[string]lockkeeper.Option{"fixed": lockkeeper.WithLease(time.Hour), "renewed": lockkeeper.WithMaxHold(time.Hour)} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.New(t, lockkeeper.Config{})
			locktest.OK(t, s.Lock(k.LockName).Do(t.Context(), func(ctx context.Context) error {
				hold := lockkeeper.HoldFrom(ctx)
				locktest.Extend(t, s.AcquireIn(t, ctx, k), 4*time.Second)
				locktest.Await(t, "the drain", ctx.Done())
				if left := hold.Left(); left <= 0 || left > 2*time.Second || hold.Err() != nil || !errors.Is(context.Cause(ctx), lockkeeper.ErrLost) {
					t.Errorf("when the work is to end, %v are left; the cause is %v", left, context.Cause(ctx))
				}
				locktest.OK(t, hold.KeepAlive(locktest.Within(t)))
				return nil
			}, lease, lockkeeper.WithDrain(2*time.Second)))
		})
	}
}

// An extension by message is about the hold that it names, or about the owner's hold.
func TestExtend_ByMessageNamesTheHoldOrItsOwner(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	p, other := s.Probe(t), s.Probe(t)
	granted := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(time.Minute), AtLeast: durationpb.New(time.Second)})
	extended := func(by *locktest.Probe, m *messages.Extend, least, most time.Duration) {
		t.Helper()
		m.Lock, m.CorrelationId = k.Message(), "x"
		a := locktest.Ask[*messages.Extended](t, by, m)
		if v := a.Validity.AsDuration(); v < least || v > most || a.HoldId != granted.HoldId ||
			a.CorrelationId != "x" || a.Lock.Name != k.LockName {
			t.Errorf("%v: answered %v", m, a)
		}
	}
	extended(p, &messages.Extend{Lease: durationpb.New(time.Hour)}, 50*time.Minute, time.Hour)
	extended(other, &messages.Extend{Owner: p.Pid}, 20*time.Second, 30*time.Second)
	extended(other, &messages.Extend{HoldId: granted.HoldId, Lease: durationpb.New(2 * time.Minute)}, time.Minute, 2*time.Minute)
	for _, refused := range []struct {
		m      *messages.Extend
		reason messages.Reason
		word   string
	}{
		{&messages.Extend{HoldId: granted.HoldId, Lease: durationpb.New(0)}, invalid, "zero"},
		{&messages.Extend{HoldId: granted.HoldId, Lease: durationpb.New(time.Millisecond)}, invalid, "between"},
		{&messages.Extend{HoldId: "0"}, messages.Reason_REASON_NOT_HELD, "over"},
		{&messages.Extend{}, messages.Reason_REASON_NOT_HELD, "over"},
	} {
		refused.m.Lock = k.Message()
		locktest.ExpectRefusal(t, other, refused.m, refused.reason, refused.word)
	}
	locktest.ExpectRefusal(t, other, &messages.Extend{Lock: &messages.Lock{Name: k.LockName, Kind: messages.Kind_KIND_SEMAPHORE}}, invalid, "not a lock")
	extended(p, &messages.Extend{Lease: durationpb.New(1500 * time.Millisecond)}, 0, 1500*time.Millisecond)
	if lost := locktest.Next[*messages.LeaseLost](t, p); lost.HoldId != granted.HoldId || lost.Reason != messages.Reason_REASON_EXPIRED {
		t.Errorf("notified of %v", lost)
	}
	locktest.ExpectRefusal(t, p, &messages.Extend{Lock: k.Message(), HoldId: granted.HoldId}, messages.Reason_REASON_LOST)

	// No death would end the hold of a future, so that the watchdog does not keep it.
	ofFuture := locktest.Future[*messages.Acquired](t, s, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(time.Minute)})
	locktest.ExpectRefusal(t, other, &messages.Extend{Lock: k.Message(), HoldId: ofFuture.HoldId}, invalid, "give a lease")
	locktest.Ask[*messages.Released](t, other, &messages.Release{Lock: k.Message(), HoldId: ofFuture.HoldId})
}
