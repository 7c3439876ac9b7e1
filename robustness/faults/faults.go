package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// A Fault is something that may happen; when Do returns it is over.
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
	{"delay", network("delay", true, func(w *World, r *rules) {
		r.up.delay, r.down.delay = w.between(5, 80), w.between(5, 80)
	})},
	{"late replies", network("late replies", true, func(w *World, r *rules) { r.down.delay = w.between(20, 120) })},
	{"cut", cut},
	{"partition", network("partition", true, func(_ *World, r *rules) { r.refuse = true })},
	{"nothing reaches Redis", network("nothing reaches Redis", true, func(_ *World, r *rules) { r.up.blocked = true })},
	{"nothing comes back", network("nothing comes back", true, func(_ *World, r *rules) { r.down.blocked = true })},
	{"new connections hear nothing", network("new connections hear nothing", true, func(_ *World, r *rules) { r.cut, r.down.blocked = true, true })},
	{"lost replies", network("lost replies", true, func(_ *World, r *rules) { r.dropReplies = true })},
	{"trickle", network("trickle", true, func(_ *World, r *rules) { r.up.trickle, r.down.trickle = true, true })},
	{"lost messages", network("lost messages", false, func(_ *World, r *rules) { r.dropMessages = true })},
	{"CLIENT KILL", func(w *World) error {
		return w.command(history.Fault{Name: "CLIENT KILL", Proc: -1, Hinders: true}, "CLIENT", "KILL", "TYPE", w.one("normal", "pubsub"), "SKIPME", "yes")
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
		return w.command(history.Fault{Name: "FLUSHALL", Proc: -1, Robs: true, Wipes: true}, "FLUSHALL")
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

// between draws a number of milliseconds.
func (w *World) between(from, to int) time.Duration {
	return traffic.Range{From: time.Duration(from) * time.Millisecond, To: time.Duration(to) * time.Millisecond}.Pick(w.random)
}

// ofLease draws a time in percent of the watchdog's TTL.
func (w *World) ofLease(from, to int) time.Duration {
	return w.plan.Watchdog * time.Duration(from+w.random.IntN(to-from+1)) / 100
}

func (w *World) one(of ...string) string { return of[w.random.IntN(len(of))] }

// during carries out a fault, and notes when that was, beside the histories as well.
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
		_, err := w.server.do(args...)
		return err
	})
}

// killClient spares the first, so that one lives through the whole run.
func killClient(w *World) error {
	place := 1 + w.random.IntN(len(w.clients)-1)
	c := w.clients[place]
	err := w.during(history.Fault{Name: "kill a client", Proc: -1, Hinders: true}, func() error {
		c.kill()
		return nil
	})
	w.round.killed[c.proc] = history.Now()
	if err != nil {
		return err
	}
	return w.start(place)
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
		return w.during(history.Fault{Name: name, Proc: c.proc, Hinders: true, Fells: true}, func() error {
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
		if err := w.server.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(w.ofLease(5, 150))
		return w.server.signal(syscall.SIGCONT)
	})
}

// network is a fault of the network, to one client or to all.
func network(name string, hinders bool, change func(*World, *rules)) func(*World) error {
	return func(w *World) error {
		victims, f := w.clients, history.Fault{Name: name, Proc: -1, Hinders: hinders}
		if w.random.IntN(3) > 0 {
			i := w.random.IntN(len(w.clients))
			victims, f.Proc = w.clients[i:i+1], w.clients[i].proc
		}
		return w.during(f, func() error {
			for _, c := range victims {
				c.proxy.set(func(r *rules) { change(w, r) })
			}
			time.Sleep(w.ofLease(10, 160))
			for _, c := range victims {
				c.proxy.set(func(r *rules) { *r = rules{} })
			}
			return nil
		})
	}
}

func cut(w *World) error {
	return w.during(history.Fault{Name: "cut", Proc: -1, Hinders: true}, func() error {
		for range 1 + w.random.IntN(4) {
			w.clients[w.random.IntN(len(w.clients))].proxy.cut()
			time.Sleep(w.between(0, 100))
		}
		return nil
	})
}

// busy has a script run that does not end by itself.
func busy(w *World) error {
	return w.during(history.Fault{Name: "BUSY", Proc: -1, Hinders: true}, func() error {
		ended := make(chan error, 1)
		go func() {
			_, err := w.server.do("EVAL", "while true do end", "0")
			ended <- err
		}()
		time.Sleep(w.ofLease(20, 120))
		_, err := w.server.do("SCRIPT", "KILL")
		if killed := <-ended; err == nil && killed == nil {
			err = fmt.Errorf("the endless script has ended")
		}
		return err
	})
}

func outOfMemory(w *World) error {
	return w.during(history.Fault{Name: "out of memory", Proc: -1, Hinders: true}, func() error {
		if _, err := w.server.do("CONFIG", "SET", "maxmemory", "1"); err != nil {
			return err
		}
		time.Sleep(w.ofLease(20, 150))
		_, err := w.server.do("CONFIG", "SET", "maxmemory", "0")
		return err
	})
}

// diskFull has Redis refuse writes since it cannot save: its directory is gone.
func diskFull(w *World) error {
	return w.during(history.Fault{Name: "disk full", Proc: -1, Hinders: true}, func() error {
		gone, err := os.MkdirTemp("", "robustness-gone")
		if err != nil {
			return err
		}
		steps := [][]string{{"CONFIG", "SET", "dir", gone}, {"CONFIG", "SET", "save", "3600 1"}}
		for _, step := range steps {
			if _, err := w.server.do(step...); err != nil {
				return err
			}
		}
		if err := os.Remove(gone); err != nil {
			return err
		}
		if _, err := w.server.do("BGSAVE"); err != nil {
			return err
		}
		time.Sleep(w.ofLease(30, 150))
		for _, step := range [][]string{{"CONFIG", "SET", "save", ""}, {"CONFIG", "SET", "dir", w.server.dir}} {
			if _, err := w.server.do(step...); err != nil {
				return err
			}
		}
		return nil
	})
}

// deleteKey takes a lock, or some lock, from its holders, as an operator may.
func deleteKey(lock string) func(*World) error {
	return func(w *World) error {
		key := lock
		if key == "" {
			key = w.one("plain", "reentrant", "fenced", "fair", "readwrite", "multi-a", "multi-b", "multi-c", "actor", "faces", string(traffic.Leased))
		}
		permits := key == string(traffic.Leased) // their number is gone, too
		return w.command(history.Fault{Name: "DEL", Proc: -1, Robs: true, Wipes: permits, Lock: key}, "DEL", key, redisio.Taken(key))
	}
}

func restartEmpty(w *World) error {
	return w.during(history.Fault{Name: "restart empty", Proc: -1, Hinders: true, Robs: true, Wipes: true}, func() error {
		before := w.server
		before.kill()
		time.Sleep(w.ofLease(0, 50))
		return w.startAgain(before)
	})
}

// startAgain starts Redis again; its port may be in use for another moment.
func (w *World) startAgain(before *server) (err error) {
	for range 100 {
		if w.server, err = startServerOn(before.addr, before.clock.like()); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// failover has a replica that has missed the last writes take over.
func failover(w *World) error {
	replica, err := w.replica()
	if err != nil {
		return err
	}
	return w.during(history.Fault{Name: "failover to a lagging replica", Proc: -1, Hinders: true, Robs: true, Wipes: true}, func() error {
		if err := replica.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(w.between(50, 300)) // what is written now is lost
		w.server.kill()
		w.server = replica
		if err := replica.signal(syscall.SIGCONT); err != nil {
			return err
		}
		if _, err := replica.do("REPLICAOF", "NO", "ONE"); err != nil {
			return err
		}
		for _, c := range w.clients {
			c.proxy.retarget(replica.addr)
		}
		return nil
	})
}

// setClock ends leases before their time: a robbery of all locks.
func setClock(w *World) error {
	return w.during(history.Fault{Name: "Redis's clock is set forward", Proc: -1, Hinders: true, Robs: true}, func() error {
		return w.server.clock.forward(w.ofLease(10, 300))
	})
}

// Next does one of some faults: each of them once, in a random order, and then again.
func (w *World) Next(of []Fault) error {
	if len(w.deck) == 0 {
		w.deck = w.random.Perm(len(of))
	}
	i := w.deck[0]
	w.deck = w.deck[1:]
	return of[i].Do(w)
}

// Pause lets nothing happen for a while.
func (w *World) Pause(d traffic.Range) { time.Sleep(d.Pick(w.random)) }
