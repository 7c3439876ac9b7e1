package locks_test

import (
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// fill makes a server refuse whatever could need more memory; the result ends that.
func fill(t *testing.T, server *redistest.Server) (makeRoom func()) {
	t.Helper()
	set := func(most string) {
		t.Helper()
		if err := server.Do(t, "CONFIG", "SET", "maxmemory", most).Error(); err != nil {
			t.Fatal(err)
		}
	}
	set("1")
	return func() { t.Helper(); set("0") }
}

// While its memory is full, Redis allows to delete a key: a hold is released then, however
// often it was re-entered.
func TestReleaseWhileRedisIsFull(t *testing.T) {
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{})
	name := redistest.Name(t)
	for what, lock := range map[string]*lockkeeper.Lock{
		"plain":  s.Lock(name + "plain"),
		"fenced": s.FencedLock(name + "fenced"),
		"fair":   s.FairLock(name + "fair"),
		"write":  s.ReadWriteLock(name + "write").Write(),
		"read":   s.ReadWriteLock(name + "read").Read(),
		"multi":  lockkeeper.MultiLock(s.Lock(name+"one"), s.FairLock(name+"two"), s.ReadWriteLock(name+"three").Read()),
	} {
		t.Run(what, func(t *testing.T) {
			outer, err := lock.Acquire(locktest.Within(t))
			if err != nil {
				t.Fatal(err)
			}
			inner, err := lock.Acquire(outer.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer fill(t, server)()
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- inner.Release(locktest.Within(t)) }()
			go func() { second <- outer.Release(locktest.Within(t)) }()
			for _, released := range []<-chan error{first, second} {
				if err := locktest.Await(t, "the release", released); err != nil {
					t.Error(err)
				}
			}
			if status, err := lock.Inspect(locktest.Within(t)); err != nil || status.Locked {
				t.Errorf("after the release it is %+v (%v)", status, err)
			}
		})
	}
}

// The same by message: the actor is the owner, and its hold is released as often as it asked for it.
func TestReleaseByMessageWhileRedisIsFull(t *testing.T) {
	server := redistest.Start(t)
	k := locktest.NewKey(t, server)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{})
	p := s.Probe(t)
	for range 3 {
		locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message()})
	}
	defer fill(t, server)()
	for range 3 {
		p.Send(&messages.Release{Lock: k.Message()})
	}
	for range 3 {
		locktest.Next[*messages.Released](t, p)
	}
	k.IsFree(t)
}

// A partial release that is refused for good was given back all the same: the last
// release ends the hold.
func TestReleaseAfterARejectedOne(t *testing.T) {
	server := redistest.Start(t)
	k := locktest.NewKey(t, server)
	if err := server.Do(t, "ACL", "SETUSER", "no-hset", "reset", "on", ">pw", "~*", "&*", "+@all").Error(); err != nil {
		t.Fatal(err)
	}
	s := locktest.Open(t, locktest.As(server, "no-hset", "pw"), lockkeeper.Config{})
	outer := s.Acquire(t, k)
	inner := s.AcquireIn(t, outer.Context(), k)
	if err := server.Do(t, "ACL", "SETUSER", "no-hset", "-hset").Error(); err != nil {
		t.Fatal(err)
	}
	locktest.IsError(t, inner.Release(locktest.Within(t)), lockkeeper.ErrRejected)
	if !outer.Valid() {
		t.Error("the outer hold ended with the inner one")
	}
	locktest.Release(t, outer)
	k.IsFree(t)
	if err := outer.Release(locktest.Within(t)); !errors.Is(err, lockkeeper.ErrNotHeld) {
		t.Error(err)
	}
}
