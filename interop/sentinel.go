package main

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// sentinelSetup is a master with its replicas, and the Sentinels that watch them.
type sentinelSetup struct {
	servers   []*rig.Server // the master comes first
	sentinels []*rig.Server
}

// startSentinelSetup starts a master, replicas, and three Sentinels of which two must agree, and waits
// until these know each other and all servers. Every server refuses writes without a replica.
func startSentinelSetup(replicas int) (w *sentinelSetup, err error) {
	w = &sentinelSetup{}
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	options := rig.Options{Args: []string{"--min-replicas-to-write", "1"}}
	master, err := rig.Start(options)
	if err != nil {
		return nil, err
	}
	w.servers = append(w.servers, master)
	for range replicas {
		s, err := rig.StartReplica(master, master.Addr(), options)
		if err != nil {
			return nil, err
		}
		w.servers = append(w.servers, s)
	}
	w.sentinels, err = rig.StartSentinels(3, 2, master, func(int) []string {
		return []string{fmt.Sprintf("sentinel down-after-milliseconds %s 5000", rig.MasterSet)}
	})
	if err != nil {
		return nil, err
	}
	return w, rig.AwaitSentinels(w.sentinels, master, replicas)
}

// promoted is the replica that has become the master; nil if none has.
func (w *sentinelSetup) promoted() *rig.Server {
	for _, s := range w.servers[1:] {
		if s.Replication("role:master") {
			return s
		}
	}
	return nil
}

// fail makes the Sentinels promote a replica, while the old master pauses writes.
func (w *sentinelSetup) fail() error {
	if _, err := w.servers[0].Do("CLIENT", "PAUSE", "3000", "WRITE"); err != nil {
		return err
	}
	_, err := w.sentinels[0].Do("SENTINEL", "FAILOVER", rig.MasterSet)
	return err
}

func (w *sentinelSetup) stop() {
	rig.StopAll(w.sentinels)
	rig.StopAll(w.servers)
}
