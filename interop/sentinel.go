package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// sentinelSetup is a master with its replicas, and the Sentinels that watch them.
type sentinelSetup struct {
	url       string
	servers   []rueidis.Client // the master comes first
	sentinels []rueidis.Client
	// pause is how long the master pauses writes before a planned failover.
	pause time.Duration
	stops []func()
}

// master is the master's name for the Sentinels.
const master = "interop"

// startSentinelSetup starts a master, replicas, and three Sentinels of which two must agree, and waits
// until these know each other and all servers. Every server refuses writes with fewer than toWrite replicas.
func startSentinelSetup(ctx context.Context, replicas, toWrite int) (w *sentinelSetup, err error) {
	w = &sentinelSetup{}
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	var first string
	options := []string{"--min-replicas-to-write", strconv.Itoa(toWrite), "--repl-diskless-sync-delay", "0"}
	for i := range 1 + replicas {
		more := options
		if i > 0 {
			more = append(more, "--replicaof", strings.Replace(first, ":", " ", 1))
		}
		address, client, err := w.keep(startServer(more...))
		if err != nil {
			return nil, err
		}
		if w.servers = append(w.servers, client); i == 0 {
			first = address
		}
	}
	conf := fmt.Sprintf("bind 127.0.0.1\nsentinel monitor %[1]s %[2]s 2\nsentinel down-after-milliseconds %[1]s 5000\n", master, strings.Replace(first, ":", " ", 1))
	var addresses []string
	for range 3 {
		address, client, err := w.keep(start(func(port, dir string) ([]string, error) {
			file := filepath.Join(dir, "sentinel.conf")
			return []string{file, "--sentinel"}, os.WriteFile(file, []byte("port "+port+"\ndir "+dir+"\n"+conf), 0o600)
		}))
		if err != nil {
			return nil, err
		}
		w.sentinels, addresses = append(w.sentinels, client), append(addresses, address)
	}
	w.url = "redis-sentinel://" + strings.Join(addresses, ",") + "?master_set=" + master
	for began := time.Now(); !w.ready(ctx, replicas); time.Sleep(50 * time.Millisecond) {
		if ctx.Err() != nil || time.Since(began) > timeout {
			return nil, fmt.Errorf("the Sentinels do not find each other and %d replicas in sync", replicas)
		}
	}
	return w, nil
}

// keep connects to a server that was started, and records what stop must end.
func (w *sentinelSetup) keep(url string, stop func(), err error) (address string, client rueidis.Client, _ error) {
	if err != nil {
		return "", nil, err
	}
	w.stops, address = append(w.stops, stop), strings.TrimPrefix(url, "redis://")
	client, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true, DisableCache: true})
	if err == nil {
		w.stops = append(w.stops, client.Close)
	}
	return address, client, err
}

// ready reports whether the Sentinels know each other and that many replicas, and these are in sync.
func (w *sentinelSetup) ready(ctx context.Context, replicas int) bool {
	for _, s := range w.sentinels {
		state, err := s.Do(ctx, s.B().Arbitrary("SENTINEL", "MASTER", master).Build()).AsStrMap()
		if err != nil || state["num-other-sentinels"] != "2" || state["num-slaves"] != strconv.Itoa(replicas) {
			return false
		}
	}
	for _, s := range w.servers[1:] {
		role, err := s.Do(ctx, s.B().Role().Build()).ToArray()
		if err != nil || len(role) < 4 {
			return false
		}
		if state, _ := role[3].ToString(); state != "connected" {
			return false
		}
	}
	return true
}

// promoted is the replica that has become the master; nil if none has.
func (w *sentinelSetup) promoted(ctx context.Context) rueidis.Client {
	for _, s := range w.servers[1:] {
		if role(ctx, s) == "master" {
			return s
		}
	}
	return nil
}

// fail makes the Sentinels promote a replica.
func (w *sentinelSetup) fail(ctx context.Context) error {
	if s := w.servers[0]; w.pause > 0 {
		if err := s.Do(ctx, s.B().ClientPause().Timeout(w.pause.Milliseconds()).Write().Build()).Error(); err != nil {
			return err
		}
	}
	s := w.sentinels[0]
	return s.Do(ctx, s.B().Arbitrary("SENTINEL", "FAILOVER", master).Build()).Error()
}

// role is the role in the server's reply to ROLE; "" without a reply.
func role(ctx context.Context, server rueidis.Client) string {
	role, err := server.Do(ctx, server.B().Role().Build()).ToArray()
	if err != nil || len(role) == 0 {
		return ""
	}
	name, _ := role[0].ToString()
	return name
}

// stop ends all clients and servers, the latest first.
func (w *sentinelSetup) stop() {
	for i := len(w.stops) - 1; i >= 0; i-- {
		w.stops[i]()
	}
}
