package redisio_test

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// If the user may not subscribe at the Sentinels, no client is opened. If the right is removed later, the
// client follows the master by asking.
func TestSentinel_NeedsTheRightToSubscribe(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Replica(t, master)
	url, all := redistest.Sentinels(t, master, 1)
	url += "&sentinel_username=watcher&sentinel_password=pw"
	for _, s := range all {
		s.MustDo(t, strings.Fields("ACL SETUSER watcher on >pw resetchannels "+strings.TrimSuffix(redisio.SentinelRules, " &*"))...)
	}
	if client, err := redisio.Connect(url); err == nil {
		client.Close()
		t.Error("a client was opened that may not listen to the Sentinels")
	} else {
		redistest.ExpectError(t, "connecting", redisio.Classify(err), redistest.Hinted(redisio.SentinelRules))
	}
	for _, s := range all {
		s.MustDo(t, "ACL", "SETUSER", "watcher", "allchannels")
		s.MustDo(t, "ACL", "LOG", "RESET")
	}
	client := redistest.Connect(t, url)
	refused := func(s *redistest.Server) (times int64) {
		log, _ := s.Do(t, "ACL", "LOG").ToArray()
		for _, entry := range log {
			fields, _ := entry.AsMap()
			count := fields["count"]
			n, _ := count.AsInt64()
			times += n
		}
		return times
	}
	for _, s := range all {
		s.MustDo(t, "ACL", "SETUSER", "watcher", "resetchannels")
		redistest.Eventually(t, "a refusal", func() bool { return refused(s) > 0 })
	}
	all[0].MustDo(t, "SENTINEL", "FAILOVER", "master")
	redistest.Eventually(t, "the client to move", func() bool {
		return client.Do(t.Context(), client.B().Arbitrary("SET", "moved", "1").Build()).Error() == nil && replica.IsMaster(t) && len(replica.Keys(t, "moved")) == 1
	})
	for _, s := range all {
		if n := refused(s); n != 1 {
			t.Errorf("%s has refused %d times", s.Addr(), n)
		}
	}
}
