package red_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// With two of five servers killed everything goes on; without a third nothing is
// granted, and a holder is told before its validity ends.
func TestRedKilled(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
	inner := locktest.AcquireIn(t, hold.Context(), p.Lock)
	f.servers[0].Kill(t)
	f.servers[3].Kill(t)
	up := []int{1, 2, 4}
	until := f.key(1).Expiry(t).Add(2 * redConfig.Watchdog)
	redistest.Eventually(t, "the lease to be renewed for long", func() bool { return f.key(1).Expiry(t).After(until) })
	if !hold.Valid() {
		t.Fatalf("lost with two servers killed: %v", hold.Err())
	}
	f.awaitHeld(t, "2", up...)
	granted := locktest.AcquireSoon(locktest.Within(t), other.Lock)
	locktest.AwaitWaiters(t, other.Lock, 1)
	locktest.Release(t, inner)
	locktest.Release(t, hold)
	hold = locktest.Got(t, granted).Hold
	if _, err := p.TryAcquire(locktest.Within(t)); !errors.Is(err, lockkeeper.ErrHeld) {
		t.Errorf("a try while others hold it: %v", err)
	}
	locktest.Release(t, hold)
	f.awaitFree(t, up...)

	hold = locktest.AcquireIn(t, locktest.Within(t), p.Lock)
	ctx := hold.Context()
	expired := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { expired <- time.Now() })
	f.servers[1].Kill(t)
	end := f.key(2).Expiry(t) // not moved any more, or by a renewal that was under way
	if reason := locktest.IsOver(t, hold); reason != messages.Reason_REASON_EXPIRED {
		t.Errorf("with three servers killed: the reason is %v", reason)
	}
	if told := <-expired; told.After(end.Add(redConfig.Watchdog)) {
		t.Errorf("told %v after the keys' end", told.Sub(end))
	}
	_, err := p.TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrUnavailable)
	_, err = p.Acquire(locktest.Within(t), lockkeeper.WithWait(time.Second))
	locktest.IsError(t, err, lockkeeper.ErrUnavailable)
	f.awaitFree(t, 2, 4)
}

// Servers that are killed while the lock is being taken do not matter, as long as
// they are a minority.
func TestRedKilledWhileAcquiring(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p := f.party(t)
	for _, proxy := range f.proxies {
		proxy.Delay(100 * time.Millisecond)
	}
	granted := locktest.AcquireSoon(locktest.Within(t), p.Lock)
	f.servers[1].Kill(t)
	f.servers[2].Kill(t)
	hold := locktest.Got(t, granted).Hold
	if err := hold.Ensure(locktest.Within(t), time.Second); err != nil {
		t.Error(err)
	}
	locktest.Release(t, hold)
	f.awaitFree(t, 0, 3, 4)
}

// Renewal needs a majority. A member that has forgotten the lock is given it again; when
// a majority has, the lock is lost.
func TestRedRenewal(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p := f.party(t)
	hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
	f.servers[2].Restart(t)
	f.servers[4].Restart(t)
	f.awaitHeld(t, "1", allFive...) // also those that have no vote yet
	inner := locktest.AcquireIn(t, hold.Context(), p.Lock)
	f.awaitHeld(t, "2", allFive...)
	f.key(1).Do(t, "DEL", f.name)
	f.awaitHeld(t, "2", allFive...)
	if !hold.Valid() || !inner.Valid() {
		t.Errorf("lost to a minority: %v", hold.Err())
	}
	locktest.Release(t, inner)
	f.awaitHeld(t, "1", allFive...)
	for i := range 3 {
		f.key(i).Do(t, "DEL", f.name)
		f.key(i).TakeAs(t, locktest.Redisson, -1)
	}
	if reason := locktest.IsOver(t, hold); reason != messages.Reason_REASON_TAKEN {
		t.Errorf("taken by a majority: the reason is %v", reason)
	}
	f.awaitFree(t, 3, 4)
	for i := range 3 {
		if owners := f.key(i).Owners(t); owners[locktest.Redisson] != "1" {
			t.Errorf("the new holder has been robbed of server %d: %v", i, owners)
		}
	}
}

// A server that answers late is not given a lock that was released meanwhile.
func TestRedHealsNoReleasedLock(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Renewal = time.Second // the renewal is that of Ensure
	f := newFive(t, cfg)
	p := f.party(t)
	hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
	f.awaitHeld(t, "1", allFive...)
	f.key(4).Do(t, "DEL", f.name)
	const delay = 150 * time.Millisecond
	f.proxies[4].Delay(delay)
	for first := f.key(0).Expiry(t); f.key(0).Expiry(t).Equal(first); { // until it is renewed: the late answer is on its way
		if err := hold.Ensure(locktest.Within(t), cfg.Watchdog*9/10); err != nil {
			t.Fatal(err)
		}
	}
	locktest.Release(t, hold)
	f.awaitFree(t, 0, 1, 2, 3)
	for end := time.Now().Add(6 * delay); time.Now().Before(end); {
		if f.key(4).Exists(t) {
			t.Fatalf("after its release the lock is held by %v on the slow server", f.key(4).Owners(t))
		}
	}
}

// A release that gives back a minority may arrive when a later try has the majority.
func TestRedLateGiveBack(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p := f.party(t)
	for i := range 3 {
		f.key(i).TakeAs(t, locktest.Redisson, -1)
	}
	late := f.proxies[4].Hold(redistest.Script(scripts.Release.SHA))
	granted := locktest.AcquireSoon(locktest.Within(t), p.Lock)
	late.Wait(t)
	for i := range 3 {
		f.key(i).Unlock(t)
	}
	hold := locktest.Got(t, granted).Hold
	redistest.Eventually(t, "the lock to be held on the last server too", func() bool { // healed, if the first try was still there
		owners := f.key(4).Owners(t)
		return len(owners) == 1 && maps.Equal(owners, f.key(0).Owners(t))
	})
	late.Release(t)
	if owners := f.key(4).Owners(t); len(owners) == 0 {
		t.Error("the late release has freed the lock on one server")
	}
	locktest.Release(t, hold)
	f.awaitFree(t, allFive...)
}

// Servers that were restarted or flushed may have forgotten locks: they have no vote until
// those would have run out.
func TestRedQuarantine(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	for what, forget := range map[string]func(i int){
		"restarted": func(i int) { f.servers[i].Restart(t) },
		"flushed":   func(i int) { f.key(i).Do(t, "FLUSHALL") },
	} {
		awaitVotes(t, p.red, redConfig.Watchdog, f.servers)
		hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock, lockkeeper.WithLease(redConfig.Watchdog))
		f.awaitHeld(t, "1", allFive...)
		until := f.key(3).Expiry(t) // as far as the holder knows
		forgotten := time.Now()
		for i := range 3 {
			forget(i)
		}
		var refusal error
		redistest.Eventually(t, "the vote of those that have forgotten", func() bool {
			second, err := other.TryAcquire(locktest.Within(t))
			if errors.Is(err, lockkeeper.ErrUnavailable) { // and not held by one of those that remember
				refusal = err
			}
			if err != nil {
				return false
			}
			if now := time.Now(); now.Before(until) || now.Before(forgotten.Add(redConfig.Watchdog)) {
				t.Errorf("%s: granted %v after a majority had forgotten, and %v before the end of the lease of another holder", what, now.Sub(forgotten), until.Sub(now))
			}
			locktest.Release(t, second)
			return true
		})
		if locktest.IsError(t, refusal, lockkeeper.ErrUnavailable); !strings.Contains(refusal.Error(), "started lately") {
			t.Errorf("%s: the refusal does not give the reason: %v", what, refusal)
		}
		locktest.IsOver(t, hold)
		f.awaitFree(t, allFive...)
	}
}

// Servers that hang, as long as they are a minority, do not hold up anything.
func TestRedPausedMinority(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Watchdog = 8 * time.Second // a call may take two seconds
	f := newFive(t, cfg)
	p, other := f.party(t), f.party(t)
	locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), p.Lock)) // there are connections
	locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), other.Lock))
	f.awaitFree(t, allFive...)
	f.servers[0].Pause(t)
	f.servers[1].Pause(t)
	var hold *lockkeeper.Hold
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a grant", func() (err error) { hold, err = p.Acquire(locktest.Within(t)); return err }},
		{"a re-entry and its release", func() error {
			inner, err := p.Acquire(hold.Context())
			if err != nil {
				return err
			}
			return inner.Release(locktest.Within(t))
		}},
		{"a renewal", func() error { return hold.Ensure(locktest.Within(t), cfg.Watchdog*97/100) }},
		{"a look", func() error {
			status, err := other.Inspect(locktest.Within(t))
			if err == nil && (!status.Locked || status.HoldCount != 1) {
				err = fmt.Errorf("it is held, but seen as %+v", status)
			}
			return err
		}},
		{"a refusal", func() error {
			if _, err := other.TryAcquire(locktest.Within(t)); !errors.Is(err, lockkeeper.ErrHeld) {
				return fmt.Errorf("a try: %w", err)
			}
			return nil
		}},
		{"a forced release", func() error {
			if was, err := p.ForceRelease(locktest.Within(t)); err != nil || !was {
				return fmt.Errorf("it was held, but %v, %w", was, err)
			}
			return nil
		}},
		{"a forced release of nothing", func() error {
			if was, err := other.ForceRelease(locktest.Within(t)); err != nil || was {
				return fmt.Errorf("it was not held, but %v, %w", was, err)
			}
			return nil
		}},
		{"a grant and its release", func() (err error) {
			if hold, err = other.Acquire(locktest.Within(t)); err == nil {
				err = hold.Release(locktest.Within(t))
			}
			return err
		}},
		{"a vote split with somebody else", func() error {
			f.key(2).TakeAs(t, locktest.Redisson, -1)
			defer f.key(2).Unlock(t)
			if _, err := p.TryAcquire(locktest.Within(t)); !errors.Is(err, lockkeeper.ErrHeld) {
				return fmt.Errorf("a try: %w", err)
			}
			return nil
		}},
	} {
		began := time.Now()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if took := time.Since(began); took > cfg.Watchdog/8 {
			t.Errorf("%s beside a paused minority took %v", step.what, took)
		}
	}
	f.servers[0].Resume(t)
	f.servers[1].Resume(t)
	f.awaitGivenBack(t, allFive...)
}
