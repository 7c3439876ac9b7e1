package semaphore_test

import (
	"context"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// A request that comes after another process has set the number is not refused by the answer to an earlier one, which was
// under way when no number was set.
func TestUnset_RefusesNoLaterRequest(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]struct {
		acquire func(ctx context.Context, s *locktest.Site, name string) error
		set     func(ctx context.Context, s *locktest.Site, name string) (bool, error)
	}{
		"semaphore": {
			func(ctx context.Context, s *locktest.Site, name string) error {
				return s.Semaphore(name).Acquire(ctx, 1)
			},
			func(ctx context.Context, s *locktest.Site, name string) (bool, error) {
				return s.Semaphore(name).TrySetPermits(ctx, 1, 0)
			},
		},
		"expirable": {
			func(ctx context.Context, s *locktest.Site, name string) error {
				_, err := s.ExpirableSemaphore(name).Acquire(ctx)
				return err
			},
			func(ctx context.Context, s *locktest.Site, name string) (bool, error) {
				return s.ExpirableSemaphore(name).TrySetPermits(ctx, 1)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := locktest.NewRemote(t, redistest.Start(t), lockkeeper.Config{CallTimeout: locktest.Soon})
			there, name, ctx := locktest.Open(t, here.Server.URL(), lockkeeper.Config{}), here.LockName, locktest.Within(t)
			acquire := func() <-chan error { return locktest.Go(func() error { return kind.acquire(ctx, here.Site, name) }) }
			block := func(on bool) { here.Proxy.Set(func(r *rig.Rules) { r.Down.Blocked = on }) }
			block(true)
			before := acquire()
			redistest.Eventually(t, "the first try", func() bool {
				records, err := here.Server.Do(t, "KEYS", keyspace.Calls(name)+":*").AsStrSlice()
				return err == nil && len(records) > 0
			})
			locktest.Equal(t, locktest.Must(kind.set(ctx, there, name))(t), true, "the number was set: %v")
			after := acquire()
			here.AwaitWaiting(t, 2)
			block(false)
			locktest.IsError(t, <-before, lockkeeper.ErrNoPermits)
			locktest.OK(t, <-after)
		})
	}
}
