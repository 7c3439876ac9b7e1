package expirable_test

import (
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// While a slot is between two servers, permits are renewed, and in the end none is lost.
func TestExpirable_SurvivesASlotMove(t *testing.T) {
	t.Parallel()
	servers, name := redistest.Cluster(t, 2), redistest.Name(t)
	slot := int(keyspace.Slot(name))
	from, to := servers[slot/8192], servers[1-slot/8192]
	s, p := open(t, servers[0].URL(), name, 3, lockkeeper.Config{Watchdog: watchdog, Renewal: watchdog / 10})
	held := []*lockkeeper.Permit{acquire(t, p), acquire(t, p)}
	from.BeginMove(t, slot, to)
	from.MigrateKeys(t, slot, to, keyspace.Taken(name))
	waiter := acquireSoon(locktest.Within(t), p)
	released := locktest.Go(func() error { return held[0].Release(locktest.Within(t)) })
	awaitHeldFor(t, s.System, name, watchdog*5/4) // only renewals have to work
	if !held[1].Valid() {
		t.Error(held[1].Err())
	}
	from.MigrateKeys(t, slot, to)
	from.EndMove(t, slot, to)
	// Their permits may have been given back so late that they have no answer.
	for _, err := range []error{locktest.Await(t, "a permit", waiter), <-released} {
		if err != nil && !errors.Is(err, lockkeeper.ErrUnavailable) {
			t.Error(err)
		}
	}
	release(t, held[1])
	awaitPermits(t, p, 3, 0)
}
