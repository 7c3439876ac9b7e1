package rig

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MasterSet is the name of the master for the Sentinels.
const MasterSet = "master"

// StartSentinel starts a Sentinel that watches a master (host:port) and its replicas. So many Sentinels must agree that
// the master is down. Lines are further lines of its configuration.
func StartSentinel(master string, quorum int, o Options, lines ...string) (*Server, error) {
	option := cmp.Or(o.PortOption, "port")
	return launch("+monitor "+MasterSet, o, func(port int, dir string) ([]string, error) {
		file := filepath.Join(dir, "sentinel.conf")
		conf := append([]string{
			"bind " + Host, "dir " + dir, option + " " + strconv.Itoa(port),
			fmt.Sprintf("sentinel monitor %s %s %d", MasterSet, strings.Replace(master, ":", " ", 1), quorum),
		}, lines...)
		return []string{file, "--sentinel"}, os.WriteFile(file, []byte(strings.Join(conf, "\n")+"\n"), 0o600)
	})
}

// AwaitSentinels waits until all Sentinels know each other, and that the master has so many replicas and is not down.
func AwaitSentinels(all []*Server, master *Server, replicas int) error {
	for _, s := range all {
		if err := Await("a Sentinel knows all others", func() bool {
			reply, err := s.Do("SENTINEL", "MASTER", MasterSet)
			state := reply.Map()
			return err == nil && state["flags"] == "master" && state["port"] == master.Port() &&
				state["num-other-sentinels"] == strconv.Itoa(len(all)-1) && state["num-slaves"] == strconv.Itoa(replicas)
		}); err != nil {
			return err
		}
	}
	return nil
}

// SentinelURL is the URL for clients that follow the master.
func SentinelURL(all []*Server) string {
	var addrs []string
	for _, s := range all {
		addrs = append(addrs, s.Addr())
	}
	return "redis-sentinel://" + strings.Join(addrs, ",") + "?master_set=" + MasterSet
}

// StartSentinels starts n Sentinels, of which quorum must agree that the master is down. lines returns further lines of
// the configuration of the i-th.
func StartSentinels(n, quorum int, master *Server, lines func(i int) []string) (all []*Server, err error) {
	for i := range n {
		s, started := StartSentinel(master.Addr(), quorum, Options{}, lines(i)...)
		if err = errors.Join(err, started); started == nil {
			all = append(all, s)
		}
	}
	if err != nil {
		StopAll(all)
		return nil, err
	}
	return all, nil
}
