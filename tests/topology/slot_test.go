package topology_test

// A slot of a cluster between two servers, as tools leave it while they move its keys, or when they are stopped.

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// While a slot is between two servers, its locks are renewed, re-entered, released, waited for and acquired, wherever
// their keys are. No key stays on the new server that would prevent the other ones from moving.
func TestCluster_LocksWorkWhileASlotMoves(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	from, to := servers[0], servers[1]
	config := lockkeeper.Config{Watchdog: time.Minute, Renewal: time.Second}
	for _, migrated := range []bool{false, true} {
		for kind, of := range locktest.Kinds {
			if kind == "multi" {
				continue // the other kinds are its members
			}
			t.Run(fmt.Sprintf("migrated %v/%s", migrated, kind), func(t *testing.T) {
				t.Parallel()
				s, other := locktest.Open(t, from.URL(), config), locktest.Open(t, to.URL(), config)
				name, slot := firstHalf(t)
				lock, elsewhere, last := of(s, name), of(other, name), int64(0)
				acquire := func(l *lockkeeper.Lock) *lockkeeper.Hold {
					t.Helper()
					hold := locktest.Acquire(t, l)
					if token := hold.Token(); token != 0 && token <= last {
						t.Errorf("token %d after %d", token, last)
					}
					last = hold.Token()
					return hold
				}
				expiry := func() int64 {
					at, _ := s.Client.Do(t.Context(), s.Client.B().Pexpiretime().Key(name).Build()).AsInt64()
					return at
				}
				locktest.Release(t, acquire(lock))
				hold := acquire(lock)
				from.BeginMove(t, slot, to)
				if migrated {
					from.MigrateKeys(t, slot, to)
				}
				before := expiry()
				redistest.Eventually(t, "a renewal", func() bool { return expiry() > before })
				locktest.Release(t, locktest.AcquireIn(t, hold.Context(), lock))
				next := elsewhere
				if kind == "read" { // another reader would not wait for it
					next = other.ReadWriteLock(name).Write()
				}
				waiter := locktest.AcquireSoon(locktest.Within(t), next)
				locktest.AwaitWaiters(t, elsewhere, 1)
				locktest.Release(t, hold)
				locktest.Release(t, locktest.Got(t, waiter).Hold)
				locktest.Release(t, acquire(lock))

				hold = acquire(elsewhere)
				from.MigrateKeys(t, slot, to)
				from.EndMove(t, slot, to)
				locktest.Release(t, hold)
				locktest.Release(t, acquire(lock))
				for _, server := range servers {
					for _, key := range server.Keys(t, "*"+name+"*") {
						if key != keyspace.Token(name) {
							t.Errorf("left behind: %s", key)
						}
					}
				}
			})
		}
	}
}

// The keys of a read lock are on two servers, and a reader leaves: the lock stays with the other reader, whose lease
// cannot be read.
func TestCluster_ReaderLeavesSplitSlot(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	for _, leasesFirst := range []bool{false, true} {
		leaves, stays := locktest.Open(t, servers[0].URL(), lockkeeper.Config{}), locktest.Open(t, servers[1].URL(), lockkeeper.Config{})
		name, slot := firstHalf(t)
		writer := leaves.ReadWriteLock(name).Write()
		hold, other := locktest.Acquire(t, leaves.ReadWriteLock(name).Read()), locktest.Acquire(t, stays.ReadWriteLock(name).Read())
		move := []string{name}
		if leasesFirst {
			move = servers[0].Keys(t, keyspace.Holds(name)+":*")
		}
		servers[0].BeginMove(t, slot, servers[1])
		servers[0].MigrateKeys(t, slot, servers[1], move...)
		locktest.Release(t, hold)
		locktest.ExpectRefused(t, lockkeeper.ErrHeld, writer)
		locktest.Release(t, other)
		hold, err := writer.TryAcquire(locktest.Within(t))
		if err != nil {
			t.Fatalf("a writer, after all have left: %v", err)
		}
		locktest.Release(t, hold)
	}
}
