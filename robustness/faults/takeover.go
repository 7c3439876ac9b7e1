package faults

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// The faults of masters that have replicas.
var takeovers = []Fault{
	takeover("a master is killed", true, killMaster, startAsReplica),
	takeover("a master hangs", true, hangMaster, resumeMaster),
	takeover("planned failover", false, planFailover, nothing),
	{"replicas lag", lag},
	{"replicas receive nothing", isolateReplicas},
}

// takeover makes a replica take over from a master. The fault is over when the new master has a
// replica. Then it waits, as time without a fault, until all servers are healthy.
//
// If it loses, the new master lacks the last writes that the former confirmed, or the former continues to
// confirm writes for a moment. That breaks leases without confirmation by replicas, and leases confirmed
// only by other replicas than the one that takes over.
func takeover(name string, loses bool, do, after func(w *World, i int, former *server) error) Fault {
	return Fault{name, func(w *World) error {
		i := w.random.IntN(len(w.replicas))
		former := w.servers()[i]
		clear(w.reached)
		lost := loses && w.plan.Confirm == 0
		err := w.during(history.Fault{Name: name, Proc: -1, Hinders: true, BreaksLeases: lost, ErasesData: lost, Takeover: true}, func() error {
			if err := do(w, i, former); err != nil {
				return err
			}
			if err := w.awaitTakeover(i); err != nil {
				return err
			}
			if err := after(w, i, former); err != nil {
				return err
			}
			return w.servers()[i].AwaitReplication("state=online")
		})
		if err != nil {
			return err
		}
		for _, n := range w.reached {
			if f := &w.round.faults[len(w.round.faults)-1]; n > w.reached[w.servers()[i]] && !f.BreaksLeases {
				f.Name, f.BreaksLeases, f.ErasesData = f.Name+", and a replica that has less takes over", true, true
			}
		}
		return w.healthy()
	}}
}

// lag delays all replicas, by so little in both directions that the shortest lease, of 700 ms, is confirmed in time.
func lag(w *World) error {
	return w.toReplicas(history.Fault{Name: "replicas lag", Proc: -1}, func(r *rig.Rules) { r.Stream.Delay = w.between(20, 50) })
}

// isolateReplicas blocks the stream to all replicas for so long that nothing can be confirmed in time.
func isolateReplicas(w *World) error {
	fault := history.Fault{Name: "replicas receive nothing", Proc: -1, Hinders: true}
	return w.toReplicas(fault, func(r *rig.Rules) { r.Stream.Blocked = true })
}

// toReplicas changes the rules of the streams to all replicas for a while.
func (w *World) toReplicas(f history.Fault, change func(*rig.Rules)) error {
	return w.during(f, func() error {
		for _, s := range w.servers() {
			s.Front().Set(change)
		}
		time.Sleep(w.ofLease(5, 40))
		for _, s := range w.servers() {
			s.Front().Set(w.normalRules)
		}
		return nil
	})
}

// normalRules sets the rules of a proxy of a server with replicas.
func (w *World) normalRules(r *rig.Rules) { *r = rig.Rules{Stream: rig.Way{Delay: w.plan.Lag}} }

// awaitTakeover waits until a replica is the master, and updates the World.
func (w *World) awaitTakeover(i int) error {
	return rig.Await("a replica takes over", func() bool {
		n := slices.IndexFunc(w.replicas[i], func(s *server) bool { return s.Replication("role:master") })
		if n < 0 {
			return false
		}
		at := &w.server
		if i > 0 {
			at = &w.more[i-1]
		}
		*at, w.replicas[i][n] = w.replicas[i][n], *at
		return true
	})
}

func nothing(*World, int, *server) error { return nil }

// killMaster kills a master whose last writes are on no replica. It records the offset of each replica.
func killMaster(w *World, i int, master *server) error {
	master.Front().Set(func(r *rig.Rules) { r.Stream.Blocked = true })
	time.Sleep(w.between(500, 1500))
	master.crash()
	master.Front().Set(w.normalRules)
	for _, s := range w.replicas[i] {
		info, err := s.Do("INFO", "replication")
		if err != nil {
			return err
		}
		for line := range strings.Lines(info.Str) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "slave_repl_offset:"); ok {
				w.reached[s], _ = strconv.Atoi(text)
			}
		}
	}
	return nil
}

// startAsReplica starts a former master that was killed. Without --replicaof, a server watched by
// Sentinels would act as a master until they reconfigure it.
func startAsReplica(w *World, i int, former *server) error {
	var options []string
	if !w.plan.Cluster {
		options = append([]string{"--replicaof"}, strings.Replace(w.servers()[i].Addr(), ":", " ", 1))
	}
	return former.Restart(options...)
}

func hangMaster(_ *World, _ int, master *server) error { return master.Signal(syscall.SIGSTOP) }

// resumeMaster resumes a former master, which does not know of the takeover yet.
func resumeMaster(w *World, _ int, former *server) error {
	time.Sleep(w.between(0, 1000))
	return former.Signal(syscall.SIGCONT)
}

func planFailover(w *World, i int, _ *server) error {
	if w.plan.Cluster {
		_, err := w.replicas[i][0].Do("CLUSTER", "FAILOVER")
		return err
	}
	return rig.Await("Sentinels accept a failover", func() bool {
		_, err := w.sentinels[w.random.IntN(len(w.sentinels))].Do("SENTINEL", "FAILOVER", rig.MasterSet)
		return err == nil
	})
}

// leaveAlive removes a running former master from its cluster, keeps the clients' connections to it,
// and adds it again with another ID.
func leaveAlive(w *World, i int, former *server) error {
	if err := w.servers()[i].AwaitReplication("state=online"); err != nil {
		return err
	}
	others := slices.DeleteFunc(w.all(), func(s *server) bool { return s == former })
	if err := former.Leave("HARD", bare(others)...); err != nil {
		return err
	}
	time.Sleep(w.between(500, 3000))
	return w.follow(former, w.servers()[i])
}
