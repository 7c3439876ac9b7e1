package main

import (
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// rawQueue queues the waiters of all processes in a list in Redis, and a release hands the
// lock to the first. It does not survive the death of a waiter.
type rawQueue struct {
	*raw
	waiting sync.Map // owner -> chan struct{}, closed by the grant
}

var (
	queueAcquire = rueidis.NewLuaScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return -1
end
return redis.call('RPUSH', KEYS[2], ARGV[1])`)
	queueRelease = rueidis.NewLuaScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return -1
end
redis.call('DEL', KEYS[1])
local next = redis.call('LPOP', KEYS[2])
if next then
  redis.call('HINCRBY', KEYS[1], next, 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('PUBLISH', string.match(next, '^[^:]*'), next)
end
return 1`)
)

func openRawQueue(addr string, lease time.Duration, _ scenario) (library, error) {
	l, err := newRaw(addr, lease)
	if err != nil {
		return nil, err
	}
	q := &rawQueue{raw: l}
	return q, listen(addr, l.prefix, func(owner string) {
		granted, _ := q.waiting.LoadAndDelete(owner)
		close(granted.(chan struct{}))
	})
}

func (l *rawQueue) acquire(name string) (func() error, error) {
	owner, keys, granted := l.owner(), []string{name, "queue:{" + name + "}"}, make(chan struct{})
	l.waiting.Store(owner, granted)
	n, err := l.run(queueAcquire, keys, owner)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		l.waiting.Delete(owner)
	} else {
		<-granted
	}
	return l.release(queueRelease, keys, owner), nil
}
