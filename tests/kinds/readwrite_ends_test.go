package kinds_test

// How the holds of readers and writers end.

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// patient renews often, and has a TTL that a busy machine does not exceed.
var patient = lockkeeper.Config{Watchdog: 8 * time.Second, Renewal: 300 * time.Millisecond, Poll: 300 * time.Millisecond}

// Every reader has its own lease: the end of one does not shorten another's, and a living reader does not keep the
// lease of a dead process alive.
func TestReadWrite_EachReaderHasItsOwnLease(t *testing.T) {
	t.Parallel()
	const long, short = 1500 * time.Millisecond, 300 * time.Millisecond
	t.Run("a shorter one ends or is released", func(t *testing.T) {
		t.Parallel()
		k, a, b := readWrite(t, patient)
		began := time.Now()
		longer := locktest.Acquire(t, k.read(a), lockkeeper.WithLease(long))
		shorter := locktest.Acquire(t, k.read(b), lockkeeper.WithLease(short))
		locktest.Release(t, locktest.Acquire(t, k.read(b), lockkeeper.WithLease(short)))
		writer := locktest.AcquireSoon(locktest.Within(t), k.write(b))
		locktest.EndedBy(t, shorter)
		locktest.EndedBy(t, longer)
		g := locktest.Got(t, writer)
		if early := g.At.Sub(began); early < 9*long/10 { // a holder gives up its lease a little before the end
			t.Errorf("a writer was granted the lock %v after a reader that had the lock for %v", early, long)
		}
		locktest.Release(t, g.Hold)
	})
	t.Run("a re-entry", func(t *testing.T) {
		t.Parallel()
		k, a, b := readWrite(t, patient)
		hold := locktest.Acquire(t, k.read(a), lockkeeper.WithLease(long))
		locktest.Release(t, locktest.AcquireIn(t, hold.Context(), k.read(a), lockkeeper.WithLease(long)))
		locktest.ExpectGranted(t, k.write(b)) // when the first has ended
		locktest.EndedBy(t, hold)
	})
	t.Run("a dead process", func(t *testing.T) {
		t.Parallel()
		k, a, b := readWrite(t, patient)
		briefly := patient
		briefly.Watchdog = 1500 * time.Millisecond
		dead := locktest.NewRemote(t, k.Server, briefly)
		dead.SkipCloseCheck = true
		lost := locktest.Acquire(t, k.read(dead.Site))
		owner := k.heldAs(t, "read", "1", dead.Site)[0]
		lives := locktest.Acquire(t, k.read(a))
		dead.Proxy.Refuse(true)
		locktest.EndedBy(t, lost)
		k.leaseKey(owner, 1).AwaitFree(t)
		k.AwaitRenewals(t, 500*time.Millisecond)
		writer := locktest.AcquireSoon(locktest.Within(t), k.write(b))
		locktest.AwaitWaiters(t, k.write(b), 1)
		locktest.Pending(t, writer, "there is a reader")
		locktest.Release(t, lives)
		locktest.Release(t, locktest.Got(t, writer).Hold)
		dead.Proxy.Heal()
	})
}

// All holders of a shared lock are notified of its loss.
func TestReadWrite_LossNotifiesAllReaders(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		meddle func(t *testing.T, k rwKey, s *locktest.Site)
		reason messages.Reason
	}{
		"deleted": {func(t *testing.T, k rwKey, _ *locktest.Site) { k.remove(t, "") }, messages.Reason_REASON_GONE},
		"taken": {func(t *testing.T, k rwKey, _ *locktest.Site) {
			k.remove(t, `redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], 1000)`)
		}, messages.Reason_REASON_TAKEN},
		"forced": {func(t *testing.T, k rwKey, s *locktest.Site) { locktest.ForceRelease(t, k.read(s), true) }, messages.Reason_REASON_FORCED},
		"closed": {func(t *testing.T, _ rwKey, s *locktest.Site) {
			locktest.Stop(t, s)
		}, messages.Reason_REASON_CLOSED},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k, s, other := readWrite(t, patient)
			holds := []*lockkeeper.Hold{locktest.Acquire(t, k.read(s)), locktest.Acquire(t, k.read(s))}
			holds = append(holds, locktest.AcquireIn(t, holds[0].Context(), k.read(s)))
			readers, ids := []*locktest.Probe{s.Probe(t), s.Probe(t)}, []string{}
			for _, reader := range readers {
				ids = append(ids, locktest.Ask[*messages.Acquired](t, reader, &messages.Acquire{Lock: k.message()}).HoldId)
			}
			test.meddle(t, k, s)
			for _, hold := range holds {
				locktest.EndedBy(t, hold, test.reason)
			}
			for i, reader := range readers {
				if lost := locktest.Next[*messages.LeaseLost](t, reader); lost.Reason != test.reason || lost.HoldId != ids[i] {
					t.Errorf("notified of %v", lost)
				}
				if what == "closed" {
					continue
				}
				late := locktest.Ask[*messages.NotReleased](t, reader, &messages.Release{Lock: k.message(), HoldId: ids[i]})
				if late.Reason != messages.Reason_REASON_LOST {
					t.Errorf("a release after the loss: %v", late)
				}
			}
			locktest.ExpectGranted(t, k.write(other))
			k.awaitNothing(t)
		})
	}
}

// A reader that joins others under a fixed lease does not take the lock again for them: they have lost it.
func TestReadWrite_NoReaderJoinsALostLease(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(t *testing.T, k rwKey, other *locktest.Site){
		"deleted": func(t *testing.T, k rwKey, _ *locktest.Site) { k.remove(t, "") },
		"forced":  func(t *testing.T, k rwKey, other *locktest.Site) { locktest.ForceRelease(t, k.read(other), true) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k, s, other := readWrite(t, lockkeeper.Config{}) // no renewal notices the loss meanwhile
			lost := locktest.Acquire(t, k.read(s), lockkeeper.WithLease(time.Minute))
			lose(t, k, other)
			locktest.ExpectGranted(t, k.write(other))
			hold := locktest.Acquire(t, k.read(s))
			if lost.Valid() {
				t.Error("a reader is valid, although a writer has had the lock since")
			}
			locktest.EndedBy(t, lost, messages.Reason_REASON_GONE)
			locktest.ExpectValid(t, hold)
			locktest.Release(t, hold)
			k.awaitNothing(t)
		})
	}
}
