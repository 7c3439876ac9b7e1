package faults

import (
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// The faults of masters that have replicas. Locks are trusted only when a replica has them.
var takeovers = []Fault{
	takeover("a master is killed", killMaster, startAsReplica),
	takeover("a master hangs", hangMaster, wakeMaster),
	takeover("planned failover", planFailover, nothing),
}

// takeover has something happen to a master, so that a replica takes over. The fault is over when the
// new master has a replica. Then it waits until all is as before, which is time without a fault.
func takeover(name string, do, after func(w *World, i int, former *server) error) Fault {
	return Fault{name, func(w *World) error {
		i := w.random.IntN(len(w.replicas))
		former := w.servers()[i]
		err := w.during(history.Fault{Name: name, Proc: -1, Hinders: true}, func() error {
			if err := do(w, i, former); err != nil {
				return err
			}
			if err := w.awaitTakeover(i); err != nil {
				return err
			}
			if err := after(w, i, former); err != nil {
				return err
			}
			return w.servers()[i].awaitReplication("state=online")
		})
		if err != nil {
			return err
		}
		return w.healthy()
	}}
}

// awaitTakeover waits until a replica is the master, and goes by that.
func (w *World) awaitTakeover(i int) error {
	return await("a replica takes over", func() bool {
		n := slices.IndexFunc(w.replicas[i], func(s *server) bool { return s.replicates("role:master") })
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

// killMaster kills a master. What it has confirmed last is on no replica: they did not listen.
func killMaster(w *World, i int, master *server) error {
	for _, s := range w.replicas[i] {
		if err := s.signal(syscall.SIGSTOP); err != nil {
			return err
		}
	}
	if _, err := master.do("CLIENT", "KILL", "TYPE", "replica"); err != nil {
		return err
	}
	time.Sleep(w.between(0, 300))
	master.crash()
	for _, s := range w.replicas[i] {
		if err := s.signal(syscall.SIGCONT); err != nil {
			return err
		}
	}
	return nil
}

// startAsReplica starts a former master that was killed. One that is watched by Sentinels takes
// itself for the master until they look, unless it is told.
func startAsReplica(w *World, i int, former *server) error {
	var options []string
	if !w.plan.Cluster {
		options = append([]string{"--replicaof"}, strings.Replace(w.servers()[i].addr, ":", " ", 1))
	}
	return former.run(options...)
}

func hangMaster(_ *World, _ int, master *server) error { return master.signal(syscall.SIGSTOP) }

// wakeMaster lets a former master go on, which does not know yet that it is none any more.
func wakeMaster(w *World, _ int, former *server) error {
	time.Sleep(w.between(0, 1000))
	return former.signal(syscall.SIGCONT)
}

func planFailover(w *World, i int, _ *server) error {
	if w.plan.Cluster {
		_, err := w.replicas[i][0].do("CLUSTER", "FAILOVER")
		return err
	}
	return await("Sentinels accept a failover", func() bool {
		_, err := w.sentinels[w.random.IntN(len(w.sentinels))].do("SENTINEL", "FAILOVER", set)
		return err == nil
	})
}

// leaveAlive has a former master leave its cluster, with the connections that clients have to it,
// and come back as another.
func leaveAlive(w *World, i int, former *server) error {
	id, err := last(former.do("CLUSTER", "MYID"))
	if err != nil {
		return err
	}
	if err := w.servers()[i].awaitReplication("state=online"); err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Concat(w.servers(), slices.Concat(w.replicas...)), func(s *server) bool { return s == former })
	for _, s := range others {
		if _, err := s.do("CLUSTER", "FORGET", id); err != nil {
			return err
		}
	}
	if _, err := former.do("CLUSTER", "RESET", "HARD"); err != nil {
		return err
	}
	time.Sleep(w.between(500, 3000))
	return w.follow(former, w.servers()[i])
}
