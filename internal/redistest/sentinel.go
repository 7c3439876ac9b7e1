//go:build unix

package redistest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// silence is after how many ms without an answer a Sentinel takes its master for dead.
const silence = 1000

// Sentinel starts a redis-sentinel that watches a server and the replicas that it has
// by now, and is alone in deciding on a failover. It gives the URL for clients that
// follow the master. It is stopped when the test ends.
func Sentinel(t testing.TB, master *Server) (url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	for range 10 {
		port, err := freePort()
		if err == nil {
			err = os.WriteFile(file, fmt.Appendf(nil,
				"bind %s\nport %d\nsentinel monitor master %s %d 1\nsentinel down-after-milliseconds master %d\n",
				host, port, host, master.port, silence), 0o600)
		}
		var proc *process
		if err == nil {
			proc, err = spawn("+monitor master", file, "--sentinel")
		}
		if err == nil {
			t.Cleanup(proc.kill)
			return fmt.Sprintf("redis://%s:%d?master_set=master", host, port)
		}
		if !errors.Is(err, errPortTaken) {
			t.Fatalf("redistest: sentinel: %v", err)
		}
	}
	t.Fatal("redistest: no port for a sentinel")
	return ""
}

// Replica starts a server that follows a master, and waits until it does.
func Replica(t testing.TB, master *Server) *Server {
	t.Helper()
	replica := Start(t, "--replicaof", fmt.Sprintf("%s %d", host, master.port))
	replica.awaitSync(t)
	return replica
}

// awaitSync waits until a replica has what its master has.
func (s *Server) awaitSync(t testing.TB) {
	t.Helper()
	Eventually(t, "the replica to be in step", func() bool {
		role, err := s.Do(t, "ROLE").ToArray()
		if err != nil || len(role) < 4 {
			return false
		}
		state, err := role[3].ToString()
		return err == nil && state == "connected"
	})
}

// AwaitMaster waits until a replica has been promoted.
func (s *Server) AwaitMaster(t testing.TB) {
	t.Helper()
	Eventually(t, "the replica to be promoted", func() bool {
		role, err := s.Do(t, "ROLE").ToArray()
		if err != nil || len(role) == 0 {
			return false
		}
		name, err := role[0].ToString()
		return err == nil && name == "master"
	})
}
