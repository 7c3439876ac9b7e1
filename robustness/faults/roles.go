package faults

import (
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// replica starts a replica of Redis, and waits until it is in sync.
func (w *World) replica() (*server, error) {
	replica, err := startServer(w.server.clock.like())
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(w.server.addr, ":")
	if _, err = replica.do("REPLICAOF", host, port); err == nil {
		err = replica.awaitReplication("master_link_status:up")
	}
	if err != nil {
		replica.kill()
		return nil, err
	}
	return replica, nil
}

// awaitReplication waits until INFO replication of the server contains a text.
func (s *server) awaitReplication(what string) error {
	return await("INFO replication contains "+what, func() bool { return s.replicates(what) })
}

// replicates reports whether INFO replication of the server contains a text.
func (s *server) replicates(what string) bool {
	lines, err := s.do("INFO", "replication")
	return err == nil && strings.Contains(strings.Join(lines, "\n"), what)
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
	_, port, _ := strings.Cut(replica.addr, ":")
	if err := w.server.awaitReplication("port=" + port + ",state=online"); err != nil {
		return err
	}
	err = w.during(history.Fault{Name: "change of roles", Proc: -1, Hinders: true}, func() error {
		if _, err := w.server.do("FAILOVER", "TO", host, port); err != nil {
			return err
		}
		w.server, w.demoted = replica, w.server
		if err := replica.awaitReplication("role:master"); err != nil {
			return err
		}
		for _, c := range w.clients {
			c.proxy.redirect(replica.addr)
		}
		return nil
	})
	// The next fault may end the connections, so wait until this one is no excuse any more.
	time.Sleep(w.plan.Lease() + w.plan.Silence() + 3*time.Second)
	return err
}
