package redistest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// Cluster starts a Redis Cluster of masters without replicas, which share the slots evenly
// and in their order, and waits until it is up.
func Cluster(t testing.TB, servers int) (all []*Server) {
	t.Helper()
	started, err := rig.StartCluster(servers, rig.Options{})
	check(t, err)
	for _, s := range started {
		all = append(all, keep(t, s))
	}
	return all
}

// bare are the servers as package rig knows them.
func bare(all []*Server) (servers []*rig.Server) {
	for _, s := range all {
		servers = append(servers, s.Server)
	}
	return servers
}

// ClusterReplica adds a replica of the first master to a cluster, and waits until it is in sync
// and all servers know it.
func ClusterReplica(t testing.TB, masters []*Server) *Server {
	t.Helper()
	replica := Join(t, masters)
	check(t, replica.Replicate(masters[0].Server))
	check(t, replica.AwaitReplication("master_link_status:up"))
	id, err := replica.NodeID()
	check(t, err)
	for _, s := range append(masters[:len(masters):len(masters)], replica) {
		Eventually(t, "every server to name the replica to clients", func() bool { // a server does so when it knows the replica's offset
			slots, err := s.Do(t, "CLUSTER", "SLOTS").ToAny()
			return err == nil && strings.Contains(fmt.Sprint(slots), id)
		})
	}
	return replica
}

// Join adds a server without slots to a cluster, and waits until all servers know it.
func Join(t testing.TB, members []*Server) *Server {
	t.Helper()
	added := Start(t, "--cluster-enabled", "yes")
	check(t, added.Server.Join(bare(members)))
	return added
}

// MoveSlot moves a slot with its keys to another server of the cluster.
func (s *Server) MoveSlot(t testing.TB, slot int, to *Server) {
	t.Helper()
	s.BeginMove(t, slot, to)
	s.MigrateKeys(t, slot, to)
	s.EndMove(t, slot, to)
}

// BeginMove leaves a slot between two servers: its keys are still here, and new ones go to the other.
func (s *Server) BeginMove(t testing.TB, slot int, to *Server) {
	t.Helper()
	check(t, s.Server.BeginMove(slot, to.Server))
}

// MigrateKeys moves keys of a slot, or all of them if none is named. It fails if the other
// server has a key of that name.
func (s *Server) MigrateKeys(t testing.TB, slot int, to *Server, keys ...string) {
	t.Helper()
	check(t, s.Server.MigrateKeys(slot, to.Server, keys...))
}

// EndMove makes the other server the owner of the slot.
func (s *Server) EndMove(t testing.TB, slot int, to *Server) {
	t.Helper()
	check(t, s.Server.EndMove(slot, to.Server))
}

// Leave removes a server without slots from its cluster; the server keeps running.
func (s *Server) Leave(t testing.TB, others ...*Server) {
	t.Helper()
	check(t, s.Server.Leave("SOFT", bare(others)...))
}

// Forgotten removes a server from the cluster of the others, but does not tell it.
func (s *Server) Forgotten(t testing.TB, others ...*Server) {
	t.Helper()
	check(t, s.Server.Forgotten(bare(others)...))
}
