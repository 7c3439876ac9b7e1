package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
)

// ourSemaphore is Lockkeeper's.
type ourSemaphore struct{ *lockkeeper.Semaphore }

func openSemaphore(system *lockkeeper.System, s scenario) (library, error) {
	semaphore := system.Semaphore(theKey)
	_, err := semaphore.TrySetPermits(context.Background(), s.permits, 0)
	return ourSemaphore{semaphore}, err
}

func (l ourSemaphore) acquire(string) (func() error, error) {
	if err := l.Acquire(context.Background(), 1); err != nil {
		return nil, err
	}
	return func() error { return l.Release(context.Background(), 1) }, nil
}

func (ourSemaphore) hold(string) error { return errors.New("permits have no lease") }

// rawSemaphore sends the bare scripts of a counter, one for each acquire and each release of a permit.
// In each process as many goroutines contend as there are permits.
type rawSemaphore struct {
	client rueidis.Client
	turn   chan struct{} // one element for each goroutine that contends or has a permit
	freed  chan struct{} // not empty when a release was published
}

var (
	rawTake = rueidis.NewLuaScript(`
local free = tonumber(redis.call('GET', KEYS[1]) or 0)
if free < 1 then
  return 0
end
redis.call('DECRBY', KEYS[1], 1)
return 1`)
	rawGive = rueidis.NewLuaScript(`
redis.call('PUBLISH', KEYS[2], redis.call('INCRBY', KEYS[1], 1))
return 1`)
)

func openRawSemaphore(addr string, s scenario) (library, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return nil, err
	}
	l := &rawSemaphore{client: client, turn: make(chan struct{}, s.permits), freed: make(chan struct{}, s.permits)}
	err = client.Do(context.Background(), client.B().Set().Key(theKey).Value(strconv.Itoa(s.permits)).Nx().Build()).Error()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, err
	}
	return l, listen(addr, channel(theKey), func(string) {
		select {
		case l.freed <- struct{}{}:
		default:
		}
	})
}

func (l *rawSemaphore) acquire(name string) (func() error, error) {
	keys := []string{name, channel(name)}
	l.turn <- struct{}{}
	for {
		n, err := rawTake.Exec(context.Background(), l.client, keys, nil).AsInt64()
		if err != nil {
			return nil, err
		}
		if n == 1 {
			return func() error {
				defer func() { <-l.turn }()
				return rawGive.Exec(context.Background(), l.client, keys, nil).Error()
			}, nil
		}
		<-l.freed
	}
}

func (l *rawSemaphore) hold(string) error { return errors.New("permits have no lease") }

// setSemaphore is a common recipe without a library: a sorted set of the holders of permits, by expiry,
// and a try every retryDelay.
type setSemaphore struct {
	client  *redis.Client
	lease   time.Duration
	permits int
}

var (
	setTake = redis.NewScript(`
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
return 1`)
)

func openSetSemaphore(addr string, lease time.Duration, s scenario) (library, error) {
	return setSemaphore{redis.NewClient(&redis.Options{Addr: addr}), lease, s.permits}, nil
}

func (l setSemaphore) acquire(name string) (func() error, error) {
	ctx, id := context.Background(), uuid.NewString()
	for {
		now := time.Now()
		n, err := setTake.Run(ctx, l.client, []string{name}, now.UnixMilli(), l.permits, now.Add(l.lease).UnixMilli(), id).Int()
		if err != nil {
			return nil, err
		}
		if n == 1 {
			return func() error { return l.client.ZRem(ctx, name, id).Err() }, nil
		}
		time.Sleep(retryDelay)
	}
}

func (setSemaphore) hold(string) error { return errors.New("the recipe renews nothing") }

// listSemaphore is the other common recipe: a list of tokens, from which users pop with BLPOP, which
// waits in Redis on a connection for each.
type listSemaphore struct{ client *redis.Client }

var listFill = redis.NewScript(`
if redis.call('SETNX', KEYS[2], '1') == 1 then
  for i = 1, ARGV[1] do
    redis.call('LPUSH', KEYS[1], i)
  end
end
return 1`)

func openListSemaphore(addr string, _ time.Duration, s scenario) (library, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: s.goroutines + 1})
	return listSemaphore{client}, listFill.Run(context.Background(), client, []string{theKey, theKey + "-filled"}, s.permits).Err()
}

func (l listSemaphore) acquire(name string) (func() error, error) {
	ctx := context.Background()
	popped, err := l.client.BLPop(ctx, 0, name).Result()
	if err != nil {
		return nil, err
	}
	return func() error { return l.client.LPush(ctx, name, popped[1]).Err() }, nil
}

func (listSemaphore) hold(string) error { return errors.New("the recipe renews nothing") }
