package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

const (
	// deadAfter is the time in ms after which a silent master is considered dead.
	deadAfter = 1500
	// failoverTimeout is the Sentinels' timeout of a failover in ms; the next one comes after twice that.
	failoverTimeout = 4000
)

// replicate starts the replicas of every server, and Sentinels outside a cluster.
func (w *World) replicate(start func() (*server, error)) (err error) {
	for i, master := range w.servers() {
		w.replicas = append(w.replicas, nil)
		for range w.plan.Replicas {
			s, err := start()
			if err != nil {
				return err
			}
			w.replicas[i] = append(w.replicas[i], s)
			if err := w.follow(s, master); err != nil {
				return err
			}
		}
	}
	if !w.plan.Cluster {
		w.sentinels, err = rig.StartSentinels(3, 2, w.server.Server, func(int) []string {
			return []string{
				fmt.Sprintf("sentinel down-after-milliseconds %s %d", rig.MasterSet, deadAfter),
				fmt.Sprintf("sentinel failover-timeout %s %d", rig.MasterSet, failoverTimeout),
			}
		})
		if err != nil {
			return err
		}
	}
	return w.healthy()
}

// all are the masters and their replicas.
func (w *World) all() []*server { return slices.Concat(w.servers(), slices.Concat(w.replicas...)) }

// follow makes a server a replica of a master.
func (w *World) follow(s, master *server) error {
	if !w.plan.Cluster {
		return s.Follow(master.Server)
	}
	others := slices.DeleteFunc(w.all(), func(one *server) bool { return one == s })
	if err := s.Join(bare(others)); err != nil {
		return err
	}
	return s.Replicate(master.Server)
}

// healthy waits until every replica is in sync with its master, and all servers and Sentinels know the roles.
func (w *World) healthy() error {
	for i, master := range w.servers() {
		for _, s := range w.replicas[i] {
			if err := master.AwaitReplication("port=" + s.Port() + ",state=online"); err != nil {
				return err
			}
		}
	}
	if !w.plan.Cluster {
		return rig.AwaitSentinels(w.sentinels, w.server.Server, w.plan.Replicas)
	}
	all := w.all()
	if err := rig.AwaitCluster(bare(all)); err != nil {
		return err
	}
	for _, s := range all {
		err := rig.Await("all servers know the roles of all", func() bool {
			nodes, err := s.Do("CLUSTER", "NODES")
			return err == nil && !strings.Contains(nodes.Str, "fail") && strings.Count(nodes.Str, "slave ") == len(all)-len(w.servers())
		})
		if err != nil {
			return err
		}
	}
	return nil
}
