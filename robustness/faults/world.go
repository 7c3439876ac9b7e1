// Package faults runs the processes of a run, redis-servers and the clients, each behind a
// proxy, and injects faults.
package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/judge"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// World is a Redis and the client processes that use it.
type World struct {
	binary string
	plan   traffic.Plan
	random *rand.Rand
	server *server
	// more are the further servers.
	more []*server
	// moved is the index of the server that now has the slot of a lock.
	moved map[string]int
	// replicas are the replicas of each server.
	replicas [][]*server
	// sentinels are the Sentinels that watch the servers.
	sentinels []*rig.Server
	// demoted is the former master; nil if there is none.
	demoted *server
	// reached is the replication offset of each replica when its master was killed.
	reached map[*server]int

	clients []*client
	procs   int // numbers the processes
	round   round
	// counters are the faults of the last round that set the tokens of a fenced lock: the clients may still know them.
	counters []history.Fault
	// faultOrder is the order of the next faults.
	faultOrder []int
}

// round is the present round.
type round struct {
	dir    string
	from   time.Duration
	faults []history.Fault
	began  map[int]string        // process → the file of its history
	killed map[int]time.Duration // process → when
	// planted are the foreign hashes, by name.
	planted map[string]map[string]string
	// seeded are the names of numbers near the edges.
	seeded []string
}

// New starts Redis and n clients of a binary.
func New(binary string, plan traffic.Plan, n int, seed uint64) (*World, error) {
	w := &World{moved: map[string]int{}, reached: map[*server]int{}, binary: binary, plan: plan, random: rand.New(rand.NewPCG(seed, 1))}
	err := w.startServers()
	for i := range n {
		if err == nil {
			far := time.Duration(0)
			if i == n-1 {
				far = plan.Far
			}
			err = w.join(far)
		}
	}
	if err != nil {
		w.Kill()
		return nil, err
	}
	if len(w.more) > 0 && !plan.Cluster {
		// A server votes in a RedLock only after it was watched for the length of a lease.
		time.Sleep(plan.Lease() + 2*time.Second)
	}
	return w, nil
}

// join adds a client, with a proxy for each server, which adds the delay far. Clients of a cluster or of Sentinels find
// the servers themselves, and connect to them without the proxies.
func (w *World) join(far time.Duration) error {
	c := &client{}
	var err error
	if c.proxy, err = rig.NewProxy(w.server.Addr(), rig.ProxyOptions{Far: far, Report: report}); err != nil {
		return err
	}
	w.clients = append(w.clients, c)
	for _, s := range w.more {
		proxy, err := rig.NewProxy(s.Addr(), rig.ProxyOptions{Far: far, Report: report})
		if err != nil {
			return err
		}
		c.others = append(c.others, proxy)
	}
	return w.start(len(w.clients) - 1)
}

// report prints that a connection does not carry the protocol of Redis.
func report(err error) { fmt.Fprintln(os.Stderr, "robustness: a proxy:", err) }

// start starts a new client at an index.
func (w *World) start(index int) error {
	w.procs++
	before := w.clients[index]
	spec := traffic.Spec{Proc: w.procs, Redis: "redis://" + before.proxy.Addr(), Seed: w.random.Uint64(), Plan: w.plan.Variant(w.random)}
	if spec.Host = w.plan.Host; w.plan.BadHosts {
		spec.Host = traffic.RandomHost(w.random)
	}
	switch {
	case w.plan.Cluster:
		spec.Redis = "redis://" + w.server.Addr()
	case len(w.sentinels) > 0:
		spec.Redis = rig.SentinelURL(w.sentinels)
	default:
		for _, proxy := range before.others {
			spec.Others = append(spec.Others, "redis://"+proxy.Addr())
		}
	}
	c, err := startClient(w.binary, spec, before.proxy)
	if err != nil {
		return err
	}
	c.others = before.others
	w.clients[index] = c
	if w.round.dir != "" {
		return w.begin(c)
	}
	return nil
}

func (w *World) begin(c *client) error {
	file := filepath.Join(w.round.dir, fmt.Sprintf("client-%d.jsonl", c.proc))
	w.round.began[c.proc] = file
	return c.order(traffic.Begin, file)
}

// Begin starts the traffic; its histories go into dir.
func (w *World) Begin(dir string) error {
	w.round = round{
		dir: dir, from: history.Now(), began: map[int]string{},
		killed: map[int]time.Duration{}, planted: map[string]map[string]string{},
	}
	for _, c := range w.clients {
		if err := w.begin(c); err != nil {
			return err
		}
	}
	return nil
}

// Round is the result of a round.
type Round struct {
	history.Span
	Processes []*history.Process
	Faults    []history.Fault
	// Counters are faults of the round before that set the tokens of a fenced lock: the clients may still know them.
	Counters []history.Fault
	// Stuck are the processes that did not come to rest: some request was not answered.
	Stuck []int
	// Ended are the processes that ended by themselves.
	Ended []int
	// Left are the keys that were still in Redis soon after the end.
	Left []string
	// Changed are the foreign keys that were changed.
	Changed []string
	// Permits are the permits of the semaphores of both kinds, by name.
	Permits map[string]judge.Permits
}

// End stops the traffic, and returns what happened.
func (w *World) End() (*Round, error) {
	r := &Round{Faults: w.round.faults, Counters: w.counters}
	w.counters = slices.DeleteFunc(slices.Clone(w.round.faults), func(f history.Fault) bool {
		return !traffic.IsEdgeOf(traffic.Fenced, f.Lock)
	})
	for _, f := range r.Faults { // a command from during a takeover, which its client has given up, may take a lock for a lease
		if f.Takeover {
			time.Sleep(f.To + w.plan.Lease() - history.Now())
		}
	}
	to := history.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	for _, c := range w.clients {
		wg.Go(func() {
			err := c.order(traffic.End)
			if err == nil {
				err = c.expect(traffic.Quiet, 2*limit)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, errNoAnswer):
				r.Stuck = append(r.Stuck, c.proc)
			case errors.Is(err, errEnded):
				r.Ended = append(r.Ended, c.proc)
				w.round.killed[c.proc] = to // the exact time is unknown
			case err != nil:
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	r.Span = history.Span{From: w.round.from, To: to}
	for proc, file := range w.round.began {
		p, err := history.Read(file, proc, w.round.killed[proc])
		if err != nil {
			return nil, err
		}
		r.Processes = append(r.Processes, p)
	}
	var err error
	if r.Permits, r.Left, err = w.permits(); err != nil {
		return nil, err
	}
	if r.Changed, err = w.changed(); err != nil {
		return nil, err
	}
	more, err := w.edgeNumbers(r.Permits)
	if err != nil {
		return nil, err
	}
	r.Left = append(r.Left, more...)
	if len(w.more)+len(w.replicas) > 0 && len(w.round.killed) == 0 {
		left, err := w.audit()
		if err != nil {
			return nil, err
		}
		r.Left = append(r.Left, left...)
	}
	w.round = round{}
	for index, c := range w.clients {
		if slices.Contains(r.Ended, c.proc) {
			if err := w.start(index); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// Footprints measures the clients.
func (w *World) Footprints() ([]traffic.Footprint, error) {
	var all []traffic.Footprint
	for _, c := range w.clients {
		if err := c.order(traffic.Measure); err != nil {
			return nil, err
		}
		line, err := c.readLine(limit)
		if err != nil {
			return nil, err
		}
		var f traffic.Footprint
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// Profile makes each client write a heap profile into a directory.
func (w *World) Profile(dir string) error {
	for i, c := range w.clients {
		if err := c.order(traffic.Profile, filepath.Join(dir, fmt.Sprintf("heap-%d.pprof", i+1))); err != nil {
			return err
		}
		if err := c.expect(traffic.Profiled, limit); err != nil {
			return err
		}
	}
	return nil
}

// Leftovers returns the keys in Redis, without the token counters, which stay, the records of commands, which expire,
// and the records of Systems, which outlive killed clients; and the channels with subscribers, without the turn
// channels of the Systems, which end with them.
func (w *World) Leftovers() (keys, channels []string, err error) {
	for _, s := range w.servers() {
		more, err := s.remains()
		if err != nil {
			return nil, nil, err
		}
		keys = append(keys, more...)
		if more, err = s.list("PUBSUB", "CHANNELS"); err != nil {
			return nil, nil, err
		}
		channels = append(channels, more...)
	}
	return keys, channels, nil
}

// Close ends the clients in good order, and then Redis.
func (w *World) Close() error {
	var errs []error
	for _, c := range w.clients {
		err := c.order(traffic.Close)
		if err == nil {
			err = c.expect(traffic.Closed, 2*limit)
		}
		errs = append(errs, err)
	}
	errs = append(errs, w.nothingLeft())
	w.Kill()
	return errors.Join(errs...)
}

// nothingLeft waits until the keys of killed clients have expired.
func (w *World) nothingLeft() error {
	for end := time.Now().Add(2 * (w.plan.Lease() + w.plan.Silence())); ; time.Sleep(20 * time.Millisecond) {
		keys, _, err := w.Leftovers()
		if err != nil || len(keys) == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("all clients have closed, but Redis still has %q", keys)
		}
	}
}

// Kill kills all processes.
func (w *World) Kill() {
	for _, c := range w.clients {
		if c.cmd != nil {
			c.kill()
		}
		for _, proxy := range c.proxies() {
			proxy.Close()
		}
	}
	for _, s := range w.all() {
		if s != nil {
			s.kill()
		}
	}
	rig.StopAll(w.sentinels)
	if w.demoted != nil {
		w.demoted.kill()
	}
}
