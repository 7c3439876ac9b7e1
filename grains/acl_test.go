//go:build !race

package grains

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// The rules for plain locks and one more command suffice, as docs/actors.md says.
func TestDirectory_NeedsTheRightsOfPlainLocks(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	rules := strings.Fields(redisio.ACL()[0].Rules(redisio.OneServer, "locks:"))
	if err := f.redis.Do(t, append([]string{"ACL", "SETUSER", "locker", "reset", "on", ">pw", "+hscan"}, rules...)...).Error(); err != nil {
		t.Fatal(err)
	}
	f.url = strings.Replace(f.redis.URL(), "://", "://locker:pw@", 1)
	f.prefix = "locks:"
	a := f.member(Config{Locks: lockkeeper.Config{KeyPrefix: f.prefix}})
	a.mustAsk(t, "a", "where")
	f.redis.Do(t, "HSET", f.key("entries"), "account/dead", "dead#1")
	if err := a.d.redis.join(t.Context(), Member{ID: "dead"}); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the burial of a dead member", func() bool { return f.entries() == 1 })
	if err := a.d.redis.mark(t.Context(), a.d.term.Load().member.ID); err != nil {
		t.Error(err)
	}
	a.mustAsk(t, "a", "stop")
	redistest.Eventually(t, "no entry", func() bool { return f.entries() == 0 })
	if err := a.d.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	log, err := f.redis.Do(t, "ACL", "LOG").ToArray()
	if err != nil {
		t.Fatal(err)
	}
	for _, refused := range log {
		if text := refused.String(); !strings.Contains(text, "setinfo") {
			t.Errorf("Redis has refused %s", text)
		}
	}
}
