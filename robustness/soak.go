package main

import (
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/faults"
	"github.com/lockkeeper-go/lockkeeper/robustness/report"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

const (
	// heapTolerance is how much the live memory of a process may grow in a run: pools and
	// tables of the run's size, and the noise of the measurement.
	heapTolerance = 4 << 20
	// goroutineTolerance is for Redis clients that reconnect, and workers that Redis's
	// answers keep busy: at most 24, which stay.
	goroutineTolerance = 24 + 8
	// restCPU is the share of a processor that a process without traffic may use: its timers
	// must not exceed it.
	restCPU = 0.05
	// restFor is how long that is measured.
	restFor = 3 * time.Second
)

// rest is the state without traffic.
type rest struct {
	clients        []traffic.Footprint
	cpu            []float64 // of each, as a share of a processor
	keys, channels []string
}

// atRest waits until all leftovers have expired, and measures.
func atRest(w *faults.World, p traffic.Plan) (r rest, err error) {
	deadline := time.Now().Add(20 * time.Second)
	time.Sleep(p.Lease() + p.Silence() + 2*p.Idle)
	for {
		if r.clients, err = w.Footprints(); err != nil {
			return r, err
		}
		if r.keys, r.channels, err = w.Leftovers(); err != nil {
			return r, err
		}
		if len(r.keys)+len(r.channels) == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	before := r.clients
	time.Sleep(restFor)
	if r.clients, err = w.Footprints(); err != nil {
		return r, err
	}
	for i, c := range r.clients {
		r.cpu = append(r.cpu, float64(c.CPU-before[i].CPU)/float64(restFor))
	}
	return r, nil
}

// poolCleanup is how long rueidis keeps the connections that it has opened during an outage,
// with buffers of a megabyte each.
const poolCleanup = 2 * time.Minute

// settled measures at the end: as soon as nothing has grown, or after poolCleanup.
func settled(w *faults.World, p traffic.Plan, start rest) (end rest, err error) {
	for began := time.Now(); ; {
		if end, err = atRest(w, p); err != nil || len(compare(start, end).Grown) == 0 || time.Since(began) > poolCleanup {
			return end, err
		}
	}
}

// compare compares two measurements of the same processes.
func compare(start, end rest) *report.Soak {
	s := &report.Soak{}
	for i := range end.clients {
		a, b := start.clients[i], end.clients[i]
		name := func(what string) string { return fmt.Sprintf("process %d: %s", i+1, what) }
		s.Compare(name("goroutines"), a.Goroutines, b.Goroutines,
			fmt.Sprintf("+%d", goroutineTolerance), b.Goroutines <= a.Goroutines+goroutineTolerance)
		s.Compare(name("actors"), a.Actors, b.Actors, "the same", b.Actors == a.Actors)
		s.Compare(name("live memory"), mib(a.Heap), mib(b.Heap), "+"+mib(heapTolerance), b.Heap <= a.Heap+heapTolerance)
		s.Compare(name("processor at rest"), percent(start.cpu[i]), percent(end.cpu[i]), percent(restCPU), end.cpu[i] <= restCPU)
	}
	s.Compare("keys in Redis, but for counters of tokens", len(start.keys), named(end.keys), 0, len(end.keys) == 0)
	s.Compare("channels subscribed to", len(start.channels), named(end.channels), 0, len(end.channels) == 0)
	return s
}

// named counts names, and lists them.
func named(names []string) string {
	if len(names) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %q", len(names), names)
}

func mib(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
