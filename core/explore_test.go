package core

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var exploreStates = flag.Int("explore.states", 20_000, "how many states of each scenario to explore at most; 0: all there are")

// scenarios are small worlds, each with other things that may happen in it.
func scenarios() []*scenario {
	plain := func(owner Owner) Ticket { return Ticket{Owner: owner} }
	fixed := func(owner Owner, lease time.Duration) Ticket {
		return Ticket{Owner: owner, Lease: lease * time.Millisecond}
	}
	one := [processes][clients]Ticket{{plain(1)}, {plain(1)}}
	two := [processes][clients]Ticket{{plain(1), plain(2)}, {plain(1)}}
	all := [processes][clients]Ticket{{plain(1), plain(2)}, {plain(1), plain(2)}}
	return []*scenario{
		{name: "four clients", clients: all},
		{name: "lost and late replies", clients: one, faults: 2},
		{name: "three clients and a fault", clients: two, faults: 1},
		{name: "cancelled with a fault", clients: two, faults: 1, cancels: 1},
		{name: "re-entered with a fault", clients: one, faults: 1, reentries: 1},
		{name: "fixed leases with a fault", clients: [processes][clients]Ticket{{fixed(1, 300), fixed(2, 700)}, {plain(1)}}, faults: 1},
		{name: "force-released", clients: two, forces: 1, faults: 1},
		{name: "deleted", clients: two, flushes: 1, faults: 1},
		{name: "killed", clients: two, kills: 1, faults: 1},
		{name: "paused", clients: one, pauses: 2, faults: 1},
	}
}

// TestExplore tries everything that can happen in each scenario, up to a number of
// states, and checks the rules in every state; from some states it lets the faults
// stop, and everybody must be served.
func TestExplore(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			x := explore(s, *exploreStates)
			t.Logf("%d states, %d edges, %d settled, %s", len(x.seen), x.edges, x.settled, map[bool]string{true: "all there are", false: "not all"}[x.complete])
			if x.wrong != "" {
				t.Errorf("%s\n%s", x.wrong, strings.Join(x.trace, "\n"))
			}
		})
	}
}

type exploration struct {
	seen           map[uint64]uint64 // a state and where it came from
	by             map[uint64]action
	edges, settled int
	complete       bool
	wrong          string
	trace          []string
}

// explore goes breadth first, so that the first violation has the shortest trace.
func explore(s *scenario, limit int) *exploration {
	x := &exploration{seen: map[uint64]uint64{}, by: map[uint64]action{}, complete: true}
	var e encoder
	type state struct {
		w    world
		hash uint64
	}
	first := newWorld(s)
	frontier := []state{{first, first.hash(&e)}}
	x.seen[frontier[0].hash] = 0
	var actions []action
	for len(frontier) > 0 {
		var nextFrontier []state
		for k := range frontier {
			from := &frontier[k]
			actions = from.w.next(actions[:0])
			for _, a := range actions {
				w := from.w.clone()
				w.do(a)
				x.edges++
				if w.wrong != "" {
					x.wrong, x.trace = w.wrong, append(x.path(s, from.hash), a.String())
					return x
				}
				h := w.hash(&e)
				if _, known := x.seen[h]; known {
					continue
				}
				x.seen[h], x.by[h] = from.hash, a
				if h%32 == 0 {
					end := w.clone()
					x.settled++
					if wrong := end.settle(); wrong != "" {
						x.wrong, x.trace = "when the faults stop: "+wrong, x.path(s, h)
						return x
					}
				}
				nextFrontier = append(nextFrontier, state{w, h})
			}
			from.w = world{}
			if limit > 0 && len(x.seen) >= limit {
				x.complete = false
				return x
			}
		}
		frontier = nextFrontier
	}
	return x
}

// path replays how a state was reached.
func (x *exploration) path(s *scenario, h uint64) []string {
	var actions []action
	for x.seen[h] != 0 {
		actions = append(actions, x.by[h])
		h = x.seen[h]
	}
	w := newWorld(s)
	var lines []string
	for i := len(actions) - 1; i >= 0; i-- {
		w.do(actions[i])
		lines = append(lines, fmt.Sprintf("%12v  %v", w.now, actions[i]))
	}
	return lines
}
