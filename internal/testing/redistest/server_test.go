package redistest

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// A server behind a proxy announces the proxy's address: its replica's stream passes the proxy.
func TestStartBehind_StreamPassesTheProxy(t *testing.T) {
	master, err := rig.StartBehind(0, rig.Options{})
	check(t, err)
	t.Cleanup(master.Stop)
	replica, err := rig.StartReplica(master, master.Addr(), rig.Options{})
	check(t, err)
	t.Cleanup(replica.Stop)
	value := func() string {
		v, err := replica.Do("GET", "key")
		check(t, err)
		return v.Text()
	}
	master.Front().Set(func(r *rig.Rules) { r.Stream.Blocked = true })
	_, err = master.Do("SET", "key", "value") // not blocked
	check(t, err)
	if rig.Poll(50*time.Millisecond, func() bool { return value() != "(nil)" }) {
		t.Error("the replica has the key, though its stream is blocked")
	}
	master.Front().Heal()
	Eventually(t, "the replica to have the key", func() bool { return value() == "value" })
}
