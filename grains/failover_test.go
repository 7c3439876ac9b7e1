//go:build !race

package grains

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A member sees from its mark that a failover has lost entries, also if it has registered other grains since, and stops those
// grains at once, however many it has.
func TestMember_NoticesAFailover(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{Locks: lockkeeper.Config{Watchdog: time.Minute}})
	const n, lost = 6 * maxEntries, 40
	for i := range n {
		a.mustAsk(t, fmt.Sprint(i), "where")
	}
	member := a.d.term.Load().member.ID
	mark, err := a.d.redis.marked(t.Context(), member)
	if err != nil || mark != n {
		t.Fatalf("the mark is %d after %d registrations: %v", mark, n, err)
	}
	for i := n - lost; i < n; i++ {
		f.redis.Do(t, "HDEL", f.key("entries"), fmt.Sprint("account/", i))
	}
	f.redis.Do(t, "HSET", f.key("entries"), member, entryText(member, n-lost))
	a.mustAsk(t, "new", "where")
	a.ActorSystem.Root.Send(a.d.activator, checkEntries{})
	redistest.Eventually(t, "the stop of the grains", func() bool { return f.count("", "stops") == lost })
	if mark, _ = a.d.redis.marked(t.Context(), member); mark != n+1 {
		t.Errorf("the mark is %d afterwards", mark)
	}
	a.mustAsk(t, fmt.Sprint(n-1), "where")
	if mark, _ = a.d.redis.marked(t.Context(), member); mark != n+2 {
		t.Errorf("the mark is %d after another registration", mark)
	}
	f.expect()
}

// A failover may bring back entries that a member has removed before it left. Other members remove them, but not the
// entries of a process that still has its lease and whose record is lost. When no member runs, Redis has nothing
// without a TTL but the counter of tokens.
func TestMember_RemovesWhatAFailoverBringsBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	a := f.member(Config{Locks: lockkeeper.Config{Watchdog: time.Second}})
	b := f.member(Config{})
	left := b.d.term.Load().member.ID
	locktest.OK(t, b.d.Leave(t.Context()))
	f.redis.Do(t, "HSET", a.d.redis.lease("unrecorded"), "owner", "1")
	for i := range 3 * maxEntries {
		f.redis.Do(t, "HSET", f.key("entries"), fmt.Sprint("account/", i), entryText(left, int64(i+1)))
	}
	f.redis.Do(t, "HSET", f.key("entries"), left, entryText(left, 1), "account/kept", "unrecorded#1")
	redistest.Eventually(t, "the end of its entries", func() bool { return f.entries() == 1 })
	for _, key := range []string{"members", "entries"} {
		f.redis.Do(t, "PERSIST", f.key(key))
		redistest.Eventually(t, "a TTL", func() bool {
			ttl, _ := f.redis.Do(t, "PTTL", f.key(key)).AsInt64()
			return ttl > time.Hour.Milliseconds()
		})
	}
	locktest.OK(t, a.d.Leave(t.Context()))
	fields, err := f.redis.Do(t, "HKEYS", f.key("entries")).AsStrSlice()
	if ttl, _ := f.redis.Do(t, "PTTL", f.key("entries")).AsInt64(); ttl <= 0 || err != nil || len(fields) != 1 {
		t.Errorf("Redis has the entries %q for %d ms, %v", fields, ttl, err)
	}
}

// A look for what is left of dead members takes one page of the entries, however many there are, since the next view waits for it.
// The next look goes on there.
func TestStore_BuriesInSteps(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s, err := newStore(redis.Client(t), "", "bank", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 * maxEntries {
		redis.Do(t, "HSET", s.entries(), fmt.Sprint("account/", i), "dead#1")
	}
	cursor, looks := uint64(0), 0
	for next := true; next; next = cursor != 0 {
		if cursor, err = s.bury(t.Context(), cursor, nil, []string{"dead"}); err != nil {
			t.Fatal(err)
		}
		looks++
	}
	if left, _ := redis.Do(t, "HLEN", s.entries()).AsInt64(); left != 0 || looks < 4 {
		t.Errorf("%d looks have left %d entries", looks, left)
	}
}
