package lockkeeper_test

import (
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
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
	s := open(t, server.URL(), lockkeeper.Config{})
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
			outer, err := lock.Acquire(within(t))
			if err != nil {
				t.Fatal(err)
			}
			inner, err := lock.Acquire(outer.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer fill(t, server)()
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- inner.Release(within(t)) }()
			go func() { second <- outer.Release(within(t)) }()
			for _, released := range []<-chan error{first, second} {
				if err := await(t, "the release", released); err != nil {
					t.Error(err)
				}
			}
			if status, err := lock.Inspect(within(t)); err != nil || status.Locked {
				t.Errorf("after the release it is %+v (%v)", status, err)
			}
		})
	}
}

// The same by message: the actor is the owner, and its hold is released as often as it asked for it.
func TestReleaseByMessageWhileRedisIsFull(t *testing.T) {
	server := redistest.Start(t)
	k := newKey(t, server)
	s := open(t, server.URL(), lockkeeper.Config{})
	p := s.probe(t)
	for range 3 {
		ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.message()})
	}
	defer fill(t, server)()
	for range 3 {
		p.send(&messages.Release{Lock: k.message()})
	}
	for range 3 {
		next[*messages.Released](t, p)
	}
	k.isFree(t)
}

// A partial release that is refused for good was given back all the same: the last
// release ends the hold.
func TestReleaseAfterARejectedOne(t *testing.T) {
	server := redistest.Start(t)
	k := newKey(t, server)
	if err := server.Do(t, "ACL", "SETUSER", "no-hset", "reset", "on", ">pw", "~*", "&*", "+@all").Error(); err != nil {
		t.Fatal(err)
	}
	s := open(t, as(server, "no-hset", "pw"), lockkeeper.Config{})
	outer := s.acquire(t, k)
	inner := acquireIn(t, outer.Context(), s, k)
	if err := server.Do(t, "ACL", "SETUSER", "no-hset", "-hset").Error(); err != nil {
		t.Fatal(err)
	}
	isError(t, inner.Release(within(t)), lockkeeper.ErrRejected)
	if !outer.Valid() {
		t.Error("the outer hold ended with the inner one")
	}
	release(t, outer)
	k.isFree(t)
	if err := outer.Release(within(t)); !errors.Is(err, lockkeeper.ErrNotHeld) {
		t.Error(err)
	}
}
