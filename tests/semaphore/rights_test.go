package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// The rights in docs/acl.md are enough for every call about a synchronizer.
func TestSynchronizers_NeedOnlyTheirRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for kind, use := range map[string]func(ctx context.Context, s *lockkeeper.System) error{
		"semaphore": func(ctx context.Context, s *lockkeeper.System) error {
			one := s.Semaphore("semaphore")
			_, set := one.TrySetPermits(ctx, 2, time.Hour)
			calls := errors.Join(set, one.Acquire(ctx, 2), one.Release(ctx, 1), one.AddPermits(ctx, 1))
			_, exists := one.ReleaseIfExists(ctx, 1)
			_, drain := one.Drain(ctx)
			_, available := one.Available(ctx)
			_, end := one.Delete(ctx)
			return errors.Join(calls, exists, drain, available, end)
		},
		"latch": func(ctx context.Context, s *lockkeeper.System) error {
			one := s.Latch("latch")
			_, set := one.TrySetCount(ctx, 2)
			_, count := one.Count(ctx)
			calls := errors.Join(set, count, one.CountDownOnce(ctx, "a"), one.CountDown(ctx), one.Wait(ctx))
			_, end := one.Delete(ctx)
			return errors.Join(calls, end)
		},
		"expirable semaphore": func(ctx context.Context, s *lockkeeper.System) error {
			one := s.ExpirableSemaphore("permits")
			calls := errors.Join(one.SetPermits(ctx, 1), one.AddPermits(ctx, 2))
			permit, acquire := one.Acquire(ctx, lockkeeper.WithPermits(2))
			if acquire != nil {
				return acquire
			}
			calls = errors.Join(calls, permit.Extend(ctx, time.Hour), permit.KeepAlive(ctx), one.ReleaseID(ctx, permit.ID()))
			_, total := one.Total(ctx)
			_, end := one.Delete(ctx)
			return errors.Join(calls, total, end)
		},
	} {
		rules := ""
		for _, r := range redisio.ACL() {
			if r.Kind == kind {
				rules = r.Rules(redisio.OneServer, "locks:")
			}
		}
		locktest.OK(t, server.Do(t, append([]string{"ACL", "SETUSER", "user", "reset", "on", ">pw"}, strings.Fields(rules)...)...).Error())
		s := locktest.Open(t, locktest.URLAs(server, "user", "pw"), lockkeeper.Config{KeyPrefix: "locks:", Application: "test"})
		if err := use(locktest.Within(t), s.System); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		locktest.Stop(t, s)
	}
	for _, entry := range locktest.Must(server.Do(t, "ACL", "LOG").ToArray())(t) {
		if text := entry.String(); !strings.Contains(text, "setinfo") {
			t.Errorf("refused: %s", text)
		}
	}
}
