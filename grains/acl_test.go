//go:build !race

package grains

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// The rules for plain locks and one more command suffice, as docs/actors.md says.
func TestDirectory_NeedsTheRightsOfPlainLocks(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	rules := strings.Fields(redisio.ACL()[0].Rules(redisio.OneServer, "locks:"))
	locktest.OK(t, f.redis.Do(t, append([]string{"ACL", "SETUSER", "locker", "reset", "on", ">pw", "+hscan"}, rules...)...).Error())
	f.url = strings.Replace(f.redis.URL(), "://", "://locker:pw@", 1)
	f.prefix = "locks:"
	a := f.member(Config{Locks: lockkeeper.Config{KeyPrefix: f.prefix}})
	a.mustAsk(t, "a", "where")
	f.redis.Do(t, "HSET", f.key("entries"), "account/dead", "dead#1")
	locktest.OK(t, a.d.redis.join(t.Context(), Member{ID: "dead"}))
	redistest.Eventually(t, "the burial of a dead member", func() bool { return f.entries() == 1 })
	locktest.Check(t, a.d.redis.mark(t.Context(), a.d.term.Load().member.ID))
	a.mustAsk(t, "a", "stop")
	redistest.Eventually(t, "no entry", func() bool { return f.entries() == 0 })
	locktest.Check(t, a.d.Leave(t.Context()))
	log := locktest.Must(f.redis.Do(t, "ACL", "LOG").ToArray())(t)
	for _, refused := range log {
		if text := refused.String(); !strings.Contains(text, "setinfo") {
			t.Errorf("Redis has refused %s", text)
		}
	}
}
