package faults

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// deadAfter is the time in ms after which a silent master is considered dead.
	deadAfter = 1500
	// failoverTimeout is the Sentinels' timeout of a failover in ms; the next one comes after twice that.
	failoverTimeout = 4000
	// set is the master's name for the Sentinels.
	set = "master"
)

// replicate starts the replicas of every server, and Sentinels outside a cluster.
func (w *World) replicate(start func() (*server, error)) error {
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
	for n := 0; n < 3 && !w.plan.Cluster; n++ {
		s, err := startSentinel(w.server)
		if err != nil {
			return err
		}
		w.sentinels = append(w.sentinels, s)
	}
	return w.healthy()
}

// follow makes a server a replica of a master.
func (w *World) follow(s, master *server) error {
	_, port, _ := strings.Cut(master.addr, ":")
	if !w.plan.Cluster {
		_, err := s.do("REPLICAOF", host, port)
		return err
	}
	if _, err := s.do(master.meeting()...); err != nil {
		return err
	}
	id, err := last(master.do("CLUSTER", "MYID"))
	if err != nil {
		return err
	}
	return await("a server follows a master", func() bool {
		_, err := s.do("CLUSTER", "REPLICATE", id)
		return err == nil
	})
}

// startSentinel starts a Sentinel that watches a master, and must agree with another on its failure.
func startSentinel(master *server) (*server, error) {
	return onFreePort(func(addr string) (*server, error) {
		dir, err := os.MkdirTemp("", "robustness-sentinel")
		if err != nil {
			return nil, err
		}
		_, port, _ := net.SplitHostPort(addr)
		file := filepath.Join(dir, "sentinel.conf")
		s := &server{addr: addr, dir: dir, args: []string{file, "--sentinel"}, ready: "+monitor " + set}
		conf := fmt.Sprintf("bind %[1]s\nport %[2]s\nsentinel monitor %[3]s %[4]s 2\nsentinel down-after-milliseconds %[3]s %[5]d\nsentinel failover-timeout %[3]s %[6]d\n",
			host, port, set, strings.Replace(master.addr, ":", " ", 1), deadAfter, failoverTimeout)
		if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
			return nil, err
		}
		if err := s.run(); err != nil {
			return nil, err
		}
		return s, nil
	})
}

func (w *World) sentinelURL() string {
	var all []string
	for _, s := range w.sentinels {
		all = append(all, s.addr)
	}
	return "redis-sentinel://" + strings.Join(all, ",") + "?master_set=" + set
}

// healthy waits until every replica is in sync with its master, and all servers and Sentinels know the roles.
func (w *World) healthy() error {
	for i, master := range w.servers() {
		for _, s := range w.replicas[i] {
			_, port, _ := strings.Cut(s.addr, ":")
			if err := master.awaitReplication("port=" + port + ",state=online"); err != nil {
				return err
			}
		}
	}
	all := slices.Concat(w.servers(), slices.Concat(w.replicas...))
	for _, s := range all {
		if !w.plan.Cluster {
			break
		}
		if err := s.awaitCluster(len(all)); err != nil {
			return err
		}
		err := await("all servers know the roles of all", func() bool {
			lines, err := s.do("CLUSTER", "NODES")
			nodes := strings.Join(lines, "\n")
			return err == nil && !strings.Contains(nodes, "fail") && strings.Count(nodes, "slave ") == len(all)-len(w.servers())
		})
		if err != nil {
			return err
		}
	}
	for _, s := range w.sentinels {
		err := await("all Sentinels know all others", func() bool {
			lines, err := s.do("SENTINEL", "MASTER", set)
			if err != nil {
				return false
			}
			said := func(key, value string) bool {
				i := slices.Index(lines, key)
				return i >= 0 && i+2 < len(lines) && lines[i+2] == value
			}
			_, port, _ := strings.Cut(w.server.addr, ":")
			return said("flags", "master") && said("port", port) && said("num-other-sentinels", "2") && said("num-slaves", strconv.Itoa(w.plan.Replicas))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
