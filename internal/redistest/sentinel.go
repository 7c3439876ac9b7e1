package redistest

import (
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
	var proc *process
	port, err := onFreePort(func(port int) (err error) {
		conf := fmt.Sprintf("bind %s\nport %d\nsentinel monitor master %s %d 1\nsentinel down-after-milliseconds master %d\n",
			host, port, host, master.port, silence)
		if err = os.WriteFile(file, []byte(conf), 0o600); err == nil {
			proc, err = spawn("+monitor master", file, "--sentinel")
		}
		return err
	})
	if err != nil {
		t.Fatalf("redistest: sentinel: %v", err)
	}
	t.Cleanup(proc.kill)
	return fmt.Sprintf("redis://%s:%d?master_set=master", host, port)
}
