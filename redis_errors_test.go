package lockkeeper_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The key is something else than a lock.
func TestWrongType(t *testing.T) {
	server := redistest.Shared(t)
	s := open(t, server.URL(), lockkeeper.Config{})
	for what, command := range map[string][]string{"string": {"SET", "text"}, "list": {"RPUSH", "item"}, "set": {"SADD", "member"}} {
		t.Run(what, func(t *testing.T) {
			k := newKey(t, server)
			k.do(t, command[0], k.name, command[1])
			inTime(t, "to be refused", func() {
				_, acquire := s.Lock(k.lock).Acquire(within(t))
				_, try := s.Lock(k.lock).TryAcquire(within(t))
				_, force := s.Lock(k.lock).ForceRelease(within(t))
				_, inspect := s.Lock(k.lock).Inspect(within(t))
				for _, err := range []error{acquire, try, force, inspect} {
					isError(t, err, lockkeeper.ErrRejected)
					if !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), "choose another name") {
						t.Errorf("the error does not help: %v", err)
					}
				}
				p := s.probe(t)
				for _, request := range requests(k.message()) {
					if _, ok := request.(*messages.Cancel); !ok {
						want := messages.Reason_REASON_REJECTED
						if _, ok := request.(*messages.Release); ok {
							want = messages.Reason_REASON_NOT_HELD
						}
						refuses(t, p, request, want)
					}
				}
			})
			if !k.exists(t) {
				t.Error("somebody else's key was deleted")
			}
			s.passes(t, newKey(t, server))
			k.do(t, "DEL", k.name)
			s.passes(t, k)
		})
	}
}

// as gives the URL of a user of the server's.
func as(server *redistest.Server, user, password string) string {
	u, _ := url.Parse(server.URL())
	u.User = url.UserPassword(user, password)
	return u.String()
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	user := func(t *testing.T, name string, rules ...string) *site {
		t.Helper()
		args := append([]string{"ACL", "SETUSER", name, "reset", "on", ">pw", "~*", "&*", "+@all"}, rules...)
		if err := server.Do(t, args...).Error(); err != nil {
			t.Fatal(err)
		}
		s := open(t, as(server, name, "pw"), lockkeeper.Config{Watchdog: 600 * time.Millisecond, Poll: 50 * time.Millisecond})
		s.lame = true
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
			k := newKey(t, server)
			s := user(t, strings.ReplaceAll(what, " ", "-"), rules...)
			inTime(t, "to be refused", func() {
				_, acquire := s.Lock(k.lock).Acquire(within(t))
				_, try := s.Lock(k.lock).TryAcquire(within(t))
				for _, err := range []error{acquire, try} {
					isError(t, err, lockkeeper.ErrRejected)
					if !strings.Contains(err.Error(), "ACL user") {
						t.Errorf("the error does not help: %v", err)
					}
				}
			})
			k.isFree(t)
		})
	}
	t.Run("no PUBLISH", func(t *testing.T) {
		k := newKey(t, server)
		s := user(t, "no-publish", "-publish")
		hold := s.acquire(t, k)
		inTime(t, "the release", func() { isError(t, hold.Release(within(t)), lockkeeper.ErrRejected) })
		k.awaitFree(t)
	})
	t.Run("no SUBSCRIBE", func(t *testing.T) {
		k := newKey(t, server)
		s := user(t, "no-subscribe", "-subscribe")
		k.takeAs(t, redisson, -1)
		granted := s.acquireSoon(t, k)
		s.awaitWaiters(t, k, 1)
		k.unlock(t)
		release(t, got(t, granted).hold) // by polling
	})
	t.Run("withdrawn", func(t *testing.T) {
		s := user(t, "fallen")
		held := guards(t, s, server)
		server.Do(t, "ACL", "SETUSER", "fallen", "-@all")
		ends := []time.Time{held[0].expiry(t), held[1].expiry(t)}
		for i, g := range held {
			g.lostInTime(t, ends[i], true, messages.Reason_REASON_EXPIRED)
			g.awaitFree(t)
		}
		server.Do(t, "ACL", "SETUSER", "fallen", "+@all")
		s.passes(t, held[0].key)
	})
}

func TestPasswords(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "secret")
	for url, want := range map[string]string{
		server.URL():                        "NOAUTH",
		as(server, "default", "wr0ng!pass"): "WRONGPASS",
		as(server, "nobody", "secret"):      "WRONGPASS",
	} {
		inTime(t, "to be refused", func() {
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
	k, s := newKey(t, server), open(t, as(server, "default", "secret"), lockkeeper.Config{})
	s.passes(t, k)
	// The password is changed under way.
	k.do(t, "CONFIG", "SET", "requirepass", "other")
	server.KillClients(t, "normal")
	redistest.Eventually(t, "a refusal", func() bool {
		_, err := s.Lock(k.lock).TryAcquire(within(t))
		return errors.Is(err, lockkeeper.ErrRejected) && strings.Contains(err.Error(), "WRONGPASS")
	})
	k.do(t, "CONFIG", "SET", "requirepass", "secret")
	s.passes(t, k)
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	k, s := newKey(t, server), open(t, server.URL(), lockkeeper.Config{Watchdog: time.Second})
	hold := s.acquire(t, k)
	server.Kill(t)
	inTime(t, "to be refused", func() {
		if client, err := lockkeeper.Connect(server.URL()); err == nil {
			client.Close()
			t.Error("connected to nothing")
		}
		lock := s.Lock(newKey(t, server).lock)
		_, acquire := lock.Acquire(within(t), lockkeeper.WithWait(100*time.Millisecond))
		_, try := lock.TryAcquire(within(t))
		_, inspect := lock.Inspect(within(t))
		_, force := lock.ForceRelease(within(t))
		for _, err := range []error{acquire, try, inspect, force} {
			isError(t, err, lockkeeper.ErrUnavailable)
		}
	})
	inTime(t, "the release", func() {
		err := hold.Release(within(t))
		if !errors.Is(err, lockkeeper.ErrUnavailable) && !errors.Is(err, lockkeeper.ErrLost) {
			t.Errorf("the release from a dead Redis: %v", err)
		}
	})
	server.Restart(t)
	release(t, s.acquire(t, k))
	k.isFree(t)
}

// Redis refuses for now: a try says so, a wait outlasts it.
func TestTransientErrors(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL(), noPolling)
	for word, command := range map[string][2]string{
		"OOM":        {"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"},
		"READONLY":   {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"},
		"NOREPLICAS": {"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"},
	} {
		t.Run(word, func(t *testing.T) {
			k := newKey(t, server)
			k.do(t, strings.Fields(command[0])...)
			_, err := s.Lock(k.lock).TryAcquire(within(t))
			isError(t, err, lockkeeper.ErrUnavailable)
			if !strings.Contains(err.Error(), word) {
				t.Errorf("the error does not say %s: %v", word, err)
			}
			granted := s.acquireSoon(t, k)
			s.awaitWaiters(t, k, 1)
			k.do(t, strings.Fields(command[1])...)
			release(t, got(t, granted).hold)
			k.isFree(t)
		})
	}
}
