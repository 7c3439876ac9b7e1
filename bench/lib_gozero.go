//go:build gozero

package main

import (
	"context"
	"errors"
	"time"

	"github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

const withGoZero = true

type goZero struct {
	store *redis.Redis
	lease time.Duration
}

func openGoZero(addr string, lease time.Duration, _ scenario) (library, error) {
	logx.Disable() // its statistics go to the standard output
	store, err := redis.NewRedis(redis.RedisConf{Host: addr, Type: redis.NodeType})
	return goZero{store, lease}, err
}

// retryUntilGranted tries again after a refusal, and after an error of the circuit breaker, which
// opens if many goroutines get a NOSCRIPT from a fresh Redis.
func retryUntilGranted(ask func(context.Context) (bool, error)) error {
	for {
		ok, err := ask(context.Background())
		if ok || err != nil && !errors.Is(err, breaker.ErrServiceUnavailable) {
			return err
		}
		time.Sleep(retryDelay)
	}
}

func (l goZero) lock(name string) (*redis.RedisLock, error) {
	lock := redis.NewRedisLock(l.store, name)
	lock.SetExpire(int(l.lease.Seconds()))
	return lock, retryUntilGranted(lock.AcquireCtx)
}

func (l goZero) acquire(name string) (func() error, error) {
	lock, err := l.lock(name)
	if err != nil {
		return nil, err
	}
	return func() error { return retryUntilGranted(lock.ReleaseCtx) }, nil
}

// hold renews by acquiring again, which resets the expiry for the same owner.
func (l goZero) hold(name string) error {
	lock, err := l.lock(name)
	if err != nil {
		return err
	}
	keep(l.lease, func() error {
		ok, err := lock.AcquireCtx(context.Background())
		if err == nil && !ok {
			err = errors.New("go-zero lost a lock")
		}
		return err
	})
	return nil
}
