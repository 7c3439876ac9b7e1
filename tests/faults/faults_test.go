package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// quick has leases that end within a test.
var quick = lockkeeper.Config{Watchdog: 2 * time.Second, CallTimeout: 300 * time.Millisecond, Poll: time.Hour}

// Redis is unreachable for longer than the lease: the holder is warned and notified before the key expires in Redis,
// and the waiters get the lock only after that.
func TestLease_LossIsReportedBeforeTheKeyExpires(t *testing.T) {
	const unrenewable = "no reply to a renewal"
	for what, fault := range map[string]struct {
		begin, end func(t *testing.T, r *locktest.Remote)
	}{
		"nothing passes": {begin: func(_ *testing.T, r *locktest.Remote) { r.Proxy.Freeze(true) }},
		"refused":        {begin: func(_ *testing.T, r *locktest.Remote) { r.Proxy.Refuse(true) }},
		"no replies":     {begin: func(_ *testing.T, r *locktest.Remote) { r.Proxy.DropReplies(true) }},
		unrenewable: {begin: func(_ *testing.T, r *locktest.Remote) {
			r.Proxy.DropRepliesTo(redistest.Script(scripts.Renew.SHA), 0)
		}},
		"Redis is paused": {
			func(t *testing.T, r *locktest.Remote) { r.Server.Pause(t) },
			func(t *testing.T, r *locktest.Remote) { r.Server.Resume(t) },
		},
		"Redis is killed": {
			func(t *testing.T, r *locktest.Remote) { r.Server.Kill(t) },
			func(t *testing.T, r *locktest.Remote) { r.Server.Restart(t) },
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			r, other := locktest.NewRemote(t, server, quick), locktest.Open(t, server.URL(), quick)
			held := locktest.Guards(t, r.Site, server)
			waiting := []<-chan locktest.Grant{held[0].Successor(t, other), held[1].Successor(t, other)}
			for _, g := range held {
				g.AwaitSubscribers(t, 1)
			}
			ends := r.Isolate(t, held, func() {
				if fault.begin(t, r); what != "nothing passes" {
					r.Proxy.Freeze(false)
				}
			})
			var losses []locktest.Loss
			for i, g := range held {
				losses = append(losses, g.ExpectLossInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED))
			}
			if fault.end != nil {
				fault.end(t, r)
			}
			for i, g := range held {
				next := locktest.Got(t, waiting[i])
				if late := losses[i].At.Sub(next.At); late > g.Latency.Tolerance() {
					t.Errorf("%s: notified %v after the next was granted the lock", g.How, late)
				}
				// Redis has renewed a hold that counts as lost here, and can delete it on request.
				if idle := next.At.Sub(losses[i].At); what == unrenewable && idle > quick.Watchdog/2+g.Latency.Tolerance() {
					t.Errorf("%s: the next was granted the lock %v after the loss", g.How, idle)
				}
				g.HeldBy(t, other, "1")
				defer locktest.Release(t, next.Hold)
			}
			r.Proxy.Heal()
			granted := r.AcquireSoon(t, held[0].Key)
			r.AwaitWaiters(t, held[0].Key, 1)
			for _, g := range held { // commands that were under way have taken nothing from them
				g.HeldBy(t, other, "1")
			}
			t.Cleanup(func() { locktest.Release(t, locktest.Got(t, granted).Hold) })
		})
	}
}

// The unlock message was published without a subscriber: after a reconnect every waiter tries again.
func TestReconnect_WakesWaiters(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, locktest.NoPolling)
	k.TakeAs(t, locktest.Redisson, -1)
	granted := s.AcquireSoon(t, k)
	k.AwaitListener(t)
	k.Do(t, "DEL", k.Name) // without a message
	if n := k.Server.KillClients(t, "pubsub"); n != 1 {
		t.Fatalf("%d subscribers were cut off", n)
	}
	locktest.Release(t, locktest.Got(t, granted).Hold)
}

// A lost unlock message delays a waiter at most by the poll bound. Only the poll can let it in.
func TestPoll_FindsLostUnlockMessage(t *testing.T) {
	t.Parallel()
	cfg := locktest.NoPolling
	cfg.Poll = 400 * time.Millisecond
	r := locktest.NewRemote(t, redistest.Start(t), cfg)
	r.TakeAs(t, locktest.Redisson, -1)
	r.Proxy.DropMessages(true)
	granted := r.AcquireSoon(t, r.Key)
	r.AwaitListener(t)
	r.Unlock(t)
	locktest.Release(t, locktest.Got(t, granted).Hold)
}

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}

// Packages redisio and redisclient test the errors of Redis themselves; the next tests check their effect on locks.

func TestRedisErrors_NoPermissionIsRejected(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	// user is a site with an ACL user who may do everything but what the rules forbid. The first refusal has a long
	// text, which takes a busy machine a while.
	user := func(t *testing.T, watchdog time.Duration, name string, rules ...string) (*locktest.Site, locktest.Key) {
		t.Helper()
		k := locktest.NewKey(t, server)
		k.Do(t, append([]string{"ACL", "SETUSER", name, "reset", "on", ">pw", "~*", "&*", "+@all"}, rules...)...)
		s := locktest.Open(t, locktest.URLAs(server, name, "pw"), lockkeeper.Config{Watchdog: watchdog, CallTimeout: locktest.Soon, Poll: 50 * time.Millisecond})
		s.SkipCloseCheck = true
		return s, k
	}
	t.Run("no HSET", func(t *testing.T) {
		s, k := user(t, time.Minute, "no-hset", "-hset")
		locktest.InTime(t, "to be refused", func() {
			for _, wait := range []time.Duration{0, time.Minute} {
				locktest.Fails(s.Lock(k.LockName).Acquire(locktest.Within(t), lockkeeper.WithWait(wait)))(t, lockkeeper.ErrRejected, "ACL user")
			}
		})
		k.IsFree(t)
	})
	t.Run("no PUBLISH", func(t *testing.T) {
		s, k := user(t, time.Minute, "no-publish", "-publish")
		hold := s.Acquire(t, k)
		locktest.InTime(t, "the release", func() {
			err := hold.Release(locktest.Within(t))
			locktest.IsError(t, err, lockkeeper.ErrRejected)
			locktest.IsError(t, err, lockkeeper.ErrNotReleased)
		})
		k.AwaitFree(t)
	})
	t.Run("no SUBSCRIBE", func(t *testing.T) {
		s, k := user(t, time.Minute, "no-subscribe", "-subscribe")
		k.TakeAs(t, locktest.Redisson, -1)
		granted := s.AcquireSoon(t, k)
		s.AwaitWaiters(t, k, 1)
		k.Unlock(t)
		locktest.Release(t, locktest.Got(t, granted).Hold) // by polling
	})
	t.Run("withdrawn", func(t *testing.T) {
		s, _ := user(t, 10*time.Second, "fallen")
		held := locktest.Guards(t, s, server)
		server.Do(t, "ACL", "SETUSER", "fallen", "-@all")
		ends := []time.Time{held[0].Expiry(t), held[1].Expiry(t)}
		for i, g := range held {
			g.ExpectLossInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED)
			g.AwaitFree(t)
		}
		server.Do(t, "ACL", "SETUSER", "fallen", "+@all")
		s.ExpectGranted(t, held[0].Key)
	})
}

// Redis refuses for a while: a try reports that, and a wait outlasts it.
func TestRedisErrors_WaitOutlastsTransientErrors(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, locktest.NoPolling)
	for word, command := range map[string][2]string{
		"OOM":        {"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"},
		"READONLY":   {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"},
		"NOREPLICAS": {"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"},
	} {
		k.Do(t, strings.Fields(command[0])...)
		locktest.Fails(s.Lock(k.LockName).TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrUnavailable, word)
		granted := s.AcquireSoon(t, k)
		s.AwaitWaiters(t, k, 1)
		k.Do(t, strings.Fields(command[1])...)
		locktest.Release(t, locktest.Got(t, granted).Hold)
	}
}
