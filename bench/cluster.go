package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
)

const (
	masters = 3
	slots   = 16384
)

// startCluster starts a cluster of masters, and waits until all of them serve. The first has theKey.
func startCluster() (addrs []string, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, one := range stops {
			one()
		}
	}
	for range masters {
		dir, err := os.MkdirTemp("", "lockkeeper-bench")
		if err != nil {
			stop()
			return nil, nil, err
		}
		stops = append(stops, func() { os.RemoveAll(dir) })
		addr, one, err := startRedis(false, "--cluster-enabled", "yes", "--dir", dir)
		if err != nil {
			stop()
			return nil, nil, err
		}
		stops, addrs = append([]func(){one}, stops...), append(addrs, addr)
	}
	create := append([]string{"--cluster", "create", "--cluster-yes"}, addrs...)
	if out, err := exec.Command("redis-cli", create...).CombinedOutput(); err != nil {
		stop()
		return nil, nil, fmt.Errorf("redis-cli cannot create a cluster: %w\n%s", err, out)
	}
	for _, addr := range addrs {
		up := func() bool {
			info, err := ask(addr, "CLUSTER INFO")
			return err == nil && strings.Contains(info, "cluster_state:ok")
		}
		for end := time.Now().Add(timeout); !up() && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
	}
	owner := int(keyspace.Slot(theKey)) * masters / slots
	addrs[0], addrs[owner] = addrs[owner], addrs[0]
	return addrs, stop, nil
}

var busPublications = regexp.MustCompile(`cluster_stats_messages_publish\w*_sent:(\d+)`)

// readBus counts the published messages that the servers of a cluster have sent to each other.
func readBus(addrs []string) (sent int, err error) {
	for _, addr := range addrs {
		info, err := ask(addr, "CLUSTER INFO")
		if err != nil {
			return 0, err
		}
		for _, count := range busPublications.FindAllStringSubmatch(info, -1) {
			n, _ := strconv.Atoi(count[1])
			sent += n
		}
	}
	return sent, nil
}
