package conformance_test

// An expirable semaphore whose requests want all of its permits together is a lock.

import (
	"cmp"
	"strconv"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func (p *process) semaphore(name string) *lockkeeper.ExpirableSemaphore {
	return p.sites[0].ExpirableSemaphore(name)
}

// wanted is how many permits a request wants; 0 of a lock.
func (k kind) wanted(r request) int { return cmp.Or(r.permits, k.permits) }

// keeps reports whether a key stays after all permits were released: their number, and commands that expire.
func (k kind) keeps(t testing.TB, s *redistest.Server, key string) bool {
	if strings.HasPrefix(key, "lockkeeper_calls:") {
		return locktest.Must(s.Do(t, "PTTL", key).AsInt64())(t) > 0
	}
	free, err := s.Do(t, "GET", key).ToString()
	return err == nil && free == strconv.Itoa(k.permits)
}

// allOrNone checks that a request for several permits gets none before it gets all, and that no request gets them first that
// was made later.
func allOrNone(t *trial, a, b *process) {
	one := t.acquire(a, request{permits: 1})
	t.isHeld(a, b)
	t.release(t.got(t.ask(b, request{try: true, permits: t.kind.permits - 1})))
	all := t.soon(t.ctx, b, request{})
	t.waiting(b, 1)
	redistest.Eventually(t, "the free permits are kept for the waiter", func() bool {
		return len(t.servers[0].Keys(t, keyspace.Calls(keyPrefix+t.lock)+":kept")) == 1
	})
	c := t.open()
	later := t.soon(t.ctx, c, request{permits: 1})
	t.waiting(c, 1)
	t.pending(all, later)
	t.release(one)
	hold := t.got(all)
	t.pending(later)
	t.release(hold)
	t.release(t.got(later))
}

// oneIsLost lets another client release one of the permits of a hold.
func oneIsLost(t *trial, a, b *process) {
	hold := t.acquire(a, request{})
	key := keyPrefix + t.lock
	locktest.OK(t, t.servers[0].Do(t, "ZPOPMIN", keyspace.Taken(key)).Error())
	locktest.OK(t, t.servers[0].Do(t, "INCR", key).Error())
	t.isLost(hold)
	t.notReleased(hold, lockkeeper.ErrLost, lockkeeper.ErrNotHeld)
	t.passes(b, a)
}
