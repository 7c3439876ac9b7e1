package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// A Fault is a fault that may happen; when Do returns it is over.
type Fault struct {
	Name string
	Do   func(w *World) error
}

// All are the faults of a world with one server.
var All = []Fault{
	{"kill a client", killClient},
	{"pause a client", pauseClient},
	{"crash lock actors", crashActors("crash lock actors", 1)},
	{"crash twice in a row", crashActors("crash twice in a row", -1)},
	{"pause Redis", pauseRedis},
	{"delay", network("delay", true, func(w *World, r *rig.Rules) {
		r.Up.Delay, r.Down.Delay = w.between(5, 80), w.between(5, 80)
	})},
	{"late replies", network("late replies", true, func(w *World, r *rig.Rules) { r.Down.Delay = w.between(20, 120) })},
	{"cut", cut},
	{"partition", network("partition", true, func(_ *World, r *rig.Rules) { r.Refuse = true })},
	{"nothing reaches Redis", network("nothing reaches Redis", true, func(_ *World, r *rig.Rules) { r.Up.Blocked = true })},
	{"nothing comes back", network("nothing comes back", true, func(_ *World, r *rig.Rules) { r.Down.Blocked = true })},
	{"new connections get no replies",
		network("new connections get no replies", true, func(_ *World, r *rig.Rules) { r.Cut, r.Down.Blocked = true, true })},
	{"lost replies", network("lost replies", true, func(_ *World, r *rig.Rules) { r.DropReplies = true })},
	{"trickle", network("trickle", true, func(_ *World, r *rig.Rules) { r.Up.Trickle, r.Down.Trickle = true, true })},
	{"lost messages", network("lost messages", false, func(_ *World, r *rig.Rules) { r.DropMessages = true })},
	{"CLIENT KILL", func(w *World) error {
		return w.command(history.Fault{Name: "CLIENT KILL", Proc: -1, Hinders: true},
			"CLIENT", "KILL", "TYPE", w.one("normal", "pubsub"), "SKIPME", "yes")
	}},
	{"SCRIPT FLUSH", func(w *World) error {
		return w.command(history.Fault{Name: "SCRIPT FLUSH", Proc: -1}, "SCRIPT", "FLUSH", "SYNC")
	}},
	{"BUSY", busy},
	{"out of memory", outOfMemory},
	{"disk full", diskFull},
	{"DEL", deleteKey("")},
	{"DEL plain", deleteKey("plain")},
	{"FLUSHALL", func(w *World) error {
		return w.command(history.Fault{Name: "FLUSHALL", Proc: -1, BreaksLeases: true, ErasesData: true}, "FLUSHALL")
	}},
	{"restart empty", restartEmpty},
	{"failover to a lagging replica", failover},
	{"change of roles", changeRoles},
	{"suspend the clients", suspendClients},
	{"Redis's clock is set forward", setClock},
}

// The faults of the other worlds.
var (
	InACluster = append([]Fault{
		{"a slot is half moved", moveSlot},
		takeover("a master leaves alive", false, planFailover, leaveAlive),
	}, takeovers...)
	OfSentinels = takeovers
	OfSeveral   = []Fault{{"a server is out of reach", loseServer}}
	Forcing     = []Fault{{"late forced release", forceLate}}
	Foreign     = []Fault{{"foreign hash", plant}}
	Numbers     = []Fault{{"numbers near the edges", seed}}
)

// Named finds faults by their names, separated by commas; All for "all".
func Named(names string) ([]Fault, error) {
	if names == "all" {
		return All, nil
	}
	var chosen []Fault
next:
	for _, name := range strings.Split(names, ",") {
		for _, f := range slices.Concat(All, InACluster, OfSeveral, Forcing, Foreign, Numbers) {
			if f.Name == strings.TrimSpace(name) {
				chosen = append(chosen, f)
				continue next
			}
		}
		if strings.TrimSpace(name) != "" {
			return nil, fmt.Errorf("there is no fault %q", name)
		}
	}
	return chosen, nil
}

// between draws a duration between two numbers of milliseconds.
func (w *World) between(from, to int) time.Duration {
	return traffic.Range{From: time.Duration(from) * time.Millisecond, To: time.Duration(to) * time.Millisecond}.Pick(w.random)
}

// ofLease draws a time in percent of the watchdog's TTL.
func (w *World) ofLease(from, to int) time.Duration {
	return w.plan.Watchdog * time.Duration(from+w.random.IntN(to-from+1)) / 100
}

func (w *World) one(of ...string) string { return of[w.random.IntN(len(of))] }

// during injects a fault, and records its time, also in faults.txt next to the histories.
func (w *World) during(f history.Fault, do func() error) error {
	f.From = history.Now()
	err := do()
	f.To = history.Now()
	w.round.faults = append(w.round.faults, f)
	list, opened := os.OpenFile(filepath.Join(w.round.dir, "faults.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if opened != nil {
		return opened
	}
	defer list.Close()
	fmt.Fprintf(list, "%v to %v: %s, process %d, lock %q\n", f.From, f.To, f.Name, f.Proc, f.Lock)
	if err != nil {
		return fmt.Errorf("fault %q: %w", f.Name, err)
	}
	return nil
}

// command is a fault that is one command to Redis.
func (w *World) command(f history.Fault, args ...string) error {
	return w.during(f, func() error {
		_, err := w.server.Do(args...)
		return err
	})
}

// killClient never kills the first client, so that one lives through the whole run.
func killClient(w *World) error {
	index := 1 + w.random.IntN(len(w.clients)-1)
	c := w.clients[index]
	err := w.during(history.Fault{Name: "kill a client", Proc: -1, Hinders: true}, func() error {
		c.kill()
		return nil
	})
	w.round.killed[c.proc] = history.Now()
	if err != nil {
		return err
	}
	return w.start(index)
}

func pauseClient(w *World) error {
	c := w.clients[w.random.IntN(len(w.clients))]
	return w.during(history.Fault{Name: "pause a client", Proc: c.proc, Hinders: true}, func() error {
		if err := c.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(w.ofLease(20, 180))
		return c.signal(syscall.SIGCONT)
	})
}

func crashActors(name string, sign int) func(*World) error {
	return func(w *World) error {
		c := w.clients[w.random.IntN(len(w.clients))]
		return w.during(history.Fault{Name: name, Proc: c.proc, Hinders: true, CrashesActors: true}, func() error {
			if err := c.order(traffic.Crash, sign*(50+w.random.IntN(300))); err != nil {
				return err
			}
			time.Sleep(w.ofLease(20, 100))
			return c.order(traffic.Crash, 0)
		})
	}
}

func pauseRedis(w *World) error {
	return w.during(history.Fault{Name: "pause Redis", Proc: -1, Hinders: true}, func() error {
		if err := w.server.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(w.ofLease(5, 150))
		return w.server.Signal(syscall.SIGCONT)
	})
}

// network is a fault of the network, to one client or to all.
func network(name string, hinders bool, change func(*World, *rig.Rules)) func(*World) error {
	return func(w *World) error {
		victims, f := w.clients, history.Fault{Name: name, Proc: -1, Hinders: hinders}
		if w.random.IntN(3) > 0 {
			i := w.random.IntN(len(w.clients))
			victims, f.Proc = w.clients[i:i+1], w.clients[i].proc
		}
		return w.during(f, func() error {
			for _, c := range victims {
				c.proxy.Set(func(r *rig.Rules) { change(w, r) })
			}
			time.Sleep(w.ofLease(10, 160))
			for _, c := range victims {
				c.proxy.Set(func(r *rig.Rules) { *r = rig.Rules{} })
			}
			return nil
		})
	}
}

func cut(w *World) error {
	return w.during(history.Fault{Name: "cut", Proc: -1, Hinders: true}, func() error {
		for range 1 + w.random.IntN(4) {
			w.clients[w.random.IntN(len(w.clients))].proxy.Cut()
			time.Sleep(w.between(0, 100))
		}
		return nil
	})
}

// busy runs an endless script for a while.
func busy(w *World) error {
	return w.during(history.Fault{Name: "BUSY", Proc: -1, Hinders: true}, func() error {
		ended := make(chan error, 1)
		go func() {
			_, err := w.server.Do("EVAL", "while true do end", "0")
			ended <- err
		}()
		time.Sleep(w.ofLease(20, 120))
		_, err := w.server.Do("SCRIPT", "KILL")
		if killed := <-ended; err == nil && killed == nil {
			err = fmt.Errorf("the endless script has ended")
		}
		return err
	})
}

func outOfMemory(w *World) error {
	return w.during(history.Fault{Name: "out of memory", Proc: -1, Hinders: true}, func() error {
		if _, err := w.server.Do("CONFIG", "SET", "maxmemory", "1"); err != nil {
			return err
		}
		time.Sleep(w.ofLease(20, 150))
		_, err := w.server.Do("CONFIG", "SET", "maxmemory", "0")
		return err
	})
}

// diskFull makes Redis refuse writes since it cannot save: its directory is removed.
func diskFull(w *World) error {
	return w.during(history.Fault{Name: "disk full", Proc: -1, Hinders: true}, func() error {
		gone, err := os.MkdirTemp("", "robustness-gone")
		if err != nil {
			return err
		}
		steps := [][]string{{"CONFIG", "SET", "dir", gone}, {"CONFIG", "SET", "save", "3600 1"}}
		for _, step := range steps {
			if _, err := w.server.Do(step...); err != nil {
				return err
			}
		}
		if err := os.Remove(gone); err != nil {
			return err
		}
		if _, err := w.server.Do("BGSAVE"); err != nil {
			return err
		}
		time.Sleep(w.ofLease(30, 150))
		for _, step := range [][]string{{"CONFIG", "SET", "save", ""}, {"CONFIG", "SET", "dir", w.server.Dir()}} {
			if _, err := w.server.Do(step...); err != nil {
				return err
			}
		}
		return nil
	})
}

// deleteKey deletes the key of a lock, a random one for "", as an operator might.
func deleteKey(lock string) func(*World) error {
	return func(w *World) error {
		key := lock
		if key == "" {
			key = w.one("plain", "reentrant", "fenced", "fair", "readwrite",
				"multi-a", "multi-b", "multi-c", "actor", "apis", string(traffic.Expirable))
		}
		permits := key == string(traffic.Expirable) // their number is lost, too
		return w.command(history.Fault{Name: "DEL", Proc: -1, BreaksLeases: true, ErasesData: permits, Lock: key},
			"DEL", key, keyspace.Taken(key))
	}
}

func restartEmpty(w *World) error {
	return w.during(history.Fault{Name: "restart empty", Proc: -1, Hinders: true, BreaksLeases: true, ErasesData: true}, func() error {
		w.server.crash()
		time.Sleep(w.ofLease(0, 50))
		w.server.clock = w.server.clock.like()
		return w.server.Restart()
	})
}

// failover promotes a replica that lacks the last writes.
func failover(w *World) error {
	replica, err := w.replica()
	if err != nil {
		return err
	}
	return w.during(history.Fault{
		Name: "failover to a lagging replica", Proc: -1, Hinders: true, BreaksLeases: true, ErasesData: true, Takeover: true,
	}, func() error {
		if err := replica.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(w.between(50, 300)) // what is written now is lost
		w.server.kill()
		w.server = replica
		if err := replica.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		if _, err := replica.Do("REPLICAOF", "NO", "ONE"); err != nil {
			return err
		}
		for _, c := range w.clients {
			c.proxy.Redirect(replica.Addr())
			c.proxy.Cut()
		}
		return nil
	})
}

// setClock ends the leases of all locks before their time.
func setClock(w *World) error {
	return w.during(history.Fault{Name: "Redis's clock is set forward", Proc: -1, Hinders: true, BreaksLeases: true}, func() error {
		return w.server.clock.forward(w.ofLease(10, 300))
	})
}

// Next injects the next fault: each of them once, in a random order, and then again.
func (w *World) Next(of []Fault) error {
	if len(w.faultOrder) == 0 {
		w.faultOrder = w.random.Perm(len(of))
	}
	i := w.faultOrder[0]
	w.faultOrder = w.faultOrder[1:]
	return of[i].Do(w)
}

// Pause waits without a fault.
func (w *World) Pause(d traffic.Range) { time.Sleep(d.Pick(w.random)) }
