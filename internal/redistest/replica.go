package redistest

import (
	"fmt"
	"strings"
	"testing"
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
	proxy.set(func() { proxy.stream = true })
	return replicaOf(t, master, proxy.Addr()), proxy
}

func replicaOf(t testing.TB, master *Server, addr string) *Server {
	t.Helper()
	master.ok(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0") // otherwise it waits 5 s for more replicas
	replica := Start(t, "--replicaof", strings.Replace(addr, ":", " ", 1))
	replica.awaitSync(t)
	Eventually(t, "the master to count its acknowledgements", func() bool {
		info, _ := master.Do(t, "INFO", "replication").ToString()
		return strings.Contains(info, fmt.Sprintf("port=%d,state=online", replica.port))
	})
	return replica
}

// Follow makes a server the replica of another, and waits until it is in sync.
func (s *Server) Follow(t testing.TB, master *Server) {
	t.Helper()
	master.ok(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0") // otherwise it waits 5 s for more replicas
	s.ok(t, append([]string{"REPLICAOF"}, strings.Split(master.Addr(), ":")...)...)
	s.awaitSync(t)
}

// Promote makes a replica a master.
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
	s.awaitRole(t, "the replica to be in sync", 3, "connected")
}

// awaitRole waits until the element at an index of the reply to ROLE is want.
func (s *Server) awaitRole(t testing.TB, what string, index int, want string) {
	t.Helper()
	Eventually(t, what, func() bool {
		role, err := s.Do(t, "ROLE").ToArray()
		if err != nil || len(role) <= index { // a change of the role ends connections
			return false
		}
		got, err := role[index].ToString()
		return err == nil && got == want
	})
}

// IsMaster reports whether a server is a master, according to its reply to ROLE.
func (s *Server) IsMaster(t testing.TB) bool {
	t.Helper()
	role, err := s.Do(t, "ROLE").ToArray()
	if err != nil || len(role) == 0 {
		return false
	}
	name, _ := role[0].ToString()
	return name == "master"
}
