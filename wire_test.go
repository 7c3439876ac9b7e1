package lockkeeper_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
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
			k := key{server: server, lock: test.lock, name: test.prefix + test.lock, channel: test.channel}
			s := open(t, server.URL(), lockkeeper.Config{KeyPrefix: test.prefix})
			ear := k.listen(t)

			outer := s.acquire(t, k)
			if owner := k.heldBy(t, s, "1"); !ownerField.MatchString(owner) {
				t.Errorf("the owner is %q", owner)
			}
			inner := acquireIn(t, outer.Context(), s, k)
			k.heldBy(t, s, "2")
			if inner.Count() != 2 {
				t.Errorf("hold count %d, want 2", inner.Count())
			}
			if ttl := k.ttl(t); ttl > 30*time.Second || ttl < 29*time.Second {
				t.Errorf("TTL %v, want 30s", ttl)
			}
			release(t, inner)
			k.heldBy(t, s, "1")
			if heard := ear.messages(t); len(heard) > 0 {
				t.Errorf("heard %q while the lock was held", heard)
			}
			release(t, outer)
			k.isFree(t)
			if heard := ear.messages(t); !slices.Equal(heard, []string{"0"}) {
				t.Errorf("heard %q at the release, want one 0", heard)
			}
		})
	}
}

// Every term has an owner of its own.
func TestWireTerms(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	seen := map[string]bool{}
	for range 5 {
		hold := s.acquire(t, k)
		seen[k.heldBy(t, s, "1")] = true
		release(t, hold)
	}
	if len(seen) != 5 {
		t.Errorf("5 terms had the owners %v", seen)
	}
}

func TestWireLease(t *testing.T) {
	t.Parallel()
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{Watchdog: 600 * time.Millisecond})
	hold := s.acquire(t, k, lockkeeper.WithLease(5*time.Second))
	if ttl := k.ttl(t); ttl > 5*time.Second || ttl < 4*time.Second {
		t.Errorf("TTL %v, want 5s", ttl)
	}
	given, asked := k.expiry(t), time.Now()
	inner := acquireIn(t, hold.Context(), s, k)
	release(t, inner)
	if late := k.expiry(t).Sub(given).Abs(); late > 100*time.Millisecond+time.Since(asked) {
		t.Errorf("a re-entry without a lease moved the fixed one by %v", late)
	}
	release(t, hold)

	hold = s.acquire(t, k, lockkeeper.WithLease(300*time.Millisecond))
	given = k.expiry(t)
	pulse := takePulse(t)
	<-hold.Context().Done()
	if late := time.Since(given); late > pulse.noise() {
		t.Errorf("told of the end %v after it", late)
	}
	if reason := isError(t, hold.Err(), lockkeeper.ErrLost); reason != messages.Reason_REASON_EXPIRED {
		t.Errorf("lost because of %v", reason)
	}
	k.awaitFree(t)
}

// The watchdog never lets the TTL come near its end.
func TestWireRenewal(t *testing.T) {
	t.Parallel()
	k := newKey(t, redistest.Shared(t))
	const watchdog = 1500 * time.Millisecond
	s := open(t, k.server.URL(), lockkeeper.Config{Watchdog: watchdog})
	hold := s.acquire(t, k)
	owner := k.heldBy(t, s, "1")
	renewed, expiry, least := 0, k.expiry(t), watchdog
	redistest.Eventually(t, "4 renewals", func() bool {
		least = min(least, k.ttl(t))
		if now := k.expiry(t); now.Sub(expiry) > 100*time.Millisecond {
			expiry = now
			renewed++
		}
		return renewed == 4
	})
	if k.heldBy(t, s, "1") != owner || !hold.Valid() {
		t.Error("the lock changed hands")
	}
	if least < watchdog/4 {
		t.Errorf("the TTL sank to %v of %v", least, watchdog)
	}
	release(t, hold)
	k.isFree(t)
}

// polling never happens within the time that a test takes.
var noPolling = lockkeeper.Config{Poll: time.Minute, Watchdog: 2 * time.Minute}

// soon is well below the poll bound of noPolling, and much for a busy machine.
const soon = 10 * time.Second

func TestForeignHolder(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	k.takeAs(t, redisson, 30*time.Second)

	_, err := s.Lock(k.lock).TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)
	if !regexp.MustCompile(redisson).MatchString(err.Error()) {
		t.Errorf("the error does not name the holder: %v", err)
	}
	refused := ask[*messages.NotAcquired](t, s.probe(t), &messages.Acquire{Lock: k.message(), Wait: durationpb.New(0)})
	if refused.Reason != messages.Reason_REASON_HELD || refused.Lock.GetName() != k.lock {
		t.Errorf("refused with %v", refused)
	}
	if ttl := refused.Ttl.AsDuration(); ttl > 30*time.Second || ttl < 20*time.Second {
		t.Errorf("refused with the TTL %v, want 30s", ttl)
	}
	_, err = s.Lock(k.lock).Acquire(within(t), lockkeeper.WithWait(50*time.Millisecond))
	isError(t, err, lockkeeper.ErrTimeout)

	status := s.inspect(t, k)
	if !status.Locked || status.HeldHere || status.Holder != redisson || status.HoldCount != 1 || status.TTL < 20*time.Second {
		t.Errorf("status %+v", status)
	}
	if owners := k.owners(t); len(owners) != 1 || owners[redisson] != "1" {
		t.Errorf("owners %v", owners)
	}
}

// The message that Redisson sends lets us in, long before we would look again.
func TestForeignUnlock(t *testing.T) {
	for what, ttl := range map[string]time.Duration{"with a TTL": time.Minute, "without an end": -1} {
		t.Run(what, func(t *testing.T) {
			k := newKey(t, redistest.Start(t))
			s := open(t, k.server.URL(), noPolling)
			k.takeAs(t, redisson, ttl)
			granted := s.acquireSoon(t, k)
			k.awaitListener(t)
			freed := time.Now()
			k.unlock(t)
			g := got(t, granted)
			if wait := g.at.Sub(freed); wait > soon {
				t.Errorf("let in %v after the unlock", wait)
			}
			k.heldBy(t, s, "1")
			release(t, g.hold)
			k.awaitSubscribers(t, 0)
		})
	}
}

// A holder that died tells nobody; its TTL lets us in, and nothing does before.
func TestForeignExpiry(t *testing.T) {
	t.Parallel()
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	k.takeAs(t, redisson, 700*time.Millisecond)
	expiry := k.expiry(t)
	g := got(t, s.acquireSoon(t, k))
	if wait := g.at.Sub(expiry); wait < -time.Millisecond || wait > soon {
		t.Errorf("let in %v after the TTL", wait)
	}
	release(t, g.hold)
}

// Two of our own processes pass the lock on by the same message.
func TestOwnUnlock(t *testing.T) {
	k := newKey(t, redistest.Start(t))
	a, b := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	hold := a.acquire(t, k)
	granted := b.acquireSoon(t, k)
	k.awaitListener(t)
	freed := time.Now()
	release(t, hold)
	g := got(t, granted)
	if wait := g.at.Sub(freed); wait > soon {
		t.Errorf("let in %v after the release", wait)
	}
	k.heldBy(t, b, "1")
	release(t, g.hold)
	k.isFree(t)
}

// Whoever waits by polling alone (Redisson's spin lock) gets its turn too.
func TestForeignPoller(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
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
				hold, err := s.Lock(k.lock).Acquire(t.Context())
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
		return k.do(t, "EVAL", attempt, "1", k.name, redisson).Error() != nil // nil: it is in
	})
	if owners := k.owners(t); len(owners) != 1 || owners[redisson] != "1" {
		t.Errorf("owners %v", owners)
	}
	close(stop)
	k.unlock(t)
	<-done
	<-done
	k.awaitFree(t)
}
