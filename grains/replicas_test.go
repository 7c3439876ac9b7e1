//go:build !race

package grains

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// With Replicas, a grain starts only when they have its entry: a failover would lose it, and another member would start the grain
// again, with the same token.
func TestActivator_AwaitsReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	_, stream := redistest.ReplicaBehind(t, master)
	f := newFleet(t, master)
	cfg := Config{}
	cfg.Locks.Replicas, cfg.Locks.ReplicaTimeout, cfg.Locks.Watchdog = 1, 300*time.Millisecond, 20*time.Second
	a := f.member(cfg)
	a.mustAsk(t, "before", "where")
	stream.Freeze(true)
	answered := make(chan error, 1)
	go func() { _, err := a.ask("meanwhile", "where"); answered <- err }()
	redistest.Eventually(t, "the registration's failure", func() bool { return a.d.counts.unregistered.Load() > 0 || f.count("meanwhile", "starts") > 0 })
	if f.entries() != 2 || f.count("meanwhile", "starts") != 0 {
		t.Errorf("there are %d entries, and the grain has started %d times, without the replica", f.entries(), f.count("meanwhile", "starts"))
	}
	stream.Freeze(false)
	locktest.Check(t, <-answered)
	if n := f.count("meanwhile", "starts"); n != 1 {
		t.Errorf("the grain has started %d times", n)
	}
}
