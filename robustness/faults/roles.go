package faults

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// replica starts a replica of Redis, and waits until it is in sync.
func (w *World) replica() (*server, error) {
	replica, err := startServer(w.server.clock.like())
	if err != nil {
		return nil, err
	}
	if err := replica.Follow(w.server.Server); err != nil {
		replica.kill()
		return nil, err
	}
	return replica, nil
}

// changeRoles makes a replica in sync the master. The former master stays as a replica that
// refuses writes, and the connections to it stay open: only new ones reach the new master.
func changeRoles(w *World) error {
	replica, err := w.replica()
	if err != nil {
		return err
	}
	if w.demoted != nil {
		w.demoted.kill()
	}
	if err := w.server.AwaitReplication("port=" + replica.Port() + ",state=online"); err != nil {
		return err
	}
	err = w.during(history.Fault{Name: "change of roles", Proc: -1, Hinders: true}, func() error {
		if _, err := w.server.Do("FAILOVER", "TO", rig.Host, replica.Port()); err != nil {
			return err
		}
		w.server, w.demoted = replica, w.server
		if err := replica.AwaitReplication("role:master"); err != nil {
			return err
		}
		for _, c := range w.clients {
			c.proxy.Redirect(replica.Addr())
		}
		return nil
	})
	// The next fault may end the connections, so wait until this fault is no longer an excuse.
	time.Sleep(w.plan.Lease() + w.plan.Silence() + 3*time.Second)
	return err
}
