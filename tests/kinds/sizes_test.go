package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// sized is a lock on a server whose work is measured.
type sized struct {
	locktest.Key
	*locktest.Site
}

const (
	// most is how long the server may compute for a few calls: reading a large value in full takes several times as long.
	most = 20 * time.Millisecond
	// large is the length of a value in bytes, and many the number of entries.
	large = 24 << 20
	many  = 60_000
)

func newSized(t *testing.T, server *redistest.Server) sized {
	return sized{locktest.NewKey(t, server), locktest.Open(t, server.URL(), lockkeeper.Config{Watchdog: time.Hour, CallTimeout: time.Minute})}
}

// put runs a script that writes the data of another application; ARGV[1] is a large value.
func (s sized) put(t *testing.T, script string, keys ...string) {
	t.Helper()
	s.Atomically(t, "local large, many = string.rep('1', "+fmt.Sprint(large)+"), "+fmt.Sprint(many)+"\n"+script, keys)
}

// quick does something, for which the server must not compute for long.
func (s sized) quick(t *testing.T, what string, do func()) {
	t.Helper()
	before := s.computed(t)
	do()
	if took := s.computed(t) - before; took > most {
		t.Errorf("%s: Redis computes for %v", what, took)
	}
}

// computed is the processor time of the server's main thread.
func (s sized) computed(t *testing.T) (sum time.Duration) {
	t.Helper()
	for line := range strings.Lines(locktest.Must(s.Do(t, "INFO", "cpu").ToString())(t)) {
		var seconds float64
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if strings.HasSuffix(name, "_main_thread") {
			locktest.Must(fmt.Sscan(value, &seconds))(t)
			sum += time.Duration(seconds * float64(time.Second))
		}
	}
	return sum
}

// No call about a lock reads large foreign keys under its names in full, and all are refused.
func TestForeignKey_LargeValuesAreNotRead(t *testing.T) {
	server := redistest.Start(t)
	const owner = "'" + locktest.Redisson + "'"
	for what, script := range map[string]string{
		"a large count":       `redis.call('HSET', KEYS[1], ` + owner + `, large)`,
		"a large mode":        `redis.call('HSET', KEYS[1], 'mode', large, ` + owner + `, 1)`,
		"a large reader":      `redis.call('HSET', KEYS[1], 'mode', 'read', ` + owner + `, large)`,
		"many foreign fields": `for i = 1, many do redis.call('HSET', KEYS[1], i, 1) end`,
		"large entries": `redis.call('HSET', KEYS[1], ` + owner + `, 1) for i = 1, 40 do
			local entry = string.sub(large, 1, 500000) .. i
			redis.call('RPUSH', KEYS[2], entry) redis.call('ZADD', KEYS[3], 9e15, entry) end`,
		"large wait queue": `redis.call('HSET', KEYS[1], 'email', 1) redis.call('SET', KEYS[4], large)
			redis.call('SET', KEYS[5], large) redis.call('SET', KEYS[6], large)`,
	} {
		t.Run(what, func(t *testing.T) {
			s := newSized(t, server)
			s.put(t, script, s.Name, keyspace.Queue(s.Name), keyspace.Timeouts(s.Name), keyspace.WaitQueue(s.Name), keyspace.Token(s.Name), keyspace.ReadWriteQueue(s.Name))
			for kind, of := range locktest.Kinds {
				if what == "large entries" && kind != "fair" {
					continue // they wait for the owner
				}
				site := newSized(t, server).Site // in another, the name may still be in use as another kind
				s.quick(t, kind, func() {
					for call, err := range locktest.Errors(locktest.Within(t), of(site, s.LockName)) {
						if inspects := what == "large entries" && call == "Inspect"; !inspects {
							locktest.IsError(t, err, lockkeeper.ErrRejected, "WRONGTYPE")
						}
					}
				})
			}
			s.Do(t, "UNLINK", s.Name, keyspace.Queue(s.Name), keyspace.Timeouts(s.Name), keyspace.WaitQueue(s.Name), keyspace.Token(s.Name), keyspace.ReadWriteQueue(s.Name))
		})
	}
}

// Long queues are not read in full: requests are refused, and holds still end.
func TestWaitQueue_IsNotReadInFull(t *testing.T) {
	server := redistest.Start(t)
	entry := `string.format('%08x-6b1d-4a53-9a5e-2f4b7c1d0e88', i)`
	t.Run("wait queue", func(t *testing.T) {
		for _, kind := range append(locktest.Words(locktest.HasWaitQueue, locktest.Exclusive), "multi") {
			of, s := locktest.Kinds[kind], newSized(t, server)
			hold := locktest.Acquire(t, of(s.Site, s.LockName))
			other := newSized(t, server).Site
			s.put(t, `local now = redis.call('TIME')[1] .. '000000'
				for i = 1, many do redis.call('HSET', KEYS[1], `+entry+`, now .. ' ' .. now .. ' 3600000 7 1 0 0 1') end`, locktest.WaitQueue(kind, s.Name))
			s.quick(t, kind+", TryAcquire", func() {
				if _, err := of(other, s.LockName).TryAcquire(locktest.Within(t)); err == nil {
					t.Errorf("%s: a lock that is held was acquired", kind)
				}
			})
			s.quick(t, kind+", Acquire", func() {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				if _, err := of(other, s.LockName).Acquire(ctx); err == nil {
					t.Errorf("%s: a lock that is held was acquired", kind)
				}
			})
			released := error(nil)
			s.quick(t, kind+", Release", func() {
				if hold != nil {
					released = hold.Release(locktest.Within(t))
					hold = nil
				}
			})
			if released != nil || s.Exists(t) {
				t.Errorf("%s: a release ended with %v, and the key is there: %v", kind, released, s.Exists(t))
			}
			s.Do(t, "UNLINK", locktest.WaitQueue(kind, s.Name))
		}
	})
	t.Run("fair", func(t *testing.T) {
		s := newSized(t, server)
		s.put(t, `for i = 1, many do
			local owner = `+entry+` .. ':1'
			redis.call('RPUSH', KEYS[1], owner)
			redis.call('ZADD', KEYS[2], 9e15, owner)
		end`, keyspace.Queue(s.Name), keyspace.Timeouts(s.Name))
		l := s.FairLock(s.LockName)
		s.quick(t, "a fair lock", func() {
			locktest.Fails(l.TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrRejected, "WRONGTYPE", "queue", fmt.Sprint(many))
			if status, err := l.Inspect(locktest.Within(t)); err != nil || status.Subscribers != many {
				t.Errorf("%+v, %v", status, err)
			}
			locktest.ForceRelease(t, l, false)
			locktest.Fails(lockkeeper.MultiLock(l, s.Lock(s.LockName+" too")).TryAcquire(locktest.Within(t)))(t, lockkeeper.ErrRejected, "WRONGTYPE", "queue")
		})
	})
	t.Run("readers", func(t *testing.T) {
		s := newSized(t, server)
		l := s.ReadWriteLock(s.LockName)
		hold := locktest.Acquire(t, l.Read())
		s.put(t, `for i = 1, many do redis.call('HSET', KEYS[1], `+entry+` .. ':1', 1) end`, s.Name)
		s.quick(t, "Inspect", func() {
			if status, err := l.Read().Inspect(locktest.Within(t)); err != nil || status.Holders != many+1 {
				t.Errorf("%d holders, %v", status.Holders, err)
			}
		})
		s.quick(t, "readers come and go", func() { locktest.ExpectGranted(t, l.Read()) })
		s.quick(t, "the end of the first reader", func() {
			if hold != nil {
				locktest.Release(t, hold)
				hold = nil
			}
		})
	})
}

// Of a value that should be a number only the beginning is read, and of the taken permits only as many as can be
// freed.
func TestForeignNumber_IsNotReadInFull(t *testing.T) {
	server := redistest.Start(t)
	refused := func(t *testing.T, s sized, what string, calls ...func(ctx context.Context) error) {
		t.Helper()
		for i, call := range calls {
			s.quick(t, fmt.Sprint(what, ", call ", i), func() { locktest.IsError(t, call(locktest.Within(t)), lockkeeper.ErrRejected) })
		}
	}
	second := func(f func(context.Context) (int, error)) func(context.Context) error {
		return func(ctx context.Context) error { _, err := f(ctx); return err }
	}
	t.Run("number", func(t *testing.T) {
		s := newSized(t, server)
		s.put(t, `redis.call('SET', KEYS[1], large)`, s.Name)
		semaphore, permits, latch := s.Semaphore(s.LockName), s.ExpirableSemaphore(s.LockName+" too"), s.Latch(s.LockName+" 3")
		s.put(t, `redis.call('SET', KEYS[1], large) redis.call('SET', KEYS[2], large)`, s.Name+" too", s.Name+" 3")
		refused(t, s, "semaphore", func(ctx context.Context) error { return semaphore.TryAcquire(ctx, 1) },
			func(ctx context.Context) error { return semaphore.Release(ctx, 1) }, second(semaphore.Available))
		refused(t, s, "permits", func(ctx context.Context) error { _, err := permits.TryAcquire(ctx); return err },
			func(ctx context.Context) error { return permits.SetPermits(ctx, 3) }, second(permits.Available))
		refused(t, s, "latch", func(ctx context.Context) error { return latch.CountDown(ctx) }, func(ctx context.Context) error { return latch.Wait(ctx) })
		s.Do(t, "UNLINK", s.Name, s.Name+" too", s.Name+" 3")
	})
	t.Run("token", func(t *testing.T) {
		s := newSized(t, server)
		s.put(t, `redis.call('SET', KEYS[1], large)`, keyspace.Token(s.Name))
		refused(t, s, "fenced", func(ctx context.Context) error { _, err := s.FencedLock(s.LockName).TryAcquire(ctx); return err })
		s.Do(t, "UNLINK", keyspace.Token(s.Name))
	})
	t.Run("last command", func(t *testing.T) {
		s := newSized(t, server)
		s.Do(t, "SET", s.Name, "3")
		locktest.OK(t, s.Semaphore(s.LockName).TryAcquire(locktest.Within(t), 1))
		record := server.Keys(t, keyspace.Calls(s.Name)+":*")[0]
		s.put(t, `redis.call('SET', KEYS[1], large)`, record)
		refused(t, s, "semaphore", func(ctx context.Context) error { return s.Semaphore(s.LockName).TryAcquire(ctx, 1) })
		s.Do(t, "UNLINK", record)
	})
	t.Run("taken", func(t *testing.T) {
		s := newSized(t, server)
		s.put(t, `redis.call('SET', KEYS[1], 0)
			for i = 1, 40 do redis.call('ZADD', KEYS[2], 5, string.sub(large, 1, 500000) .. i) end`, s.Name, keyspace.Taken(s.Name))
		refused(t, s, "permits", func(ctx context.Context) error {
			_, err := s.ExpirableSemaphore(s.LockName).TryAcquire(ctx)
			return err
		}, second(s.ExpirableSemaphore(s.LockName).Available))
		s.Do(t, "UNLINK", keyspace.Taken(s.Name))
		s.put(t, `for i = 1, many do redis.call('ZADD', KEYS[1], 1, string.format('%016d', i)) end`, keyspace.Taken(s.Name))
		p := s.ExpirableSemaphore(s.LockName)
		s.quick(t, "expired permits", func() {
			if _, err := p.TryAcquire(locktest.Within(t)); err != nil && !errors.Is(err, lockkeeper.ErrHeld) {
				t.Error(err)
			}
		})
		if n, err := p.Available(locktest.Within(t)); err != nil || n < many-10 {
			t.Errorf("%d permits are free, %v", n, err)
		}
	})
}
