package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// slots is the number of slots of a Redis Cluster.
const slots = 16384

// startServers starts Redis: one server, several independent ones, or a cluster; and their
// replicas.
func (w *World) startServers() (err error) {
	var options []string
	if w.plan.Cluster {
		options = []string{"--cluster-enabled", "yes"}
	}
	if w.plan.Cluster && w.plan.Replicas > 0 {
		options = append(options, "--cluster-node-timeout", strconv.Itoa(deadAfter))
	}
	start := func() (*server, error) {
		if w.plan.Replicas > 0 {
			return startBehind(w.plan.Lag, options...)
		}
		return startServer(clock{rate: w.plan.ServerRate}, options...)
	}
	if w.server, err = start(); err != nil {
		return err
	}
	for n := 1; n < w.plan.Servers; n++ {
		s, err := start()
		if err != nil {
			return err
		}
		w.more = append(w.more, s)
	}
	if w.plan.Cluster {
		if err := w.meet(); err != nil {
			return err
		}
	}
	if w.plan.Replicas > 0 {
		return w.replicate(start)
	}
	return nil
}

// servers are the masters.
func (w *World) servers() []*server { return append([]*server{w.server}, w.more...) }

// meet makes a cluster of the servers, which share the slots evenly.
func (w *World) meet() error {
	all := w.servers()
	for i, s := range all {
		from, to := i*slots/len(all), (i+1)*slots/len(all)-1
		for _, command := range [][]string{
			{"CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(from), strconv.Itoa(to)},
			{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)},
			all[0].meeting(),
		} {
			if _, err := s.do(command...); err != nil {
				return err
			}
		}
	}
	for _, s := range all {
		if err := s.awaitCluster(len(all)); err != nil {
			return err
		}
	}
	return nil
}

// meeting is the command that makes another server join the server's cluster.
func (s *server) meeting() []string {
	_, port, _ := strings.Cut(s.addr, ":")
	command := []string{"CLUSTER", "MEET", host, port}
	if s.bus != "" {
		command = append(command, s.bus)
	}
	return command
}

// awaitCluster waits until the server knows that many servers, and the cluster is up.
func (s *server) awaitCluster(servers int) error {
	return await("the cluster is up", func() bool {
		lines, err := s.do("CLUSTER", "INFO")
		info := strings.Join(lines, "\n") + "\n"
		return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\n", servers))
	})
}

// agreement bounds the wait for servers to agree. Sentinels ask replicas every 10 s.
const agreement = time.Minute

// await waits until cond is true.
func await(what string, cond func() bool) error {
	for end := time.Now().Add(agreement); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("not within the time limit: %s", what)
		}
	}
	return nil
}

// last is the last line of a reply, the only value for most commands.
func last(lines []string, err error) (string, error) {
	if err != nil || len(lines) == 0 {
		return "", err
	}
	return lines[len(lines)-1], nil
}

// moveSlot moves the slot of a lock to another server of the cluster within seconds, as real
// tools do: meanwhile its keys may be on either server.
func moveSlot(w *World) error {
	lock := w.one("plain", "reentrant", "fenced", "fair", "readwrite", "actor", "multi-a", string(traffic.Expirable))
	slot, err := last(w.server.do("CLUSTER", "KEYSLOT", lock))
	if err != nil {
		return err
	}
	slot = strings.TrimPrefix(slot, ":")
	all := w.servers()
	at, known := w.moved[lock]
	if !known {
		n, err := strconv.Atoi(slot)
		if err != nil {
			return err
		}
		at = n * len(all) / slots
	}
	next := (at + 1) % len(all)
	from, to := all[at], all[next]
	fromID, err := last(from.do("CLUSTER", "MYID"))
	if err != nil {
		return err
	}
	toID, err := last(to.do("CLUSTER", "MYID"))
	if err != nil {
		return err
	}
	migrate := func() error {
		lines, err := from.do("CLUSTER", "GETKEYSINSLOT", slot, "100")
		if err != nil {
			return err
		}
		_, port, _ := strings.Cut(to.addr, ":")
		for i := 2; i < len(lines); i += 2 {
			if _, err := from.do("MIGRATE", host, port, lines[i], "0", "5000"); err != nil {
				return err
			}
		}
		return nil
	}
	f := history.Fault{Name: "a slot is half moved", Proc: -1, Lock: lock}
	// Further keys of a lock may be on the other server than its hash; see docs/redisson.md.
	f.Hinders = slices.Contains([]string{"fair", "readwrite", "multi-a", string(traffic.Expirable)}, lock)
	err = w.during(f, func() error {
		if _, err := to.do("CLUSTER", "SETSLOT", slot, "IMPORTING", fromID); err != nil {
			return err
		}
		if _, err := from.do("CLUSTER", "SETSLOT", slot, "MIGRATING", toID); err != nil {
			return err
		}
		time.Sleep(w.between(1000, 4000))
		if err := migrate(); err != nil {
			return err
		}
		time.Sleep(w.between(0, 1000))
		if err := migrate(); err != nil {
			return err
		}
		for _, s := range []*server{to, from} {
			if _, err := s.do("CLUSTER", "SETSLOT", slot, "NODE", toID); err != nil {
				return err
			}
		}
		return nil
	})
	w.moved[lock] = next
	return err
}

// loseServer makes one of several servers unreachable for one client, or for all.
func loseServer(w *World) error {
	i := w.random.IntN(1 + len(w.more))
	victims, f := w.clients, history.Fault{Name: "a server is out of reach", Proc: -1, Hinders: true}
	if w.random.IntN(2) == 0 {
		v := w.random.IntN(len(w.clients))
		victims, f.Proc = w.clients[v:v+1], w.clients[v].proc
	}
	change := []func(*rules){
		func(r *rules) { r.refuse = true }, func(r *rules) { r.up.blocked = true },
		func(r *rules) { r.down.blocked = true }, func(r *rules) { r.dropReplies = true },
	}[w.random.IntN(4)]
	return w.during(f, func() error {
		for _, c := range victims {
			c.proxies()[i].set(change)
		}
		time.Sleep(traffic.Range{From: 200 * time.Millisecond, To: 2 * time.Second}.Pick(w.random))
		for _, c := range victims {
			c.proxies()[i].set(func(r *rules) { *r = rules{} })
		}
		return nil
	})
}

// audit returns the keys that are on any server soon after all clients came to rest: a
// release that failed on some of the servers must have been repeated there.
func (w *World) audit() (left []string, err error) {
	const soon = 2 * time.Second
	for end := time.Now().Add(soon); ; time.Sleep(50 * time.Millisecond) {
		left = nil
		for _, s := range w.servers() {
			keys, err := s.list("KEYS", "*")
			if err != nil {
				return nil, err
			}
			for _, key := range keys {
				left = append(left, s.addr+" has "+key)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left, nil
		}
	}
}
