package faults_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The key is something else than a lock.
func TestWrongType(t *testing.T) {
	server := redistest.Shared(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{})
	for what, command := range map[string][]string{"string": {"SET", "text"}, "list": {"RPUSH", "item"}, "set": {"SADD", "member"}} {
		t.Run(what, func(t *testing.T) {
			k := locktest.NewKey(t, server)
			k.Do(t, command[0], k.Name, command[1])
			locktest.InTime(t, "to be refused", func() {
				_, acquire := s.Lock(k.LockName).Acquire(locktest.Within(t))
				_, try := s.Lock(k.LockName).TryAcquire(locktest.Within(t))
				_, force := s.Lock(k.LockName).ForceRelease(locktest.Within(t))
				_, inspect := s.Lock(k.LockName).Inspect(locktest.Within(t))
				for _, err := range []error{acquire, try, force, inspect} {
					locktest.IsError(t, err, lockkeeper.ErrRejected)
					if !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), "choose another name") {
						t.Errorf("the error does not help: %v", err)
					}
				}
				p := s.Probe(t)
				for _, request := range locktest.Requests(k.Message()) {
					if _, ok := request.(*messages.Cancel); !ok {
						want := messages.Reason_REASON_REJECTED
						if _, ok := request.(*messages.Release); ok {
							want = messages.Reason_REASON_NOT_HELD
						}
						locktest.Refuses(t, p, request, want)
					}
				}
			})
			if !k.Exists(t) {
				t.Error("somebody else's key was deleted")
			}
			s.Passes(t, locktest.NewKey(t, server))
			k.Do(t, "DEL", k.Name)
			s.Passes(t, k)
		})
	}
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	user := func(t *testing.T, name string, rules ...string) *locktest.Site {
		t.Helper()
		args := append([]string{"ACL", "SETUSER", name, "reset", "on", ">pw", "~*", "&*", "+@all"}, rules...)
		if err := server.Do(t, args...).Error(); err != nil {
			t.Fatal(err)
		}
		s := locktest.Open(t, locktest.As(server, name, "pw"), lockkeeper.Config{Watchdog: 600 * time.Millisecond, Poll: 50 * time.Millisecond})
		s.Lame = true
		return s
	}
	for what, rules := range map[string][]string{
		"no scripts":    {"-eval", "-evalsha"},
		"no HSET":       {"-hset"},
		"no PTTL":       {"-pttl"},
		"other keys":    {"resetkeys", "~other:*"},
		"only readable": {"resetkeys", "%R~*"},
	} {
		t.Run(what, func(t *testing.T) {
			k := locktest.NewKey(t, server)
			s := user(t, strings.ReplaceAll(what, " ", "-"), rules...)
			locktest.InTime(t, "to be refused", func() {
				_, acquire := s.Lock(k.LockName).Acquire(locktest.Within(t))
				_, try := s.Lock(k.LockName).TryAcquire(locktest.Within(t))
				for _, err := range []error{acquire, try} {
					locktest.IsError(t, err, lockkeeper.ErrRejected)
					if !strings.Contains(err.Error(), "ACL user") {
						t.Errorf("the error does not help: %v", err)
					}
				}
			})
			k.IsFree(t)
		})
	}
	t.Run("no PUBLISH", func(t *testing.T) {
		k := locktest.NewKey(t, server)
		s := user(t, "no-publish", "-publish")
		hold := s.Acquire(t, k)
		locktest.InTime(t, "the release", func() { locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrRejected) })
		k.AwaitFree(t)
	})
	t.Run("no SUBSCRIBE", func(t *testing.T) {
		k := locktest.NewKey(t, server)
		s := user(t, "no-subscribe", "-subscribe")
		k.TakeAs(t, locktest.Redisson, -1)
		granted := s.AcquireSoon(t, k)
		s.AwaitWaiters(t, k, 1)
		k.Unlock(t)
		locktest.Release(t, locktest.Got(t, granted).Hold) // by polling
	})
	t.Run("withdrawn", func(t *testing.T) {
		s := user(t, "fallen")
		held := locktest.Guards(t, s, server)
		server.Do(t, "ACL", "SETUSER", "fallen", "-@all")
		ends := []time.Time{held[0].Expiry(t), held[1].Expiry(t)}
		for i, g := range held {
			g.LostInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED)
			g.AwaitFree(t)
		}
		server.Do(t, "ACL", "SETUSER", "fallen", "+@all")
		s.Passes(t, held[0].Key)
	})
}

func TestPasswords(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "secret")
	for url, want := range map[string]string{
		server.URL(): "NOAUTH",
		locktest.As(server, "default", "wr0ng!pass"): "WRONGPASS",
		locktest.As(server, "nobody", "secret"):      "WRONGPASS",
	} {
		locktest.InTime(t, "to be refused", func() {
			client, err := lockkeeper.Connect(url)
			if err == nil {
				client.Close()
				t.Fatal("connected without the right password")
			}
			if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "user name and password") || strings.Contains(err.Error(), "wr0ng") {
				t.Errorf("error %q", err)
			}
		})
	}
	k, s := locktest.NewKey(t, server), locktest.Open(t, locktest.As(server, "default", "secret"), lockkeeper.Config{})
	s.Passes(t, k)
	s.Lame = true // what a refused try may have left is not known at Close
	// The password is changed under way.
	k.Do(t, "CONFIG", "SET", "requirepass", "other")
	server.KillClients(t, "normal")
	redistest.Eventually(t, "a refusal", func() bool {
		_, err := s.Lock(k.LockName).TryAcquire(locktest.Within(t))
		return errors.Is(err, lockkeeper.ErrRejected) && strings.Contains(err.Error(), "WRONGPASS")
	})
	k.Do(t, "CONFIG", "SET", "requirepass", "secret")
	s.Passes(t, k)
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	k, s := locktest.NewKey(t, server), locktest.Open(t, server.URL(), lockkeeper.Config{Watchdog: time.Second})
	hold := s.Acquire(t, k)
	server.Kill(t)
	locktest.InTime(t, "to be refused", func() {
		if client, err := lockkeeper.Connect(server.URL()); err == nil {
			client.Close()
			t.Error("connected to nothing")
		}
		lock := s.Lock(locktest.NewKey(t, server).LockName)
		_, acquire := lock.Acquire(locktest.Within(t), lockkeeper.WithWait(100*time.Millisecond))
		_, try := lock.TryAcquire(locktest.Within(t))
		_, inspect := lock.Inspect(locktest.Within(t))
		_, force := lock.ForceRelease(locktest.Within(t))
		for _, err := range []error{acquire, try, inspect, force} {
			locktest.IsError(t, err, lockkeeper.ErrUnavailable)
		}
	})
	locktest.InTime(t, "the release", func() {
		err := hold.Release(locktest.Within(t))
		if !errors.Is(err, lockkeeper.ErrUnavailable) && !errors.Is(err, lockkeeper.ErrLost) {
			t.Errorf("the release from a dead Redis: %v", err)
		}
	})
	server.Restart(t)
	locktest.Release(t, s.Acquire(t, k))
	k.IsFree(t)
}

// Redis refuses for now: a try says so, a wait outlasts it.
func TestTransientErrors(t *testing.T) {
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), locktest.NoPolling)
	for word, command := range map[string][2]string{
		"OOM":        {"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"},
		"READONLY":   {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"},
		"NOREPLICAS": {"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"},
	} {
		t.Run(word, func(t *testing.T) {
			k := locktest.NewKey(t, server)
			k.Do(t, strings.Fields(command[0])...)
			_, err := s.Lock(k.LockName).TryAcquire(locktest.Within(t))
			locktest.IsError(t, err, lockkeeper.ErrUnavailable)
			if !strings.Contains(err.Error(), word) {
				t.Errorf("the error does not say %s: %v", word, err)
			}
			granted := s.AcquireSoon(t, k)
			s.AwaitWaiters(t, k, 1)
			k.Do(t, strings.Fields(command[1])...)
			locktest.Release(t, locktest.Got(t, granted).Hold)
			k.IsFree(t)
		})
	}
}
