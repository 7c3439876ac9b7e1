package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// raw sends the bare scripts of a hash lock: the floor for every lock that goes to
// Redis for each grant. Where several contend, they queue in a list in Redis, and the
// release hands on to the first. It is a probe, not a lock: it does not survive the
// death of a waiter, and it re-enters nothing.
type raw struct {
	client  rueidis.Client
	queue   bool
	process string // also the channel of its grants
	lease   string
	last    atomic.Int64
	waiting sync.Map // owner -> chan struct{}, closed by the grant
	mu      sync.Mutex
	held    []rueidis.LuaExec
}

var (
	rawAcquire = rueidis.NewLuaScript(`
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return -1
end
return redis.call('PTTL', KEYS[1])`)
	rawRelease = rueidis.NewLuaScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return -1
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], '0')
return 1`)
	rawRenew = rueidis.NewLuaScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`)
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

func openRaw(addr string, lease time.Duration, queue bool) (library, error) {
	option := rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, err
	}
	l := &raw{client: client, queue: queue, process: strconv.Itoa(os.Getpid()), lease: strconv.FormatInt(lease.Milliseconds(), 10)}
	if queue {
		return l, l.listen(option)
	}
	return l, nil
}

// listen takes the grants that come for this process.
func (l *raw) listen(option rueidis.ClientOption) error {
	client, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	subscriber, _ := client.Dedicate()
	subscriber.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) {
		granted, _ := l.waiting.LoadAndDelete(m.Message)
		close(granted.(chan struct{}))
	}})
	return subscriber.Do(context.Background(), subscriber.B().Subscribe().Channel(l.process).Build()).Error()
}

func (l *raw) owner() string { return l.process + ":" + strconv.FormatInt(l.last.Add(1), 10) }

func (l *raw) acquire(name string) (func() error, error) {
	owner := l.owner()
	acquire, release, second := rawAcquire, rawRelease, "channel:{"+name+"}"
	var granted chan struct{}
	if l.queue {
		acquire, release, second = queueAcquire, queueRelease, "queue:{"+name+"}"
		granted = make(chan struct{})
		l.waiting.Store(owner, granted)
	}
	n, err := acquire.Exec(context.Background(), l.client, []string{name, second}, []string{owner, l.lease}).AsInt64()
	switch {
	case err != nil:
		return nil, err
	case n < 0:
		l.waiting.Delete(owner)
	case l.queue:
		<-granted
	default:
		return nil, fmt.Errorf("raw: %s is held, and waiting is for the queue", name)
	}
	return func() error {
		n, err := release.Exec(context.Background(), l.client, []string{name, second}, []string{owner, l.lease}).AsInt64()
		if err == nil && n < 0 {
			err = errors.New("raw: lost " + name)
		}
		return err
	}, nil
}

// hold has one goroutine renew all locks, 100 in a batch of commands.
func (l *raw) hold(name string) error {
	owner := l.owner()
	n, err := rawAcquire.Exec(context.Background(), l.client, []string{name}, []string{owner, l.lease}).AsInt64()
	if err != nil || n >= 0 {
		return errors.Join(err, fmt.Errorf("raw: %s is held", name))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, rueidis.LuaExec{Keys: []string{name}, Args: []string{owner, l.lease}})
	if len(l.held) == 1 {
		ms, _ := strconv.Atoi(l.lease)
		go l.renew(time.Duration(ms) * time.Millisecond / 3)
	}
	return nil
}

func (l *raw) renew(every time.Duration) {
	for {
		start := time.Now()
		l.mu.Lock()
		held := l.held[:len(l.held):len(l.held)]
		l.mu.Unlock()
		const batch = 100
		for i := 0; i < len(held); i += batch {
			for _, answer := range rawRenew.ExecMulti(context.Background(), l.client, held[i:min(i+batch, len(held))]...) {
				if n, err := answer.AsInt64(); err != nil || n == 0 {
					fail(errors.Join(err, errors.New("raw: lost a lock")))
				}
			}
			// The batches are spread over the interval.
			time.Sleep(time.Until(start.Add(every * time.Duration(i+batch) / time.Duration(max(len(held), batch)))))
		}
	}
}
