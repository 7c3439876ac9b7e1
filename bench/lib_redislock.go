package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

type redisLock struct {
	client *redislock.Client
	lease  time.Duration
}

func openRedislock(addr string, lease time.Duration, _ scenario) (library, error) {
	return redisLock{redislock.New(redis.NewClient(&redis.Options{Addr: addr})), lease}, nil
}

// lock tries again when Obtain gives up, which it does after the lease without a deadline of the context.
func (l redisLock) lock(name string) (*redislock.Lock, error) {
	for {
		lock, err := l.client.Obtain(context.Background(), name, l.lease,
			&redislock.Options{RetryStrategy: redislock.LinearBackoff(retryDelay)})
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, redislock.ErrNotObtained) {
			return lock, err
		}
	}
}

func (l redisLock) acquire(name string) (func() error, error) {
	lock, err := l.lock(name)
	if err != nil {
		return nil, err
	}
	return func() error { return lock.Release(context.Background()) }, nil
}

func (l redisLock) hold(name string) error {
	lock, err := l.lock(name)
	if err != nil {
		return err
	}
	keep(l.lease, func() error { return lock.Refresh(context.Background(), l.lease, nil) })
	return nil
}
