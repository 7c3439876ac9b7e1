package main

import (
	"sync"

	"github.com/redis/rueidis"
)

// rawReadWrite sends the bare scripts of a read/write lock. Readers join readers, even if
// writers wait; a release that leaves the lock free wakes all waiters.
type rawReadWrite struct {
	*raw
	bell bell
}

// The field mode is the mode of the lock; the other fields are its holders.
var (
	readAcquire = rueidis.NewLuaScript(`
if redis.call('HGET', KEYS[1], 'mode') ~= 'write' then
  redis.call('HSET', KEYS[1], 'mode', 'read', ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return -1
end
return math.max(redis.call('PTTL', KEYS[1]), 0)`)
	writeAcquire = rueidis.NewLuaScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'mode', 'write', ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return -1
end
return math.max(redis.call('PTTL', KEYS[1]), 0)`)
	readWriteRelease = rueidis.NewLuaScript(`
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  return -1
end
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', KEYS[2], '0')
end
return 1`)
)

func (l *rawReadWrite) acquire(name string) (func() error, error) { return l.lock(writeAcquire, name) }

func (l *rawReadWrite) read(name string) (func() error, error) { return l.lock(readAcquire, name) }

func (l *rawReadWrite) lock(script *rueidis.Lua, name string) (func() error, error) {
	owner, keys := l.owner(), []string{name, channel(name)}
	for {
		rung := l.bell.next()
		if n, err := l.run(script, keys, owner); err != nil {
			return nil, err
		} else if n < 0 {
			return l.release(readWriteRelease, keys, owner), nil
		}
		<-rung
	}
}

// A bell wakes all goroutines that wait for its next ring.
type bell struct {
	mu   sync.Mutex
	rung chan struct{} // closed by the next ring; nil without waiters
}

func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
