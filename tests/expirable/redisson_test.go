package expirable_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The commands of Redisson on permits, step by step, with its clock: KEYS are the number of free permits and the
// taken ones, ARGV the channel, the id, the time, and when the permit is to expire.
const redissonReclaim = `
local expired = redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[3])
if #expired > 0 then
  redis.call('ZREM', KEYS[2], unpack(expired))
  local free = redis.call('INCRBY', KEYS[1], #expired)
  if free > 0 then
    redis.call('PUBLISH', ARGV[1], free)
  end
end
`

const redissonAcquire = redissonReclaim + `
local free = redis.call('GET', KEYS[1])
if free and tonumber(free) >= 1 then
  redis.call('DECRBY', KEYS[1], 1)
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[2])
  return 'OK'
end
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
return first[2] and first[2] ~= '922337203685477' and ':' .. first[2] or 'wait'
`

const redissonRelease = `
local ends = redis.call('ZSCORE', KEYS[2], ARGV[2])
if redis.call('ZREM', KEYS[2], ARGV[2]) == 0 then
  return 'gone'
end
redis.call('PUBLISH', ARGV[1], redis.call('INCRBY', KEYS[1], 1))
return tonumber(ends) <= tonumber(ARGV[3]) and 'late' or 'released'
`

type redisson struct {
	*redistest.Server
	name string
	// fast is by how much the clock is fast.
	fast time.Duration
}

// run runs one of Redisson's scripts; a permit with a lease of 0 never expires.
func (r redisson) run(t *testing.T, script, id string, lease time.Duration) string {
	t.Helper()
	raw, err := hex.DecodeString(id)
	now := time.Now().Add(r.fast).UnixMilli()
	ends := int64(922337203685477)
	if lease > 0 {
		ends = now + lease.Milliseconds()
	}
	reply, err2 := r.Do(
		t, "EVAL", script, "2", r.name, keyspace.Taken(r.name), keyspace.PermitsChannel(r.name), string(raw),
		strconv.FormatInt(now, 10), strconv.FormatInt(ends, 10),
	).ToString()
	locktest.OK(t, errors.Join(err, err2))
	return reply
}

// Clients of Redisson and of Lockkeeper share permits: each counts and releases the permits of the other, is woken by
// it, and finds ids, times and payloads in its own format.
func TestExpirable_SharesPermitsWithRedisson(t *testing.T) {
	t.Parallel()
	const javas = "000102030405060708090a0b0c0d0e0f"
	server, name := redistest.Start(t), redistest.Name(t)
	java := redisson{Server: server, name: name}
	s, p := open(t, server.URL(), name, 2, lockkeeper.Config{Poll: time.Hour, Watchdog: 2 * time.Minute, Renewal: 200 * time.Millisecond})
	published := make(chan string, 100)
	listener, giveBack := server.Client(t).Dedicate()
	defer giveBack()
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { published <- m.Message }})
	locktest.OK(t, listener.Do(t.Context(), listener.B().Subscribe().Channel("redisson_sc:{"+name+"}").Build()).Error())
	is := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	is(java.run(t, redissonAcquire, javas, 0), "OK")
	awaitPermits(t, p, 1, 1)
	ours := acquire(t, p)
	before := time.Now().UnixMilli()
	refusal, ends := java.run(t, redissonAcquire, "ff"+javas[2:], time.Minute), int64(0)
	if _, err := fmt.Sscanf(refusal, ":%d", &ends); err != nil || len(refusal) != 14 || ends < before || ends > before+240_000 {
		t.Errorf("Redisson gets %q", refusal)
	}
	waiter := acquireSoon(locktest.Within(t), p)
	s.AwaitWaiting(t, 1)
	server.AwaitSubscribers(t, "redisson_sc:{"+name+"}", 2)
	is(java.run(t, redissonRelease, javas, 0), "released")
	locktest.Check(t, locktest.Await(t, "the permit", waiter))
	is(locktest.Await(t, "a message", published), "1") // Redisson's
	is(locktest.Await(t, "a message", published), "1") // ours: one permit is free
	is(java.run(t, redissonRelease, ours.ID(), 0), "released")
	locktest.Await(t, "the loss", ours.Context().Done())
	locktest.Equal(t, locktest.IsError(t, ours.Err(), lockkeeper.ErrLost), messages.Reason_REASON_GONE, "lost because of %v")
	is(java.run(t, redissonAcquire, javas, time.Minute), "OK")
	locktest.Check(t, p.ReleaseID(locktest.Within(t), javas))
	is(java.run(t, redissonRelease, javas, 0), "gone")
	is(java.run(t, redissonAcquire, javas, time.Millisecond), "OK")
	redistest.Eventually(t, "the end of Redisson's lease", func() bool {
		permit, err := p.TryAcquire(locktest.Within(t))
		another, err2 := p.TryAcquire(locktest.Within(t))
		if err == nil {
			release(t, permit)
		}
		if err2 == nil {
			release(t, another)
		}
		return err == nil && err2 == nil
	})
	awaitPermits(t, p, 2, 0)
}

// A client of Redisson's with a fast clock takes our permit before it expires: we notify its holder.
func TestExpirable_ReportsLossToAFastClock(t *testing.T) {
	t.Parallel()
	server, name := redistest.Shared(t), redistest.Name(t)
	_, p := open(t, server.URL(), name, 1, lockkeeper.Config{Renewal: 200 * time.Millisecond})
	ours := acquire(t, p)
	locktest.Equal(t, (redisson{server, name, time.Hour}).run(t, redissonAcquire, "000102030405060708090a0b0c0d0e0f", time.Minute), "OK", "Redisson gets %q")
	locktest.Await(t, "the loss", ours.Context().Done())
	locktest.IsError(t, ours.Release(locktest.Within(t)), lockkeeper.ErrLost)
	awaitPermits(t, p, 0, 1)
}

// A granted permit is on the replica. While no replica is reachable, no permit is granted, and none stays taken.
func TestExpirable_GrantsAreOnTheReplica(t *testing.T) {
	t.Parallel()
	master, name := redistest.Start(t), redistest.Name(t)
	replica, link := redistest.ReplicaBehind(t, master)
	_, p := open(t, master.URL(), name, 2, lockkeeper.Config{Replicas: 1, ReplicaTimeout: 100 * time.Millisecond})
	link.Delay(30 * time.Millisecond)
	permit := acquire(t, p)
	if len(expiries(t, replica, name)) != 1 {
		t.Error("granted, and the permit is not on the replica")
	}
	link.Delay(0)
	release(t, permit)
	permit = acquire(t, p)
	link.Freeze(true)
	locktest.IsError(t, permit.Extend(locktest.Within(t), time.Hour), lockkeeper.ErrNotReplicated)
	if left := permit.Left(); left > time.Minute {
		t.Errorf("%v are left after an extension that no replica has confirmed", left)
	}
	locktest.Fails(p.TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrNotReplicated)
	locktest.Fails(p.Acquire(locktest.Within(t), lockkeeper.WithWait(time.Second)))(t, lockkeeper.ErrNotReplicated, "0 of the 1 replicas")
	awaitPermits(t, p, 1, 1)
	link.Freeze(false)
	release(t, permit, acquire(t, p))
}
