package redistest

import (
	"fmt"
	"strings"
	"testing"
)

// Replica starts a server that follows a master, and waits until it has what that has.
func Replica(t testing.TB, master *Server) *Server {
	t.Helper()
	return replicaOf(t, master, master.Addr())
}

// ReplicaBehind starts a server that follows a master through a proxy, which delays and stops what
// is replicated, and its confirmations.
func ReplicaBehind(t testing.TB, master *Server) (*Server, *Proxy) {
	t.Helper()
	proxy := NewProxy(t, master.Addr())
	proxy.set(func() { proxy.stream = true })
	return replicaOf(t, master, proxy.Addr()), proxy
}

func replicaOf(t testing.TB, master *Server, addr string) *Server {
	t.Helper()
	master.ok(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0") // else it waits 5 s for more replicas
	replica := Start(t, "--replicaof", strings.Replace(addr, ":", " ", 1))
	replica.awaitSync(t)
	Eventually(t, "the master to count on its confirmations", func() bool {
		info, _ := master.Do(t, "INFO", "replication").ToString()
		return strings.Contains(info, fmt.Sprintf("port=%d,state=online", replica.port))
	})
	return replica
}

// Follow makes a server the replica of another, and waits until it has what that has.
func (s *Server) Follow(t testing.TB, master *Server) {
	t.Helper()
	master.ok(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0") // else it waits 5 s for more replicas
	s.ok(t, append([]string{"REPLICAOF"}, strings.Split(master.Addr(), ":")...)...)
	s.awaitSync(t)
}

// Promote makes a replica a master, with what it has.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.ok(t, "REPLICAOF", "NO", "ONE")
	s.AwaitMaster(t)
}

// AwaitMaster waits until a replica has been promoted.
func (s *Server) AwaitMaster(t testing.TB) {
	t.Helper()
	s.awaitRole(t, "the replica to be promoted", 0, "master")
}

func (s *Server) awaitSync(t testing.TB) {
	t.Helper()
	s.awaitRole(t, "the replica to be in step", 3, "connected")
}

// awaitRole waits until a server says that of itself at a place of its answer to ROLE.
func (s *Server) awaitRole(t testing.TB, what string, place int, want string) {
	t.Helper()
	Eventually(t, what, func() bool {
		role, err := s.Do(t, "ROLE").ToArray()
		if err != nil || len(role) <= place { // a change of the role ends connections
			return false
		}
		got, err := role[place].ToString()
		return err == nil && got == want
	})
}

// IsMaster reports whether a server says that it is one.
func (s *Server) IsMaster(t testing.TB) bool {
	t.Helper()
	role, err := s.Do(t, "ROLE").ToArray()
	if err != nil || len(role) == 0 {
		return false
	}
	name, _ := role[0].ToString()
	return name == "master"
}
