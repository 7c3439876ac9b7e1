package kinds_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
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
				if after := k.Owners(t); !maps.Equal(before, after) || k.Ttl(t) >= 0 {
					t.Errorf("the key has become %v", after)
				}
			})
		}
	}
}

// A waiter is refused as soon as another application has taken the key.
func TestForeignKey_EndsWait(t *testing.T) {
	t.Parallel()
	for kind, of := range locktest.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a, k := locktest.New(t, lockkeeper.Config{})
			b := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
			hold := locktest.Acquire(t, a.ReadWriteLock(k.LockName).Write())
			if kind == "plain" || kind == "fenced" || kind == "fair" || kind == "multi" {
				locktest.Release(t, hold)
				hold = locktest.Acquire(t, of(a, k.LockName))
			}
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
	_, err := p.Lock.Acquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
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

// The queue of a fair lock, and the set of permits that are taken, may belong to another application.
func TestForeignKey_BesideLockIsRefused(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	k.Do(t, "RPUSH", keyspace.Queue(k.Name), "job 1", "job 2")
	ctx := locktest.Within(t)
	_, err := s.FairLock(k.LockName).TryAcquire(ctx)
	locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE", "queue")
	_, err = s.FairLock(k.LockName).ForceRelease(ctx)
	locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE", "queue")
	if n := k.Number(t, "LLEN", keyspace.Queue(k.Name)); n != 2 {
		t.Errorf("%d of 2 entries are left", n)
	}

	permits := locktest.NewKey(t, k.Server)
	permits.Do(t, "SET", permits.Name, "1")
	permits.Do(t, "ZADD", keyspace.Taken(permits.Name), "100", "ann", "200", "bert")
	p := s.ExpirableSemaphore(permits.LockName)
	_, err = p.TryAcquire(ctx)
	locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
	_, err = p.Available(ctx)
	locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
	locktest.IsError(t, p.SetPermits(ctx, 9), lockkeeper.ErrRejected, "WRONGTYPE")
	if n := permits.Number(t, "ZCARD", keyspace.Taken(permits.Name)); n != 2 {
		t.Errorf("%d of 2 members are left", n)
	}
}

// A semaphore, an expirable semaphore and a latch refuse a hash in the same way.
func TestForeignKey_IsRefusedBySynchronizers(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	ctx := locktest.Within(t)
	server := redistest.Shared(t)
	calls := map[string]func(name string) map[string]error{
		"semaphore": func(name string) map[string]error {
			one := s.Semaphore(name)
			_, available := one.Available(ctx)
			_, drain := one.Drain(ctx)
			_, set := one.TrySetPermits(ctx, 3, 0)
			return map[string]error{"Acquire": one.Acquire(ctx, 1), "TryAcquire": one.TryAcquire(ctx, 1), "Release": one.Release(ctx, 1), "Available": available, "Drain": drain, "TrySetPermits": set}
		},
		"permits": func(name string) map[string]error {
			one := s.ExpirableSemaphore(name)
			_, acquire := one.Acquire(ctx)
			_, available := one.Available(ctx)
			return map[string]error{"Acquire": acquire, "Available": available, "SetPermits": one.SetPermits(ctx, 3)}
		},
		"latch": func(name string) map[string]error {
			one := s.Latch(name)
			_, count := one.Count(ctx)
			_, set := one.TrySetCount(ctx, 3)
			return map[string]error{"Wait": one.Wait(ctx), "CountDown": one.CountDown(ctx), "Count": count, "TrySetCount": set}
		},
	}
	for kind, of := range calls {
		t.Run(kind, func(t *testing.T) {
			k := locktest.NewKey(t, server)
			k.Do(t, "HSET", k.Name, "email", "tiger")
			for call, err := range of(k.LockName) {
				if err == nil || strings.Contains(err.Error(), "tiger") {
					t.Errorf("%s: %v", call, err)
					continue
				}
				locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
			}
			if got := k.Owners(t); !maps.Equal(got, map[string]string{"email": "tiger"}) {
				t.Errorf("the key has become %v", got)
			}
		})
	}
}

// A try at a lock with thousands of readers costs as many commands as one at a lock with few.
func TestForeignKey_CheckCostIsConstant(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{})
	costs := map[int]map[string]int{}
	for _, readers := range []int{20, 5000} {
		fields := []string{"HSET", k.Name, "mode", "read"}
		for i := range readers {
			fields = append(fields, strings.TrimSuffix(locktest.Redisson, "57")+strconv.Itoa(i), "1")
		}
		k.Do(t, fields...)
		k.Server.ResetStats(t)
		locktest.ExpectRefused(t, lockkeeper.ErrHeld, s.ReadWriteLock(k.LockName).Write())
		costs[readers] = map[string]int{}
		for command, n := range k.Server.Calls(t) {
			if strings.HasPrefix(command, "h") && command != "hello" {
				costs[readers][command] = int(n)
			}
		}
	}
	if !maps.Equal(costs[20], costs[5000]) {
		t.Errorf("a try costs %v, and with many readers %v", costs[20], costs[5000])
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
	red, err := lockkeeper.NewRedLock(systems...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = red.Lock(name).Acquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
}

// A hold count beyond the integers of Go is refused, and not shown as another number.
func TestInspect_RefusesHoldCountBeyondInt(t *testing.T) {
	t.Parallel()
	s, k0 := locktest.New(t, lockkeeper.Config{})
	for kind, fields := range map[string][]string{
		"plain": {locktest.Redisson}, "fair": {locktest.Redisson}, "read": {"mode", "read", locktest.Redisson}, "write": {"mode", "write", locktest.Redisson + ":write"},
	} {
		for count, fits := range map[string]bool{"999999999999999999": true, "9999999999999999999": false} {
			k := locktest.NewKey(t, k0.Server)
			k.Do(t, append(append([]string{"HSET", k.Name}, fields...), count)...)
			status, err := locktest.Kinds[kind](s, k.LockName).Inspect(locktest.Within(t))
			if fits && (err != nil || strconv.Itoa(status.HoldCount) != count) {
				t.Errorf("%s: %s is shown as %d, %v", kind, count, status.HoldCount, err)
			} else if !fits {
				locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
			}
		}
	}
}
