package kinds_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// foreign are hashes of other applications under the name of a lock. Two of them also have a field of a lock, and one
// has such a field with another value.
var foreign = map[string]map[string]string{
	"a record":        {"email": "ann@example.com", "password": "tiger"},
	"a counter":       {"email": "7"},
	"half a lock":     {locktest.Redisson: "1", "email": "7"},
	"half a reader":   {"mode": "read", locktest.Redisson: "1", "email": "7"},
	"a mode":          {"mode": "read", "email": "tiger"},
	"no hold count":   {locktest.Redisson: "tiger"},
	"upper case":      {strings.ToUpper(locktest.Redisson): "1"},
	"a million times": nil, // more fields than a script may read
}

// refusesForeign checks that every call about a lock is refused at once, and that no error shows the contents of the
// key.
func refusesForeign(t *testing.T, l *lockkeeper.Lock) {
	t.Helper()
	for call, err := range locktest.Errors(locktest.Within(t), l) {
		locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
		for _, secret := range []string{"email", "tiger", "password", "example", strings.Split(locktest.Redisson, ":")[0]} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s shows %q: %v", call, secret, err)
			}
		}
	}
}

// Every call of every kind refuses a key of another application at once. The key does not change, and no error shows
// its contents.
func TestForeignKey_IsRefusedByEveryCall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for kind, of := range locktest.Kinds {
		for what, fields := range foreign {
			t.Run(kind+"/"+what, func(t *testing.T) {
				t.Parallel()
				k, s := locktest.NewKey(t, server), locktest.Open(t, server.URL(), lockkeeper.Config{})
				if fields == nil {
					k.Do(t, "EVAL", `for i = 1, 20000 do redis.call('HSET', KEYS[1], 'email' .. i, 'tiger') end`, "1", k.Name)
				}
				for field, value := range fields {
					k.Do(t, "HSET", k.Name, field, value)
				}
				before := k.Owners(t)
				refusesForeign(t, of(s, k.LockName))
				if kind != "multi" {
					p := s.Probe(t)
					lock := locktest.KindMessage(kind, k.LockName)
					locktest.ExpectRefusal(t, p, &messages.Acquire{Lock: lock}, messages.Reason_REASON_REJECTED, "WRONGTYPE")
					locktest.ExpectRefusal(t, p, &messages.ForceRelease{Lock: lock}, messages.Reason_REASON_REJECTED, "WRONGTYPE")
					locktest.ExpectRefusal(t, p, &messages.Inspect{Lock: lock}, messages.Reason_REASON_REJECTED, "WRONGTYPE")
				}
				if after := k.Owners(t); !maps.Equal(before, after) || k.TTL(t) >= 0 {
					t.Errorf("the key has become %v", after)
				}
			})
		}
	}
}

// A waiter is refused as soon as another application has taken the key.
func TestForeignKey_EndsWait(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, kind string, of locktest.Kind) {
		a, b, k := locktest.NewTwo(t, lockkeeper.Config{})
		hold := locktest.Acquire(t, locktest.Blocker(kind)(a, k.LockName))
		waiting := locktest.AcquireSoon(t.Context(), of(b, k.LockName))
		locktest.AwaitWaiters(t, of(b, k.LockName), 1)
		k.Do(t, "HSET", k.Name, "email", "tiger")
		locktest.Release(t, hold) // it frees only its own field
		locktest.ExpectEnd(t, waiting, lockkeeper.ErrRejected)
		if got := k.Owners(t); len(got) > 2 || got["email"] != "tiger" {
			t.Errorf("the key has become %v", got)
		}
	})
}

// A RedLock refuses when a majority of its servers has a foreign key. It frees none of them.
func TestForeignKey_OnMajorityRefusesRedLock(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, redConfig)
	p := q.party(t)
	foreign := func(servers ...int) {
		for _, i := range servers {
			q.key(i).Do(t, "HSET", q.key(i).Name, "email", "tiger")
		}
	}
	foreign(0, 1, 2)
	locktest.Fails(p.Lock.Acquire(locktest.Within(t)))(t, lockkeeper.ErrRejected, "WRONGTYPE")
	q.awaitGivenBack(t, 3, 4)
	foreign(3, 4)
	refusesForeign(t, p.Lock)
	for i := range 5 {
		if got := q.key(i).Owners(t); !maps.Equal(got, map[string]string{"email": "tiger"}) {
			t.Errorf("the key has become %v", got)
		}
		q.key(i).Do(t, "DEL", q.key(i).Name)
	}
}

// A server without a vote reports at once that a key is foreign.
func TestForeignKey_IsRefusedByServerWithoutVote(t *testing.T) {
	t.Parallel()
	name, cfg := redistest.Name(t), lockkeeper.Config{Watchdog: time.Hour}
	var systems []*lockkeeper.System
	for range 3 {
		server := redistest.Start(t)
		server.Do(t, "HSET", name, "email", "tiger")
		systems = append(systems, locktest.Open(t, server.URL(), cfg).System)
	}
	red := locktest.Must(lockkeeper.NewRedLock(systems...))(t)
	locktest.Fails(red.Lock(name).Acquire(locktest.Within(t)))(t, lockkeeper.ErrRejected, "WRONGTYPE")
}
