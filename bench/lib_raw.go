package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// raw sends the bare scripts of a hash lock. With contention, one goroutine of each
// process tries, woken by the message of a release; the others wait for it in the
// process. It is a lower bound, not a usable lock: it has no re-entry, and hangs if a
// message is lost.
type raw struct {
	client  rueidis.Client
	prefix  string // of owners
	lease   string
	last    atomic.Int64
	turn    chan struct{} // held by the goroutine that tries; nil without contention
	freed   chan struct{} // not empty when a release was published
	renewal renewal
}

// A script of acquire returns a negative number when it grants.
var (
	rawAcquire = rueidis.NewLuaScript(`
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return -1
end
return math.max(redis.call('PTTL', KEYS[1]), 0)`)
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
)

func openRaw(addr string, lease time.Duration, s scenario) (library, error) {
	if s.kind == semaphore {
		return openRawSemaphore(addr, s)
	}
	l, err := newRaw(addr, lease)
	if err != nil || !s.oneKey {
		return l, err
	}
	l.turn, l.freed = make(chan struct{}, 1), make(chan struct{}, 1)
	return l, listen(addr, channel(theKey), func(string) {
		select {
		case l.freed <- struct{}{}:
		default:
		}
	})
}

func newRaw(addr string, lease time.Duration) (*raw, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	return &raw{client: client, prefix: strconv.Itoa(os.Getpid()), lease: strconv.FormatInt(lease.Milliseconds(), 10)}, err
}

func channel(name string) string { return "channel:{" + name + "}" }

// listen calls received with every message of a channel. It returns when Redis has
// confirmed the subscription.
func listen(addr, channel string, received func(message string)) error {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return err
	}
	subscriber, _ := client.Dedicate()
	subscriber.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { received(m.Message) }})
	return subscriber.Do(context.Background(), subscriber.B().Subscribe().Channel(channel).Build()).Error()
}

func (l *raw) owner() string { return l.prefix + ":" + strconv.FormatInt(l.last.Add(1), 10) }

func (l *raw) run(script *rueidis.Lua, keys []string, owner string) (int64, error) {
	return script.Exec(context.Background(), l.client, keys, []string{owner, l.lease}).AsInt64()
}

func (l *raw) acquire(name string) (func() error, error) {
	owner, keys := l.owner(), []string{name, channel(name)}
	if l.turn == nil {
		if n, err := l.run(rawAcquire, keys, owner); err != nil || n >= 0 {
			return nil, errors.Join(err, fmt.Errorf("raw: %s is held", name))
		}
		return l.release(rawRelease, keys, owner), nil
	}
	l.turn <- struct{}{}
	for held := true; held; {
		select {
		case <-l.freed: // before this try
		default:
		}
		n, err := l.run(rawAcquire, keys, owner)
		if err != nil {
			return nil, err
		}
		if held = n >= 0; held {
			<-l.freed
		}
	}
	release := l.release(rawRelease, keys, owner)
	return func() error {
		defer func() { <-l.turn }()
		return release()
	}, nil
}

func (l *raw) release(script *rueidis.Lua, keys []string, owner string) func() error {
	return func() error {
		n, err := l.run(script, keys, owner)
		if err == nil && n < 0 {
			err = errors.New("raw: lost " + keys[0])
		}
		return err
	}
}
