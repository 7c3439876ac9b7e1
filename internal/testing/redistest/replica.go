package redistest

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// Replica starts a replica of a master, and waits until it is in sync.
func Replica(t testing.TB, master *Server) *Server {
	t.Helper()
	return replicaOf(t, master, master.Addr())
}

// ReplicaBehind starts a replica that follows its master through a proxy, which can delay and block
// the replication stream and its acknowledgements.
func ReplicaBehind(t testing.TB, master *Server) (*Server, *Proxy) {
	t.Helper()
	proxy := NewProxy(t, master.Addr())
	return replicaOf(t, master, proxy.Addr()), proxy
}

func replicaOf(t testing.TB, master *Server, addr string) *Server {
	t.Helper()
	replica, err := rig.StartReplica(master.Server, addr, rig.Options{})
	check(t, err)
	return keep(t, replica)
}

// Follow makes a server the replica of another, and waits until it is in sync.
func (s *Server) Follow(t testing.TB, master *Server) {
	t.Helper()
	check(t, s.Server.Follow(master.Server))
}

// Promote makes a replica a master.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	check(t, s.Server.Promote())
	s.AwaitMaster(t)
}

// AwaitMaster waits until a replica has been promoted.
func (s *Server) AwaitMaster(t testing.TB) {
	t.Helper()
	Eventually(t, "the replica to be promoted", func() bool { return s.IsMaster(t) })
}

// IsMaster reports whether a server is a master, according to its reply to ROLE. It asks with the test's client, since
// a change of the role by a Sentinel ends connections, and the client connects again.
func (s *Server) IsMaster(t testing.TB) bool {
	t.Helper()
	role, err := s.Do(t, "ROLE").ToArray()
	if err != nil || len(role) == 0 {
		return false
	}
	name, _ := role[0].ToString()
	return name == "master"
}
