package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// slots is the number of slots of a Redis Cluster.
const slots = 16384

// Cluster starts a Redis Cluster of masters without replicas, which share the slots evenly
// and in their order, and waits until it is up.
func Cluster(t testing.TB, servers int) []*Server {
	t.Helper()
	all := make([]*Server, servers)
	for i := range all {
		all[i] = Start(t, "--cluster-enabled", "yes")
		first, last := i*slots/servers, (i+1)*slots/servers-1
		all[i].ok(t, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		all[i].ok(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		all[i].meet(t, all[0])
	}
	for _, s := range all {
		s.awaitCluster(t, servers)
	}
	return all
}

// ClusterReplica adds a replica of the first master to a cluster, and waits until it is in sync
// and all servers know it.
func ClusterReplica(t testing.TB, masters []*Server) *Server {
	t.Helper()
	replica := Join(t, masters)
	replica.ok(t, "CLUSTER", "REPLICATE", masters[0].id(t))
	replica.awaitSync(t)
	id := replica.id(t)
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
	added.meet(t, members[0])
	for _, s := range append(members[:len(members):len(members)], added) {
		s.awaitCluster(t, len(members)+1)
	}
	return added
}

// id is the server's node ID in its cluster.
func (s *Server) id(t testing.TB) string {
	t.Helper()
	return must[string](t, "CLUSTER MYID")(s.Do(t, "CLUSTER", "MYID").ToString())
}

func (s *Server) meet(t testing.TB, other *Server) {
	t.Helper()
	if s != other {
		s.ok(t, "CLUSTER", "MEET", host, strconv.Itoa(other.port))
	}
}

// awaitCluster waits until the server knows that many servers, and the cluster is up.
func (s *Server) awaitCluster(t testing.TB, servers int) {
	t.Helper()
	known := fmt.Sprintf("cluster_known_nodes:%d\r\n", servers)
	Eventually(t, "the cluster to be up", func() bool {
		info, err := s.Do(t, "CLUSTER", "INFO").ToString()
		return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, known)
	})
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
	name := strconv.Itoa(slot)
	to.ok(t, "CLUSTER", "SETSLOT", name, "IMPORTING", s.id(t))
	s.ok(t, "CLUSTER", "SETSLOT", name, "MIGRATING", to.id(t))
}

// MigrateKeys moves keys of a slot, or all of them if none is named. It fails if the other
// server has a key of that name.
func (s *Server) MigrateKeys(t testing.TB, slot int, to *Server, keys ...string) {
	t.Helper()
	if len(keys) == 0 {
		keys = must[[]string](t, "CLUSTER GETKEYSINSLOT")(s.Do(t, "CLUSTER", "GETKEYSINSLOT", strconv.Itoa(slot), "100").AsStrSlice())
	}
	for _, key := range keys {
		s.ok(t, "MIGRATE", host, strconv.Itoa(to.port), key, "0", "5000")
	}
}

// EndMove makes the other server the owner of the slot.
func (s *Server) EndMove(t testing.TB, slot int, to *Server) {
	t.Helper()
	name := strconv.Itoa(slot)
	to.ok(t, "CLUSTER", "SETSLOT", name, "NODE", to.id(t))
	s.ok(t, "CLUSTER", "SETSLOT", name, "NODE", to.id(t))
}

// Leave removes a server without slots from its cluster; the server keeps running.
func (s *Server) Leave(t testing.TB, others ...*Server) {
	t.Helper()
	id := s.id(t)
	for _, other := range others {
		other.ok(t, "CLUSTER", "FORGET", id)
	}
	s.ok(t, "CLUSTER", "RESET")
}
