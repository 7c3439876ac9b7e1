package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type rueidisLock struct{ locker rueidislock.Locker }

func openRueidislock(addr string, lease time.Duration, _ scenario) (library, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:    1,
		NoLoopTracking: true,
		KeyValidity:    lease,
	})
	return rueidisLock{locker}, err
}

func (l rueidisLock) acquire(name string) (func() error, error) {
	_, release, err := l.locker.WithContext(context.Background(), name)
	if err != nil {
		return nil, err
	}
	return func() error { release(); return nil }, nil
}

func (l rueidisLock) hold(name string) error {
	_, err := l.acquire(name)
	return err
}
