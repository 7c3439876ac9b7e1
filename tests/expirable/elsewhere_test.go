package expirable_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// The rights in docs/acl.md are enough for permits, and in a cluster all keys are in one slot.
func TestExpirable_WorksWithACLAndCluster(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, r := range redisio.ACL() {
		if r.Kind == "expirable semaphore" {
			server.Do(t, append([]string{"ACL", "SETUSER", "user", "on", ">pw"}, strings.Fields(r.Rules(redisio.OneServer, "locks:"))...)...)
		}
	}
	cluster := redistest.Cluster(t, 2)
	for what, urls := range map[string][2]string{
		"as an ACL user": {locktest.URLAs(server, "user", "pw"), locktest.URLAs(server, "user", "pw")},
		"in a cluster":   {cluster[0].URL(), cluster[1].URL()},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := lockkeeper.Config{KeyPrefix: "locks:", Application: "test", Poll: time.Minute, Watchdog: 2 * time.Minute, Renewal: 100 * time.Millisecond}
			_, p := open(t, urls[0], "a", 1, cfg)
			other, there := open(t, urls[1], "a", 1, cfg)
			warned := make(chan time.Duration, 1)
			here := acquire(t, p, lockkeeper.WithAtRisk(func(left time.Duration) { warned <- left }))
			waiter := soon(locktest.Within(t), there)
			other.AwaitWaiting(t, 1)
			select {
			case <-warned:
				t.Error("the permit is not renewed")
			case <-time.After(3 * cfg.Renewal):
			}
			if err := p.ReleaseID(locktest.Within(t), here.ID()); err != nil || here.Valid() {
				t.Errorf("released: %v; it was lost before: %v", err, here.Err())
			}
			locktest.Check(t, locktest.Await(t, "the permit", waiter))
			if err := p.AddPermits(locktest.Within(t), 1); err != nil {
				t.Error(err)
			}
			awaitPermits(t, there, 2, 0)
		})
	}
}

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
	waiter := soon(locktest.Within(t), p)
	released := locktest.Go(func() error { return held[0].Release(locktest.Within(t)) })
	outlasts(t, s.System, name, watchdog*5/4) // only renewals have to work
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
