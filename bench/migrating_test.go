package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// go-zero starts goroutines as soon as it is imported.
func TestMain(m *testing.M) { redistest.Main(m, goleak.IgnoreCurrent()) }

// docs/migrating.md says what happens while processes with another library and processes with this one use locks of the
// same names.
func TestMigrating_OtherLibrariesExcludeEachOther(t *testing.T) {
	server := redistest.Shared(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	sys, err := lockkeeper.Open(t.Context(), server.URL(), lockkeeper.WithConfig(lockkeeper.Config{Anonymous: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	errTaken := errors.New("the key exists")
	for name, try := range map[string]func(key string) (release func() error, err error){
		"redsync": func(key string) (func() error, error) {
			m := redsync.New(goredis.NewPool(client)).NewMutex(key, redsync.WithExpiry(time.Minute))
			release := func() error { _, err := m.Unlock(); return err }
			return release, m.TryLock()
		},
		"redislock": func(key string) (func() error, error) {
			lock, err := redislock.Obtain(t.Context(), client, key, time.Minute, nil)
			return func() error { return lock.Release(t.Context()) }, err
		},
		"a recipe": func(key string) (func() error, error) {
			set, err := client.SetNX(t.Context(), key, "token", time.Minute).Result()
			if err == nil && !set {
				err = errTaken
			}
			return func() error { return client.Del(t.Context(), key).Err() }, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := redistest.Name(t)
			release, err := try(key)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sys.Lock(key).TryAcquire(t.Context()); !errors.Is(err, lockkeeper.ErrRejected) {
				t.Errorf("while the other holds the lock: %v", err)
			}
			if err := release(); err != nil {
				t.Errorf("it is no longer held by the other: %v", err)
			}
			hold, err := sys.Lock(key).TryAcquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := try(key); err == nil {
				t.Error("both have the lock")
			}
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// rueidislock has other keys: both libraries grant a lock of the same name at the same time.
func TestMigrating_RueidislockDoesNotExcludeOurs(t *testing.T) {
	server := redistest.Shared(t)
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: rueidis.ClientOption{InitAddress: []string{server.Addr()}}, KeyMajority: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	sys, err := lockkeeper.Open(t.Context(), server.URL(), lockkeeper.WithConfig(lockkeeper.Config{Anonymous: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	key := redistest.Name(t)
	_, release, err := locker.WithContext(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	hold, err := sys.Lock(key).TryAcquire(t.Context())
	if err != nil {
		t.Fatalf("it has the same key now; change docs/migrating.md: %v", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
