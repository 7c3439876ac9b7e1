package faults

import (
	"slices"
	"strconv"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

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
		if err := rig.FormCluster(bare(w.servers())); err != nil {
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

// moveSlot moves the slot of a lock to another server of the cluster within seconds, as real
// tools do: meanwhile its keys may be on either server.
func moveSlot(w *World) error {
	lock := w.one("plain", "reentrant", "fenced", "fair", "readwrite", "actor", "multi-a", string(traffic.Expirable))
	reply, err := w.server.Do("CLUSTER", "KEYSLOT", lock)
	if err != nil {
		return err
	}
	slot, err := strconv.Atoi(reply.Str)
	if err != nil {
		return err
	}
	all := w.servers()
	at, known := w.moved[lock]
	if !known {
		at = slot * len(all) / rig.Slots
	}
	next := (at + 1) % len(all)
	from, to := all[at].Server, all[next].Server
	f := history.Fault{Name: "a slot is half moved", Proc: -1, Lock: lock}
	// Further keys of a lock may be on the other server than its hash; see docs/redisson.md.
	f.Hinders = slices.Contains([]string{"fair", "readwrite", "multi-a", string(traffic.Expirable)}, lock)
	err = w.during(f, func() error {
		if err := from.BeginMove(slot, to); err != nil {
			return err
		}
		time.Sleep(w.between(1000, 4000))
		if err := from.MigrateKeys(slot, to); err != nil {
			return err
		}
		time.Sleep(w.between(0, 1000))
		if err := from.MigrateKeys(slot, to); err != nil {
			return err
		}
		return from.EndMove(slot, to)
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
	change := []func(*rig.Rules){
		func(r *rig.Rules) { r.Refuse = true }, func(r *rig.Rules) { r.Up.Blocked = true },
		func(r *rig.Rules) { r.Down.Blocked = true }, func(r *rig.Rules) { r.DropReplies = true },
	}[w.random.IntN(4)]
	return w.during(f, func() error {
		for _, c := range victims {
			c.proxies()[i].Set(change)
		}
		time.Sleep(traffic.Range{From: 200 * time.Millisecond, To: 2 * time.Second}.Pick(w.random))
		for _, c := range victims {
			c.proxies()[i].Set(func(r *rig.Rules) { *r = rig.Rules{} })
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
			keys, err := s.remains()
			if err != nil {
				return nil, err
			}
			for _, key := range keys {
				left = append(left, s.Addr()+" has "+key+s.content(key))
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left, nil
		}
	}
}
