package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	poolrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

type redSync struct {
	locks *redsync.Redsync
	lease time.Duration
}

func openRedsync(addr string, lease time.Duration, _ scenario) (library, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		return nil, err
	}
	return redSync{redsync.New(poolrueidis.NewPool(rueidiscompat.NewAdapter(client))), lease}, nil
}

func (l redSync) lock(name string) (*redsync.Mutex, error) {
	m := l.locks.NewMutex(name, redsync.WithExpiry(l.lease),
		redsync.WithTries(math.MaxInt), redsync.WithRetryDelay(retryDelay))
	return m, m.LockContext(context.Background())
}

func (l redSync) acquire(name string) (func() error, error) {
	m, err := l.lock(name)
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := m.UnlockContext(context.Background())
		return err
	}, nil
}

func (l redSync) hold(name string) error {
	m, err := l.lock(name)
	if err != nil {
		return err
	}
	keep(l.lease, func() error {
		ok, err := m.ExtendContext(context.Background())
		if err == nil && !ok {
			err = errors.New("redsync lost a lock")
		}
		return err
	})
	return nil
}
