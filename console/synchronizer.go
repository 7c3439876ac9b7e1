package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
)

// askSynchronizer adds the state in Redis, if l is a semaphore or a latch.
func (c *console) askSynchronizer(ctx context.Context, l *lock) (err error) {
	if l.Name == "" || len(l.Name) > maxName {
		return nil
	}
	var n int64
	switch l.Kind {
	case inspect.KindExpirableSemaphore:
		var free, taken int
		if free, err = c.sys.ExpirableSemaphore(l.Name).Available(ctx); err == nil {
			taken, err = c.sys.ExpirableSemaphore(l.Name).Acquired(ctx)
		}
		l.State = fmt.Sprintf("has %s, and %d taken", permits(free), taken)
	case inspect.KindSemaphore:
		var free int
		free, err = c.sys.Semaphore(l.Name).Available(ctx)
		l.State = "has " + permits(free)
	case inspect.KindLatch:
		if n, err = c.sys.Latch(l.Name).Count(ctx); n == 0 {
			l.State = "is open"
		} else {
			l.State = fmt.Sprintf("is closed, with a count of %d", n)
		}
	default:
		return nil // a MultiLock or a RedLock
	}
	if errors.Is(err, lockkeeper.ErrNoPermits) {
		l.State, err = "has no number of permits", nil
	}
	if l.Asked = err == nil; err != nil {
		l.State = ""
	}
	return err
}

func permits(free int) string {
	if free == 1 {
		return "1 free permit"
	}
	return fmt.Sprintf("%d free permits", free)
}

// askTakers adds the processes that have permits of an expirable semaphore. With very many processes, only the
// processes whose permits end first are known.
func (c *console) askTakers(ctx context.Context, l *lock) error {
	counter, err := c.inspector.Counter(ctx, l.Name)
	if err != nil || counter == nil {
		return err
	}
	taken := map[string]int{}
	for _, permit := range counter.Permits {
		by := "a process without a record"
		if permit.Process != nil {
			by = recordOf(*permit.Process).String()
		}
		taken[by]++
	}
	for _, by := range slices.Sorted(maps.Keys(taken)) {
		l.Takers = append(l.Takers, fmt.Sprintf("%d by %s", taken[by], by))
	}
	return nil
}
