package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// silence is the time in ms without an answer after which a Sentinel considers its master down.
const silence = 1000

// Sentinel starts a redis-sentinel that watches a server and its present replicas, and decides
// alone on a failover. It returns the URL for clients that follow the master. It is stopped
// when the test ends. lines are further lines of its configuration.
func Sentinel(t testing.TB, master *Server, lines ...string) (url string) {
	t.Helper()
	return fmt.Sprintf("redis://%s:%s?master_set=master", host, startSentinel(t, "port", master.Addr(), lines...))
}

// Sentinels starts three Sentinels that watch a server and its replicas, of which two must agree,
// and waits until they know each other and that many replicas. They answer commands like servers.
//
// Each detects a dead master a few seconds after the one before it: three that do so at the
// same time may each vote for themselves, and then there is no failover for a long while.
func Sentinels(t testing.TB, master *Server, replicas int) (url string, all []*Server) {
	t.Helper()
	for i := range 3 {
		port, err := strconv.Atoi(startSentinel(t, "port", master.Addr(), "sentinel failover-timeout master 20000",
			fmt.Sprintf("sentinel down-after-milliseconds master %d", silence+i*5000)))
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{port: port}
		t.Cleanup(s.Stop)
		all = append(all, s)
		url += "," + s.Addr()
	}
	for _, s := range all {
		Eventually(t, "a Sentinel to know all others", func() bool {
			state, err := s.Do(t, "SENTINEL", "MASTER", "master").AsStrMap()
			return err == nil && state["num-other-sentinels"] == "2" && state["num-slaves"] == strconv.Itoa(replicas)
		})
	}
	return "redis-sentinel://" + url[1:] + "?master_set=master", all
}

// startSentinel starts a Sentinel; option sets its port.
func startSentinel(t testing.TB, option, master string, lines ...string) (port string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	var proc *process
	number, err := onFreePort(func(port int) (err error) {
		conf := fmt.Sprintf("bind %s\n%s %d\nsentinel monitor master %s 1\nsentinel down-after-milliseconds master %d\n%s\n",
			host, option, port, strings.Replace(master, ":", " ", 1), silence, strings.Join(lines, "\n"))
		if err = os.WriteFile(file, []byte(conf), 0o600); err == nil {
			proc, err = spawn("+monitor master", file, "--sentinel")
		}
		return err
	})
	if err != nil {
		t.Fatalf("redistest: sentinel: %v", err)
	}
	t.Cleanup(proc.kill)
	return strconv.Itoa(number)
}
