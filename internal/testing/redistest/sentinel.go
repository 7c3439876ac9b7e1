package redistest

import (
	"fmt"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// silence is the line for the time in ms without an answer after which a Sentinel considers its master down.
func silence(ms int) string {
	return fmt.Sprintf("sentinel down-after-milliseconds %s %d", rig.MasterSet, ms)
}

// Sentinel starts a redis-sentinel that watches a server and its present replicas, and decides
// alone on a failover. It returns the URL for clients that follow the master. It is stopped
// when the test ends. lines are further lines of its configuration.
func Sentinel(t testing.TB, master *Server, lines ...string) (url string) {
	t.Helper()
	s := startSentinel(t, master.Addr(), rig.Options{}, lines...)
	return fmt.Sprintf("%s?master_set=%s", s.URL(), rig.MasterSet)
}

// startSentinel starts a Sentinel that decides alone.
func startSentinel(t testing.TB, master string, o rig.Options, lines ...string) *Server {
	t.Helper()
	s, err := rig.StartSentinel(master, 1, o, append([]string{silence(1000)}, lines...)...)
	check(t, err)
	return keep(t, s)
}

// Sentinels starts three Sentinels that watch a server and its replicas, of which two must agree,
// and waits until they know each other and that many replicas. They answer commands like servers.
//
// Each detects a dead master a few seconds after the one before it: three that do so at the
// same time may each vote for themselves, and then there is no failover for a long while.
func Sentinels(t testing.TB, master *Server, replicas int) (url string, all []*Server) {
	t.Helper()
	started, err := rig.StartSentinels(3, 1, master.Server, func(i int) []string {
		return []string{fmt.Sprintf("sentinel failover-timeout %s 20000", rig.MasterSet), silence(1000 + i*5000)}
	})
	check(t, err)
	for _, s := range started {
		all = append(all, keep(t, s))
	}
	check(t, rig.AwaitSentinels(started, master.Server, replicas))
	return rig.SentinelURL(started), all
}
