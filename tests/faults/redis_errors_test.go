package faults_test

// Errors of Redis. Packages redisio and redisclient test the errors themselves; these tests check their effect on locks.

import (
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The key has another type than that of a lock.
func TestRedisErrors_WrongTypeIsRejected(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	k.Do(t, "SET", k.Name, "text")
	locktest.InTime(t, "to be refused", func() {
		for _, err := range locktest.Errors(locktest.Within(t), s.Lock(k.LockName)) {
			locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE", "choose another name")
		}
		for _, request := range locktest.Requests(k.Message()) {
			switch request.(type) {
			case *messages.Cancel:
			case *messages.Release:
				locktest.ExpectRefusal(t, s.Probe(t), request, messages.Reason_REASON_NOT_HELD)
			default:
				locktest.ExpectRefusal(t, s.Probe(t), request, messages.Reason_REASON_REJECTED)
			}
		}
	})
	if !k.Exists(t) {
		t.Error("a foreign key was deleted")
	}
	k.Do(t, "DEL", k.Name)
	s.ExpectGranted(t, k)
}

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
				_, err := s.Lock(k.LockName).Acquire(locktest.Within(t), lockkeeper.WithWait(wait))
				locktest.IsError(t, err, lockkeeper.ErrRejected, "ACL user")
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
		_, err := s.Lock(k.LockName).TryAcquire(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrUnavailable, word)
		granted := s.AcquireSoon(t, k)
		s.AwaitWaiters(t, k, 1)
		k.Do(t, strings.Fields(command[1])...)
		locktest.Release(t, locktest.Got(t, granted).Hold)
	}
}
