package topology_test

// A slot of a cluster that is left between two servers, as tools leave it while they move its
// keys, or when they are stopped.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

var kindsInSlot = map[string]func(s *locktest.Site, name string) *lockkeeper.Lock{
	"plain":  func(s *locktest.Site, name string) *lockkeeper.Lock { return s.Lock(name) },
	"fenced": func(s *locktest.Site, name string) *lockkeeper.Lock { return s.FencedLock(name) },
	"fair":   func(s *locktest.Site, name string) *lockkeeper.Lock { return s.FairLock(name) },
	"read":   func(s *locktest.Site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Read() },
	"write":  func(s *locktest.Site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Write() },
}

// movedSlot is a lock in a slot that is between two servers.
type movedSlot struct {
	*testing.T
	from, to *redistest.Server
	name     string
	slot     int
	of       func(s *locktest.Site, name string) *lockkeeper.Lock
	token    int64
}

// waitInSlot is so long that only a lock that cannot be had makes an acquire fail.
var waitInSlot = lockkeeper.WithWait(8 * time.Second)

// try calls with that bound, and gives no more than the error: the test goes on with the next.
func (m *movedSlot) try(what string, call func(ctx context.Context) error) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), 8*time.Second)
	defer cancel()
	if err := call(ctx); err != nil {
		m.Errorf("%s: %v", what, err)
	}
}

func (m *movedSlot) acquire(s *locktest.Site, what string) *lockkeeper.Hold {
	m.Helper()
	hold, err := m.of(s, m.name).Acquire(m.Context(), waitInSlot)
	if err != nil {
		m.Fatalf("%s: %v", what, err)
	}
	if token := hold.Token(); token != 0 && token <= m.token {
		m.Errorf("%s: token %d after %d", what, token, m.token)
	} else {
		m.token = token
	}
	return hold
}

// renewed waits until the lock's TTL ends later than it did.
func (m *movedSlot) renewed(s *locktest.Site) {
	m.Helper()
	ends := func() int64 {
		at, _ := s.Client.Do(m.Context(), s.Client.B().Pexpiretime().Key(m.name).Build()).AsInt64()
		return at
	}
	before := ends()
	m.try("renewal", func(ctx context.Context) error {
		for ends() <= before {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
}

// use does all that is done to a lock, which begins as held.
func (m *movedSlot) use(s, other *locktest.Site, hold *lockkeeper.Hold) {
	m.Helper()
	m.renewed(s)
	m.try("re-entry", func(ctx context.Context) error {
		inner, err := m.of(s, m.name).Acquire(hold.Context(), waitInSlot)
		if err != nil {
			return err
		}
		return inner.Release(ctx)
	})
	granted := make(chan *lockkeeper.Hold, 1)
	go func() {
		lock := m.of(other, m.name)
		if strings.HasSuffix(m.Name(), "/read") {
			lock = other.ReadWriteLock(m.name).Write()
		}
		hold, err := lock.Acquire(m.Context(), waitInSlot)
		if err != nil {
			m.Errorf("waiting: %v", err)
		}
		granted <- hold
	}()
	redistest.Eventually(m, "the other to wait", func() bool {
		status, err := m.of(other, m.name).Inspect(m.Context())
		return err == nil && status.Waiters == 1
	})
	m.try("release", hold.Release)
	if hold := <-granted; hold != nil {
		m.try("release by the other", hold.Release)
	}
	m.try("release", m.acquire(s, "acquire of the free lock").Release)
}

// While a slot is between two servers, its locks are renewed, re-entered, released, waited
// for and acquired, wherever their keys are; and nothing is left on the new server that keeps
// the rest from moving.
func TestClusterSlotBetweenServers(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	config := lockkeeper.Config{Watchdog: 3 * time.Second}
	for _, migrated := range []bool{false, true} {
		for kind, of := range kindsInSlot {
			t.Run(fmt.Sprintf("migrated %v/%s", migrated, kind), func(t *testing.T) {
				t.Parallel()
				s, other := locktest.Open(t, servers[0].URL(), config), locktest.Open(t, servers[1].URL(), config)
				name, slot := firstHalf(t)
				m := &movedSlot{T: t, from: servers[0], to: servers[1], name: name, slot: slot, of: of}
				m.try("release before", m.acquire(s, "acquire before").Release)
				hold := m.acquire(s, "acquire before")
				m.from.BeginMove(t, slot, m.to)
				if migrated {
					m.from.MigrateKeys(t, slot, m.to)
				}
				m.use(s, other, hold)
				hold = m.acquire(other, "acquire again")
				m.from.MigrateKeys(t, slot, m.to)
				m.from.EndMove(t, slot, m.to)
				m.try("release after", hold.Release)
				m.try("release after", m.acquire(s, "acquire after").Release)
				for _, server := range servers {
					for _, key := range server.Keys(t, "*"+name+"*") {
						if key != redisio.Token(name) {
							t.Errorf("left behind: %s", key)
						}
					}
				}
			})
		}
	}
}

// The keys of a read lock are on two servers, and a reader leaves: the lock stays with the
// other, whose lease cannot be seen.
func TestClusterReaderLeavesASplitSlot(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	for _, first := range []string{"the lock", "its leases"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			leaves, stays := locktest.Open(t, servers[0].URL(), lockkeeper.Config{}), locktest.Open(t, servers[1].URL(), lockkeeper.Config{})
			name, slot := firstHalf(t)
			m := &movedSlot{T: t, name: name, of: kindsInSlot["read"]}
			hold, other := m.acquire(leaves, "acquire"), m.acquire(stays, "acquire")
			move := []string{name}
			if first == "its leases" {
				move = servers[0].Keys(t, redisio.Holds(name)+":*")
			}
			servers[0].BeginMove(t, slot, servers[1])
			servers[0].MigrateKeys(t, slot, servers[1], move...)
			m.try("release", hold.Release)
			if hold, err := leaves.ReadWriteLock(name).Write().TryAcquire(t.Context()); !errors.Is(err, lockkeeper.ErrHeld) {
				t.Errorf("a writer got %v, %v beside a reader", hold, err)
			}
			m.try("release", other.Release)
			hold, err := leaves.ReadWriteLock(name).Write().TryAcquire(t.Context())
			if err != nil {
				t.Fatalf("a writer, after all have left: %v", err)
			}
			m.try("release", hold.Release)
		})
	}
}
