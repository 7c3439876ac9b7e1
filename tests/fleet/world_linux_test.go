package fleet_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// worldLease is the lease in a world. With 3 s none outlives a takeover, with 9 s most do.
var worldLease = flag.Duration("fleet.lease", 3*time.Second, "the lease of TestNemeses")

// worldDrain is the drain of the grains: longer than a handler and a stop.
const worldDrain = 800 * time.Millisecond

// world is a fleet of nodes, each of which has a candidate, a proxy, grains and callers. Its Redis has a replica that confirms
// leases, and Sentinels.
type world struct {
	*fleet
	random          *rand.Rand
	master, replica *rig.Server
	sentinels       []*rig.Server
	store           *redistest.Server
	nodes           []*process
	grains          int // how many are asked at a time
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 0)), store: redistest.Start(t), grains: 400}
	server := func(s *rig.Server, err error) *rig.Server {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		return s
	}
	w.master = server(rig.Start(rig.Options{}))
	w.replica = server(rig.StartReplica(w.master, w.master.Addr(), rig.Options{}))
	var err error
	w.sentinels, err = rig.StartSentinels(3, 2, w.master, func(int) []string {
		return []string{fmt.Sprintf("sentinel down-after-milliseconds %s 1500", rig.MasterSet), fmt.Sprintf("sentinel failover-timeout %s 4000", rig.MasterSet)}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rig.StopAll(w.sentinels) })
	w.fleet = newFleet(t, fmt.Sprintf("redis://%s?addr=%s&addr=%s&master_set=%s", w.sentinels[0].Addr(), w.sentinels[1].Addr(), w.sentinels[2].Addr(), rig.MasterSet))
	for _, s := range append(w.sentinels, w.master, w.replica) {
		w.network.register(s.Addr(), redisParty)
	}
	w.must(w.agree())
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// agree waits until the replica is in sync, and the Sentinels know the roles.
func (w *world) agree() error {
	if err := w.master.AwaitReplication("port=" + w.replica.Port() + ",state=online"); err != nil {
		return err
	}
	return rig.AwaitSentinels(w.sentinels, w.master, 1)
}

// grow starts further nodes, at the same time.
func (w *world) grow(n int) {
	w.t.Helper()
	for range n {
		w.nodes = append(w.nodes, w.launch(w.node(len(w.nodes), freePort(w.t))))
	}
	for _, p := range w.nodes {
		w.awaitReady(p)
	}
}

func (w *world) node(i, port int) settings {
	return settings{
		Role: "node", Name: fmt.Sprint("node-", i), Port: port, Store: w.store.URL(), Watchdog: *worldLease, Drain: worldDrain, Replicas: 1,
		Rate: 3, Burst: 8, Callers: 64, Grains: w.grains, Handling: 400 * time.Millisecond, Brief: 3 * time.Millisecond, Stopping: 50 * time.Millisecond,
	}
}

// restart starts a node again, which has ended, at the same address or at another.
func (w *world) restart(i int) {
	w.t.Helper()
	port := w.nodes[i].s.Port
	if w.random.IntN(2) == 0 {
		port = freePort(w.t)
	}
	w.nodes[i] = w.start(w.node(i, port))
}

// one chooses a node.
func (w *world) one() int { return w.random.IntN(len(w.nodes)) }

// wait waits for a part of the lease, from one percentage to another.
func (w *world) wait(from, to int) {
	<-time.After(*worldLease * time.Duration(from+w.random.IntN(to-from+1)) / 100)
}

// recovers waits until the callers of all nodes are answered, by grains and by the singleton. It returns what it has waited for
// last.
func (w *world) recovers() (last string) {
	w.t.Helper()
	counts := map[string]int{"answered grain": 64, "answered " + theSingleton: 5}
	before := map[string]int{}
	for _, p := range w.nodes {
		for what := range counts {
			before[p.String()+what] = p.count(what)
		}
	}
	if !w.within(40*time.Second, func() bool {
		missing := ""
		for _, p := range w.nodes {
			for what, n := range counts {
				if got := p.count(what) - before[p.String()+what]; got < n {
					missing += fmt.Sprintf("; %v: %d %s", p, got, what)
				}
			}
		}
		last = cmp.Or(missing, last)
		return missing == ""
	}) {
		w.t.Errorf("40 s after the end of the faults the fleet has not recovered%s", last)
	}
	return last
}

// orderly does something in which no request fails. Those that were under way before it have ended.
func (w *world) orderly(what string, do func()) {
	w.t.Helper()
	failures := func() int { return w.count("failed") + w.count("refused") }
	for before, since := failures(), time.Now(); time.Since(since) < requestTimeout+time.Second; <-time.After(10 * time.Millisecond) {
		if now := failures(); now != before {
			before, since = now, time.Now()
		}
	}
	before := failures()
	do()
	w.increases("answered", 500)
	if n := failures() - before; n > 0 {
		w.t.Errorf("%s: %d requests have failed or are refused", what, n)
	}
}

// end ends all nodes at the same time. What they leave in Redis, since it did not answer, or since a failover has brought it back,
// the next node removes.
func (w *world) end() {
	w.t.Helper()
	var ending sync.WaitGroup
	for _, p := range w.nodes {
		ending.Go(p.terminate)
	}
	ending.Wait()
	last := w.start(w.node(0, freePort(w.t)))
	redistest.Eventually(w.t, "what others have left to be removed", func() bool {
		members, err := w.master.Do("HKEYS", "grains:{"+clusterName+"}:members")
		entries, failed := w.master.Do("HVALS", "grains:{"+clusterName+"}:entries")
		return cmp.Or(err, failed) == nil && len(members.Words()) == 1 &&
			!slices.ContainsFunc(entries.Words(), func(entry string) bool { return !strings.HasPrefix(entry, members.Words()[0]+"#") })
	})
	last.terminate()
	keys, err := w.master.Do("KEYS", "*")
	w.must(err)
	w.t.Log("in Redis: ", keys.Words())
	for _, key := range keys.Words() {
		if strings.HasSuffix(key, ":entries") || strings.HasSuffix(key, ":members") || strings.Contains(key, "member:") {
			w.t.Errorf("%s is left in Redis", key)
		}
	}
}

// takeOver makes the replica the master, after what happens to the master.
func (w *world) takeOver(happens func() error, after func(former *rig.Server) error) {
	w.t.Helper()
	w.must(happens())
	w.must(rig.Await("the replica takes over", func() bool { return w.replica.Replication("role:master") }))
	w.nodes[0].add("takeover", "-")
	w.master, w.replica = w.replica, w.master
	w.must(after(w.replica))
	w.must(w.agree())
}

// nemesis is something that happens to a world, and is over when it returns.
type nemesis struct {
	name string
	do   func(*world)
}

// swallow lets nothing pass for up to two leases. Afterwards all arrives, or the connections are broken.
func (w *world) swallow(ways ...way) {
	w.network.swallow(ways...)
	w.wait(50, 200)
	if w.random.IntN(2) == 0 {
		w.network.cut("")
	}
	w.network.heal()
}

// groups divides the nodes into two groups, and returns the ways from the first to the second.
func (w *world) groups() (ways []way) {
	order := w.random.Perm(len(w.nodes))
	first := 1 + w.random.IntN(len(order)-1)
	for _, a := range order[:first] {
		for _, b := range order[first:] {
			ways = append(ways, way{w.nodes[a].s.Name, w.nodes[b].s.Name})
		}
	}
	return ways
}

func (w *world) pause(percent int) {
	p := w.nodes[w.one()]
	p.pause()
	w.wait(percent, percent)
	p.resume()
}

var nemeses = []nemesis{
	{"SIGTERM", func(w *world) {
		w.orderly("a node leaves", func() {
			i := w.one()
			w.nodes[i].terminate()
			w.restart(i)
		})
	}},
	{"rolling restart", func(w *world) {
		w.orderly("a rolling restart", func() {
			for i := range w.nodes {
				w.nodes[i].terminate()
				w.restart(i)
			}
		})
	}},
	{"kill -9", func(w *world) {
		i := w.one()
		w.nodes[i].kill()
		w.restart(i)
	}},
	{"a pause of half a lease", func(w *world) { w.pause(50) }},
	{"a pause of a lease", func(w *world) { w.pause(100) }},
	{"a pause of three leases", func(w *world) { w.pause(300) }},
	{"a node is cut from Redis", func(w *world) { w.swallow(both(w.nodes[w.one()].s.Name, redisParty)...) }},
	{"nothing reaches Redis", func(w *world) { w.swallow(way{w.nodes[w.one()].s.Name, redisParty}) }},
	{"nothing comes from Redis", func(w *world) { w.swallow(way{redisParty, w.nodes[w.one()].s.Name}) }},
	{"peers are cut off from each other", func(w *world) {
		ways := w.groups()
		for _, one := range ways {
			ways = append(ways, way{one.to, one.from})
		}
		w.swallow(ways...)
	}},
	{"peers are cut off, one way", func(w *world) { w.swallow(w.groups()...) }},
	{"a slow network", func(w *world) {
		name := w.nodes[w.one()].s.Name
		for _, p := range w.nodes {
			w.network.delay(time.Duration(5+w.random.IntN(45))*time.Millisecond, both(name, p.s.Name)...)
		}
		w.network.delay(time.Duration(5+w.random.IntN(45))*time.Millisecond, both(name, redisParty)...)
		w.wait(100, 200)
		w.network.heal()
	}},
	{"broken connections", func(w *world) {
		for range 5 {
			w.network.cut(w.nodes[w.one()].s.Name)
			w.wait(5, 20)
		}
	}},
	{"a planned failover", func(w *world) {
		w.takeOver(func() error {
			return rig.Await("Sentinels accept a failover", func() bool {
				_, err := w.sentinels[w.random.IntN(3)].Do("SENTINEL", "FAILOVER", rig.MasterSet)
				return err == nil
			})
		}, func(*rig.Server) error { return nil })
	}},
	{"the master is killed", func(w *world) {
		w.takeOver(func() error { w.master.Kill(); return nil }, func(former *rig.Server) error {
			return former.Restart("--replicaof", rig.Host, w.master.Port())
		})
	}},
	{"the master is killed, and its last writes are lost", func(w *world) {
		w.takeOver(func() error {
			_, err := w.replica.Do("REPLICAOF", rig.Host, "1") // where there is no master
			<-time.After(time.Duration(w.random.IntN(1000)) * time.Millisecond)
			w.master.Kill()
			return err
		}, func(former *rig.Server) error { return former.Restart("--replicaof", rig.Host, w.master.Port()) })
	}},
	{"the master hangs", func(w *world) {
		w.takeOver(func() error { return w.master.Signal(syscall.SIGSTOP) }, func(former *rig.Server) error {
			w.wait(0, 30)
			return former.Signal(syscall.SIGCONT)
		})
	}},
	{"Redis hangs for a moment", func(w *world) {
		w.must(w.master.Signal(syscall.SIGSTOP))
		<-time.After(time.Duration(w.random.IntN(1000)) * time.Millisecond)
		w.must(w.master.Signal(syscall.SIGCONT))
	}},
}
