package main

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

const masters = 3

// startRedis starts a redis-server, or a cluster whose first server has theKey.
func startRedis(pinned, cluster bool) (servers []*rig.Server, err error) {
	if !cluster {
		s, err := rig.Start(rig.Options{Wrap: onFirstCore(pinned)})
		return []*rig.Server{s}, err
	}
	if servers, err = rig.StartCluster(masters, rig.Options{}); err != nil {
		return nil, err
	}
	owner := int(keyspace.Slot(theKey)) * masters / rig.Slots
	servers[0], servers[owner] = servers[owner], servers[0]
	return servers, nil
}

// onFirstCore is the command that runs another on the first core, if pinned and where taskset is installed.
func onFirstCore(pinned bool) []string {
	if taskset, err := exec.LookPath("taskset"); pinned && err == nil {
		return []string{taskset, "-c", "0"}
	}
	return nil
}

// usage is the work of Redis since its start.
type usage struct {
	CPU  float64 // seconds
	Sent int     // commands that clients sent
	All  int     // those, and the commands that scripts called
}

func (u usage) since(v usage) usage {
	return usage{u.CPU - v.CPU, u.Sent - v.Sent, u.All - v.All}
}

// readUsage reads the usage of all servers on new connections; sends is as in candidate.
func readUsage(servers, sends []string) (all usage, err error) {
	for _, addr := range servers {
		u, err := readServer(addr, sends)
		if err != nil {
			return all, err
		}
		all = usage{all.CPU + u.CPU, all.Sent + u.Sent, all.All + u.All}
	}
	return all, nil
}

func readServer(addr string, sends []string) (u usage, err error) {
	info, err := rig.Do(addr, "INFO", "ALL")
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(info.Str) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if key == "used_cpu_sys" || key == "used_cpu_user" {
			seconds, _ := strconv.ParseFloat(value, 64)
			u.CPU += seconds
		}
		name, isCommand := strings.CutPrefix(key, "cmdstat_")
		if !isCommand || name == "info" {
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		n, _ := strconv.Atoi(calls)
		u.All += n
		if slices.Contains(sends, name) {
			u.Sent += n
		}
	}
	return u, nil
}
