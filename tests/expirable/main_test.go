// Package expirable_test tests the expirable semaphore.
package expirable_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}

// watchdog is long enough for a busy machine.
const watchdog = 3 * time.Second

// open opens a site on a server, and sets the number of permits of a name.
func open(t *testing.T, url, name string, n int, cfg lockkeeper.Config) (*locktest.Site, *lockkeeper.ExpirableSemaphore) {
	t.Helper()
	s := locktest.Open(t, url, cfg)
	p := s.ExpirableSemaphore(name)
	locktest.Must(p.TrySetPermits(locktest.Within(t), n))(t)
	return s, p
}

func acquire(t *testing.T, p *lockkeeper.ExpirableSemaphore, options ...lockkeeper.Option) *lockkeeper.Permit {
	t.Helper()
	permit, err := p.Acquire(locktest.Within(t), options...)
	for locktest.IsLateReply(err) {
		permit, err = p.Acquire(locktest.Within(t), options...)
	}
	locktest.OK(t, err)
	return permit
}

func release(t *testing.T, permits ...*lockkeeper.Permit) {
	t.Helper()
	for _, p := range permits {
		locktest.OK(t, p.Release(locktest.Within(t)))
	}
}

// acquireSoon acquires on a goroutine.
func acquireSoon(ctx context.Context, p *lockkeeper.ExpirableSemaphore, options ...lockkeeper.Option) <-chan error {
	return locktest.Go(func() error {
		permit, err := p.Acquire(ctx, options...)
		if err != nil {
			return err
		}
		return permit.Release(ctx)
	})
}

// awaitPermits waits until there are so many free and taken permits.
func awaitPermits(t *testing.T, p *lockkeeper.ExpirableSemaphore, free, taken int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d permits to be free, and %d taken", free, taken), func() bool {
		f, err := p.Available(locktest.Within(t))
		a, err2 := p.Acquired(locktest.Within(t))
		total, err3 := p.Total(locktest.Within(t))
		return err == nil && err2 == nil && err3 == nil && f == free && a == taken && total == free+taken
	})
}

// awaitHeldFor waits until the first holder of a name in a System has held it for d.
func awaitHeldFor(t *testing.T, s *lockkeeper.System, name string, d time.Duration) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint("a hold of ", d), func() bool {
		all, err := s.Locks(locktest.Within(t))
		i := slices.IndexFunc(all, func(l lockkeeper.LockInfo) bool { return l.Name == name })
		return err == nil && i >= 0 && all[i].Age > d
	})
}

// expiries are the times at which the taken permits expire, in order.
func expiries(t *testing.T, server *redistest.Server, name string) (all []time.Time) {
	t.Helper()
	taken := locktest.Must(server.Do(t, "EVAL", "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')", "1", keyspace.Taken(name)).AsStrSlice())(t)
	for i := 1; i < len(taken); i += 2 {
		ms := locktest.Must(strconv.ParseInt(taken[i], 10, 64))(t)
		all = append(all, time.UnixMilli(ms))
	}
	return all
}
