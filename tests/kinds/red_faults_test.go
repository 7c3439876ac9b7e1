package kinds_test

// RedLocks on servers that forget, are killed, or miss commands.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// When the third of five servers fails, no request is granted, and a holder is notified before its validity ends.
func TestRedLock_LosesHoldWithoutMajority(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Watchdog = 4 * time.Second
	q := newQuorum(t, cfg)
	p := q.party(t)
	q.disconnect(true, 0, 3)
	hold := locktest.Acquire(t, p.Lock)
	expired := make(chan time.Time, 1)
	context.AfterFunc(hold.Context(), func() { expired <- time.Now() })
	q.disconnect(true, 1)
	end := q.key(2).Expiry(t) // no renewal moves it, unless a renewal was under way
	locktest.EndedBy(t, hold, messages.Reason_REASON_EXPIRED)
	if at := <-expired; at.After(end.Add(cfg.Watchdog)) {
		t.Errorf("notified %v after the keys' end", at.Sub(end))
	}
	for _, i := range []int{2, 4} { // until then these servers refuse
		redistest.Eventually(t, "the end of the keys", func() bool { return len(q.key(i).Owners(t)) == 0 })
	}
	locktest.ExpectRefused(t, lockkeeper.ErrUnavailable, p.Lock)
	locktest.Fails(p.Acquire(locktest.Within(t), lockkeeper.WithWait(500*time.Millisecond)))(t, lockkeeper.ErrUnavailable)
	q.awaitFree(t)
}

// Renewal needs a majority. It restores the lock on a member that has forgotten it, or that freed it by force. When a
// majority has freed it, the lock is lost.
func TestRedLock_RenewsWithMajority(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, redConfig)
	p := q.party(t)
	hold := locktest.Acquire(t, p.Lock)
	inner := locktest.AcquireIn(t, hold.Context(), p.Lock)
	q.awaitHeld(t, "2")
	q.key(1).Do(t, "DEL", q.name)
	q.key(4).Do(t, "DEL", q.name)
	q.awaitHeld(t, "2")
	locktest.ForceRelease(t, p.sites[1].Lock(q.name), true) // a release of the plain lock of that name notifies the RedLock at once
	q.awaitHeld(t, "2")
	locktest.ExpectValid(t, hold, inner)
	locktest.Release(t, inner)
	q.awaitHeld(t, "1")
	for i := range 3 {
		q.key(i).Do(t, "DEL", q.name)
		q.takeAs(t, -1, i)
	}
	locktest.EndedBy(t, hold, messages.Reason_REASON_TAKEN)
	q.awaitFree(t, 3, 4)
	for i := range 3 {
		if owners := q.key(i).Owners(t); owners[locktest.Redisson] != "1" {
			t.Errorf("the new holder has lost server %d: %v", i, owners)
		}
		q.unlock(t, i)
	}
}

// A lock that was released meanwhile is not restored on a server that answers late.
func TestRedLock_DoesNotRestoreReleasedLock(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Renewal = time.Second // the test renews by Ensure
	q := newQuorum(t, cfg)
	p := q.party(t)
	hold := locktest.Acquire(t, p.Lock)
	q.awaitHeld(t, "1")
	q.key(4).Do(t, "DEL", q.name)
	const delay = 150 * time.Millisecond
	q.proxies[4].Delay(delay)
	for first := q.key(0).Expiry(t); q.key(0).Expiry(t).Equal(first); { // until it is renewed, and the late answer is on its way
		locktest.Ensure(t, hold, cfg.Watchdog*9/10)
	}
	locktest.Release(t, hold)
	q.awaitFree(t, 0, 1, 2, 3)
	// The late answer, and what it may cause to be sent, arrive within this time.
	for end := time.Now().Add(6 * delay); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if q.key(4).Exists(t) {
			t.Fatalf("after its release the lock is held by %v on the slow server", q.key(4).Owners(t))
		}
	}
}

// A try that a majority refuses gives back the grants of the other servers, also the grants that are still to come.
// That release must not hit a later try, however late it arrives.
func TestRedLock_LateRollBackFreesNothing(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, redConfig)
	p, other := q.party(t), q.party(t)
	q.takeAs(t, -1, 0, 1, 2)
	q.proxies[4].Delay(50 * time.Millisecond) // its grant comes when the others have refused
	late := q.proxies[4].Hold(releases)
	granted := locktest.AcquireSoon(locktest.Within(t), p.Lock)
	late.Wait(t)
	q.proxies[4].Delay(0)
	q.unlock(t, 0)
	hold := locktest.Got(t, granted).Hold // by the first server and the last two
	q.awaitHeld(t, "1", 0, 3, 4)
	late.Release(t)
	if owners := q.key(4).Owners(t); len(owners) == 0 {
		t.Error("the late release has freed the lock on one server")
	}
	q.unlock(t, 1, 2)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, other.Lock)
	locktest.Release(t, hold)
	q.awaitFree(t)
}

// A command for a short lease that one server carries out late, when the others have confirmed it and a longer one, does not
// cut short what is trusted.
func TestRedLock_LateCommandCutsNoLease(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Renewal = 2 * time.Second // which would restore the lock
	for what, prolong := range map[string]func(hold *lockkeeper.Hold) error{
		"kept alive": func(hold *lockkeeper.Hold) error { return hold.KeepAlive(locktest.Within(t)) },
		"extended":   func(hold *lockkeeper.Hold) error { return hold.Extend(locktest.Within(t), cfg.Watchdog) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := newQuorum(t, cfg)
			p, other := q.party(t), q.party(t)
			hold := locktest.Acquire(t, p.Lock)
			q.awaitHeld(t, "1")
			late := q.proxies[2].Hold(renewals)
			locktest.Extend(t, hold, 500*time.Millisecond)
			late.Wait(t)
			for _, proxy := range q.proxies[:2] {
				proxy.Hold(renewals)
			}
			if err := prolong(hold); err != nil {
				locktest.IsError(t, err, lockkeeper.ErrUnavailable)
			}
			late.Release(t)
			redistest.Eventually(t, "another holder", func() bool {
				second, err := other.TryAcquire(locktest.Within(t))
				if err != nil {
					return false
				}
				if hold.Valid() && second.Valid() {
					t.Error("two holders trust the lock")
				}
				locktest.Release(t, second)
				return true
			})
			q.awaitFree(t)
		})
	}
}

// Servers that were restarted or flushed may have forgotten locks: they have no vote until those would have expired.
func TestRedLock_RestartedServersHaveNoVote(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Watchdog = 2 * time.Second
	q := ownQuorum(t, cfg, 5)
	p, other := q.party(t), q.party(t)
	for what, forget := range map[string]func(i int){
		"restarted": func(i int) { q.servers[i].Restart(t) },
		"flushed":   func(i int) { q.key(i).Do(t, "FLUSHALL") },
	} {
		locktest.AgeServers(t, q.servers...)
		hold := locktest.Acquire(t, p.Lock, lockkeeper.WithLease(cfg.Watchdog))
		q.awaitHeld(t, "1")
		until := q.key(3).Expiry(t) // as far as the holder knows
		forgotten := time.Now()
		for i := range 3 {
			forget(i)
		}
		// From here on no other server refuses, however late the tries come.
		q.key(3).Do(t, "DEL", q.name)
		q.key(4).Do(t, "DEL", q.name)
		said := false
		redistest.Eventually(t, "the vote of those that have forgotten", func() bool {
			second, err := other.TryAcquire(locktest.Within(t))
			if err != nil {
				said = said || errors.Is(err, lockkeeper.ErrUnavailable) && strings.Contains(err.Error(), "recently started")
				return false
			}
			if now := time.Now(); now.Before(until) || now.Before(forgotten.Add(cfg.Watchdog)) {
				t.Errorf("%s: granted %v after a majority had forgotten, and %v before the end of the lease of another holder",
					what, now.Sub(forgotten), until.Sub(now))
			}
			locktest.Release(t, second)
			return true
		})
		if !said {
			t.Errorf("%s: no refusal gave the reason", what)
		}
		locktest.EndedBy(t, hold)
		q.awaitFree(t)
	}
}

// A server that fails over to a replica that lags, and back, has the data of that replica: it lacks the lock, and has
// an old record of its memory.
func TestRedLock_PromotedReplicasHaveNoVote(t *testing.T) {
	t.Parallel()
	q := ownQuorum(t, redConfig, 3)
	p, other := q.party(t), q.party(t)
	var lagging []*redistest.Server
	for _, s := range q.servers[:2] {
		lagging = append(lagging, redistest.Replica(t, s))
	}
	locktest.AgeServers(t, q.servers...) // the first replica of a server is the beginning of a new memory
	for i, r := range lagging {
		redistest.Eventually(t, "the replica to have the record", func() bool {
			return slices.Equal(memoryOf(t, r), memoryOf(t, q.servers[i]))
		})
		r.Promote(t) // the replica receives nothing more
	}
	hold := locktest.Acquire(t, p.Lock, lockkeeper.WithLease(redConfig.Watchdog))
	q.awaitHeld(t, "1")
	for i, r := range lagging {
		q.servers[i].Follow(t, r)
		q.servers[i].Promote(t)
	}
	if second, err := other.TryAcquire(locktest.Within(t)); err == nil {
		t.Errorf("two holders after a majority was promoted, which trust their holds: %v, %v", hold.Valid(), second.Valid())
	}
	for i := range lagging {
		if key := q.key(i); key.Exists(t) {
			t.Errorf("server %d has granted the lock to %v", i, key.Owners(t))
		}
	}
}

func memoryOf(t *testing.T, s *redistest.Server) []string {
	t.Helper()
	record := locktest.Must(s.Do(t, "HMGET", "lockkeeper_memory", "memory", "age").AsStrSlice())(t)
	return record
}

// A release, forced or not, is complete when a majority confirms it. It is sent to the other servers, too: a key that
// stays on one of them would block the released lock for all clients as soon as another server is down.
func TestRedLock_ReleaseReachesEveryServer(t *testing.T) {
	t.Parallel()
	type fault func(t *testing.T, p *redistest.Proxy) (end func())
	command := func(match func([]string) bool) fault {
		return func(t *testing.T, p *redistest.Proxy) func() {
			lost := p.Hold(match)
			return func() { lost.Wait(t) }
		}
	}
	for what, test := range map[string]struct {
		fault
		forced bool
	}{
		"a command is lost":                   {command(releases), false},
		"a forced one is lost":                {command(redistest.Script(scripts.ForceRelease.SHA)), true},
		"the Inspect of a forced one is lost": {command(redistest.Script(scripts.Inspect.SHA)), true},
		"a reply is lost": {func(t *testing.T, p *redistest.Proxy) func() {
			lost := p.DropRepliesTo(releases, 1)
			return func() { lost.Wait(t) }
		}, false},
		"a server is cut off": {func(_ *testing.T, p *redistest.Proxy) func() { p.Refuse(true); return func() { p.Refuse(false) } }, false},
		"a server hangs": {func(t *testing.T, p *redistest.Proxy) func() {
			lost := p.Hold(releases, redistest.Silent)
			return func() { lost.Wait(t); p.Cut() }
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := newQuorum(t, redConfig)
			p := q.party(t)
			withFault := func(release func()) {
				t.Helper()
				first, second := test.fault(t, q.proxies[1]), test.fault(t, q.proxies[4])
				release()
				first()
				second()
				q.awaitGivenBack(t)
			}
			hold := locktest.Acquire(t, p.Lock)
			q.awaitHeld(t, "1")
			if !test.forced {
				withFault(func() { locktest.Release(t, hold) })
				return
			}
			withFault(func() { locktest.ForceRelease(t, p.Lock, true) })
			locktest.EndedBy(t, hold)
			q.takeAs(t, time.Minute, q.or(nil)...) // by another process
			withFault(func() { locktest.ForceRelease(t, p.Lock, true) })
		})
	}
}

// A forced release that arrives late must not hit the next holder.
func TestRedLock_LateForceReleaseFreesNothing(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, redConfig)
	p, other := q.party(t), q.party(t)
	q.takeAs(t, time.Minute, q.or(nil)...)
	var late []*redistest.Held
	for i := range 2 {
		late = append(late, q.proxies[i].Hold(redistest.Script(scripts.Release.SHA, scripts.ForceRelease.SHA)))
	}
	locktest.ForceRelease(t, p.Lock, true)
	hold := locktest.Acquire(t, other.Lock)
	q.awaitHeld(t, "1")
	for i, each := range late {
		each.Release(t)
		if owners := q.key(i).Owners(t); len(owners) != 1 {
			t.Errorf("server %d was taken from its holder: %v", i, owners)
		}
	}
	locktest.Release(t, hold)
	q.awaitGivenBack(t)
}

// Close retries a release that a server has not confirmed. It returns an error if the server still does not confirm,
// because it is unreachable or refuses the release for good.
func TestRedLock_CloseRetriesUnconfirmedRelease(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"the server is back", "the server is away", "the server refuses"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := newQuorum(t, redConfig)
			refuses, back := what == "the server refuses", what == "the server is back"
			if refuses { // a shared server would refuse the others' tests, too
				q = quorumOf(t, redConfig, append(redistest.SharedServers(t, 4), redistest.Start(t))...)
			}
			p := q.party(t)
			hold := locktest.Acquire(t, p.Lock)
			q.awaitHeld(t, "1")
			if refuses {
				q.key(4).Do(t, "ACL", "SETUSER", "default", "-hdel")
			} else {
				q.disconnect(true, 4)
			}
			locktest.Release(t, hold)
			q.awaitFree(t, 0, 1, 2, 3)
			if back {
				q.disconnect(false, 4)
			}
			for i, site := range p.sites {
				if err := site.Close(locktest.Within(t)); (err == nil) != (i < 4 || back) {
					t.Errorf("system %d: %v", i, err)
				}
			}
			if left := q.key(4).Exists(t); left == back {
				t.Errorf("the key is left: %v", left)
			}
		})
	}
}
