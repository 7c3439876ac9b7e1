package locks_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

var ownerField = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[1-9][0-9]*$`)

// A foreign client sees what Redisson would leave, under the names that Redisson
// would give it, and hears of the last release only.
func TestWireState(t *testing.T) {
	unique := redistest.Name(t)
	for _, test := range []struct{ what, prefix, lock, channel string }{
		{"plain", "", unique, "redisson_lock__channel:{" + unique + "}"},
		{"a tag", "", unique + "{tag}x", "redisson_lock__channel:" + unique + "{tag}x"},
		{"an open brace", "", unique + "{x", "redisson_lock__channel:" + unique + "{x"},
		{"a closing brace", "", unique + "}x", "redisson_lock__channel:{" + unique + "}x}"},
		{"no ASCII", "", unique + "замок 🔒", "redisson_lock__channel:{" + unique + "замок 🔒}"},
		{"a prefix", "app:", unique, "redisson_lock__channel:{app:" + unique + "}"},
		{"a prefix with a tag", "{app}:", unique, "redisson_lock__channel:{app}:" + unique},
	} {
		t.Run(test.what, func(t *testing.T) {
			server := redistest.Shared(t)
			k := locktest.Key{Server: server, LockName: test.lock, Name: test.prefix + test.lock, Channel: test.channel}
			s := locktest.Open(t, server.URL(), lockkeeper.Config{KeyPrefix: test.prefix})
			ear := k.Listen(t)

			outer := s.Acquire(t, k)
			if owner := k.HeldBy(t, s, "1"); !ownerField.MatchString(owner) {
				t.Errorf("the owner is %q", owner)
			}
			inner := s.AcquireIn(t, outer.Context(), k)
			k.HeldBy(t, s, "2")
			if inner.Count() != 2 {
				t.Errorf("hold count %d, want 2", inner.Count())
			}
			if ttl := k.Ttl(t); ttl > 30*time.Second || ttl < 29*time.Second {
				t.Errorf("TTL %v, want 30s", ttl)
			}
			locktest.Release(t, inner)
			k.HeldBy(t, s, "1")
			if heard := ear.Messages(t); len(heard) > 0 {
				t.Errorf("heard %q while the lock was held", heard)
			}
			locktest.Release(t, outer)
			k.IsFree(t)
			if heard := ear.Messages(t); !slices.Equal(heard, []string{"0"}) {
				t.Errorf("heard %q at the release, want one 0", heard)
			}
		})
	}
}

// Every term has an owner of its own.
func TestWireTerms(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	seen := map[string]bool{}
	for range 5 {
		hold := s.Acquire(t, k)
		seen[k.HeldBy(t, s, "1")] = true
		locktest.Release(t, hold)
	}
	if len(seen) != 5 {
		t.Errorf("5 terms had the owners %v", seen)
	}
}

func TestWireLease(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: 600 * time.Millisecond})
	hold := s.Acquire(t, k, lockkeeper.WithLease(5*time.Second))
	if ttl := k.Ttl(t); ttl > 5*time.Second || ttl < 4*time.Second {
		t.Errorf("TTL %v, want 5s", ttl)
	}
	given, asked := k.Expiry(t), time.Now()
	inner := s.AcquireIn(t, hold.Context(), k)
	locktest.Release(t, inner)
	if late := k.Expiry(t).Sub(given).Abs(); late > 100*time.Millisecond+time.Since(asked) {
		t.Errorf("a re-entry without a lease moved the fixed one by %v", late)
	}
	locktest.Release(t, hold)

	hold = s.Acquire(t, k, lockkeeper.WithLease(300*time.Millisecond))
	given = k.Expiry(t)
	pulse := locktest.TakePulse(t)
	<-hold.Context().Done()
	if late := time.Since(given); late > pulse.Noise() {
		t.Errorf("told of the end %v after it", late)
	}
	if reason := locktest.IsError(t, hold.Err(), lockkeeper.ErrLost); reason != messages.Reason_REASON_EXPIRED {
		t.Errorf("lost because of %v", reason)
	}
	k.AwaitFree(t)
}

// The watchdog never lets the TTL come near its end.
func TestWireRenewal(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Shared(t))
	const watchdog = 1500 * time.Millisecond
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Watchdog: watchdog})
	hold := s.Acquire(t, k)
	owner := k.HeldBy(t, s, "1")
	renewed, expiry, least := 0, k.Expiry(t), watchdog
	redistest.Eventually(t, "4 renewals", func() bool {
		least = min(least, k.Ttl(t))
		if now := k.Expiry(t); now.Sub(expiry) > 100*time.Millisecond {
			expiry = now
			renewed++
		}
		return renewed == 4
	})
	if k.HeldBy(t, s, "1") != owner || !hold.Valid() {
		t.Error("the lock changed hands")
	}
	if least < watchdog/4 {
		t.Errorf("the TTL sank to %v of %v", least, watchdog)
	}
	locktest.Release(t, hold)
	k.IsFree(t)
}

func TestForeignHolder(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	k.TakeAs(t, locktest.Redisson, 30*time.Second)

	_, err := s.Lock(k.LockName).TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	if !regexp.MustCompile(locktest.Redisson).MatchString(err.Error()) {
		t.Errorf("the error does not name the holder: %v", err)
	}
	refused := locktest.Ask[*messages.NotAcquired](t, s.Probe(t), &messages.Acquire{Lock: k.Message(), Wait: durationpb.New(0)})
	if refused.Reason != messages.Reason_REASON_HELD || refused.Lock.GetName() != k.LockName {
		t.Errorf("refused with %v", refused)
	}
	if ttl := refused.Ttl.AsDuration(); ttl > 30*time.Second || ttl < 20*time.Second {
		t.Errorf("refused with the TTL %v, want 30s", ttl)
	}
	_, err = s.Lock(k.LockName).Acquire(locktest.Within(t), lockkeeper.WithWait(50*time.Millisecond))
	locktest.IsError(t, err, lockkeeper.ErrTimeout)

	status := s.Inspect(t, k)
	if !status.Locked || status.HeldHere || status.Holder != locktest.Redisson || status.HoldCount != 1 || status.TTL < 20*time.Second {
		t.Errorf("status %+v", status)
	}
	if owners := k.Owners(t); len(owners) != 1 || owners[locktest.Redisson] != "1" {
		t.Errorf("owners %v", owners)
	}
}

// The message that Redisson sends lets us in, long before we would look again.
func TestForeignUnlock(t *testing.T) {
	for what, ttl := range map[string]time.Duration{"with a TTL": time.Minute, "without an end": -1} {
		t.Run(what, func(t *testing.T) {
			k := locktest.NewKey(t, redistest.Start(t))
			s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
			k.TakeAs(t, locktest.Redisson, ttl)
			granted := s.AcquireSoon(t, k)
			k.AwaitListener(t)
			freed := time.Now()
			k.Unlock(t)
			g := locktest.Got(t, granted)
			if wait := g.At.Sub(freed); wait > locktest.Soon {
				t.Errorf("let in %v after the unlock", wait)
			}
			k.HeldBy(t, s, "1")
			locktest.Release(t, g.Hold)
			k.AwaitSubscribers(t, 0)
		})
	}
}

// A holder that died tells nobody; its TTL lets us in, and nothing does before.
func TestForeignExpiry(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	k.TakeAs(t, locktest.Redisson, 700*time.Millisecond)
	expiry := k.Expiry(t)
	g := locktest.Got(t, s.AcquireSoon(t, k))
	if wait := g.At.Sub(expiry); wait < -time.Millisecond || wait > locktest.Soon {
		t.Errorf("let in %v after the TTL", wait)
	}
	locktest.Release(t, g.Hold)
}

// Two of our own processes pass the lock on by the same message.
func TestOwnUnlock(t *testing.T) {
	k := locktest.NewKey(t, redistest.Start(t))
	a, b := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	hold := a.Acquire(t, k)
	granted := b.AcquireSoon(t, k)
	k.AwaitListener(t)
	freed := time.Now()
	locktest.Release(t, hold)
	g := locktest.Got(t, granted)
	if wait := g.At.Sub(freed); wait > locktest.Soon {
		t.Errorf("let in %v after the release", wait)
	}
	k.HeldBy(t, b, "1")
	locktest.Release(t, g.Hold)
	k.IsFree(t)
}

// Whoever waits by polling alone (Redisson's spin lock) gets its turn too.
func TestForeignPoller(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	stop := make(chan struct{})
	done := make(chan struct{})
	for range 2 { // the lock is never free by itself
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				hold, err := s.Lock(k.LockName).Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if err := hold.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	// Redisson's acquire, every few milliseconds.
	const attempt = `if redis.call('EXISTS', KEYS[1]) == 0 then
		redis.call('HINCRBY', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], 30000) return nil
	end return redis.call('PTTL', KEYS[1])`
	redistest.Eventually(t, "the poller to get in", func() bool {
		return k.Do(t, "EVAL", attempt, "1", k.Name, locktest.Redisson).Error() != nil // nil: it is in
	})
	if owners := k.Owners(t); len(owners) != 1 || owners[locktest.Redisson] != "1" {
		t.Errorf("owners %v", owners)
	}
	close(stop)
	k.Unlock(t)
	<-done
	<-done
	k.AwaitFree(t)
}
