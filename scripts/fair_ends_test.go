package scripts_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// When all its clients have died, nothing of a fair lock's queue stays for ever: both keys
// end ten minutes after the last waiter counts as dead.
func TestFairQueueEnds(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, scripts.FairQueue)
		for _, r := range []struct{ name, lock, queue, args, ends string }{
			{"a new queue", "v:1=1 30000", "", "- 1 9 u:1 30000 1", "930000"},
			{"a longer one", "v:1=1 30000", "v:2@100 v:3@200", "- 1 9 u:1 30000 1", "1100000"},
			{"nothing changes", "v:1=1 30000", "v:2@100", "- 1 9", "700000"},
			{"those who are left", "", "u:1@300 v:2@600", "- 1 9 u:1 30000 1", "900000"},
			{"of a waiter that lives for ever", "v:1=1 30000", "v:2@1000000000000", "- 1 9", "31536600000"},
		} {
			t.Run(r.name, func(t *testing.T) {
				name, start := redistest.Name(t), time.Now()
				db.put(t, name, r.lock)
				db.putQueue(t, name, r.queue, start)
				db.run(t, scripts.FairQueue, []string{name}, fairArgs(name, r.args))
				for _, key := range []string{queueOf(name), timeoutsOf(name)} {
					if ttl := settle(db.do(t, "PTTL", key), r.ends, start); ttl != r.ends {
						t.Errorf("%s ends in %s ms, want %s", key, ttl, r.ends)
					}
				}
			})
		}
	})
}
