package core_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var exploreStates = flag.Int("explore.states", 10_000, "how many states of each scenario to explore at most; 0: all there are")

// TestExplore tries everything that can happen in each scenario, up to a number of
// states, and checks the rules in every state; from some states it lets the faults
// stop, and everybody must be served.
func TestExplore(t *testing.T) {
	var states, edges, settled, complete int
	t.Run("scenarios", func(t *testing.T) {
		results := make(chan *search, len(scenarios()))
		t.Cleanup(func() {
			close(results)
			for x := range results {
				states, edges, settled = states+x.seen.n, edges+x.edges, settled+x.settled
				if x.complete {
					complete++
				}
			}
		})
		for _, s := range scenarios() {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				x := explore(s, *exploreStates)
				t.Logf("%d states, %d edges, %d settled, %d moves deep, %s", x.seen.n, x.edges, x.settled, x.depth, map[bool]string{true: "all there are", false: "not all"}[x.complete])
				if x.wrong != "" {
					t.Errorf("%s\n%s", x.wrong, strings.Join(x.trace, "\n"))
				}
				results <- x
			})
		}
	})
	t.Logf("in all %d states, %d edges, %d settled; %d scenarios of %d to their end", states, edges, settled, complete, len(scenarios()))
}

// search is what an exploration has found.
type search struct {
	s              *scenario
	seen           *table
	edges, settled int
	depth          int
	complete       bool
	wrong          string
	trace          []string
}

// explore goes breadth first, so that the first violation has the shortest trace. When so
// many states are not all there are, it has seen all of the first levels, and goes on to
// the depths from some of every level's states, chosen by their hashes.
func explore(s *scenario, limit int) *search {
	x := &search{s: s, seen: newTable()}
	var e scribe
	var actions []move
	var here, next frontier
	thinned := false
	first := here.place()
	first.m = newMicrocosm(s)
	first.hash = first.m.hash(&e)
	x.seen.add(first.hash, 0, move{})
	here.keep()
	for ; here.n > 0; x.depth++ {
		if next.clear(); limit > 0 && 4*x.seen.n > limit {
			here.limit(limit / levels)
			next.limit(limit / levels)
		}
		for k := range here.n {
			from := here.at(k)
			from.m.detach()
			actions = from.m.moves(actions[:0])
			for _, a := range actions {
				to := next.place()
				to.m = from.m
				to.m.do(a)
				x.edges++
				if to.m.wrong != "" {
					x.wrong, x.trace = to.m.wrong, append(x.tell(from.hash), a.String())
					return x
				}
				to.hash = to.m.hash(&e)
				if !x.seen.add(to.hash, from.hash, a) {
					continue
				}
				if to.hash>>32%64 == 0 {
					end := to.m
					end.detach()
					x.settled++
					if wrong := end.settle(); wrong != "" {
						x.wrong, x.trace = "when the faults stop: "+wrong, x.tell(to.hash)
						return x
					}
				}
				next.keep()
			}
			from.m = microcosm{}
			if limit > 0 && x.seen.n >= limit {
				return x
			}
		}
		thinned = thinned || here.sparse+next.sparse > 0
		here, next = next, here
	}
	x.complete = !thinned
	return x
}

// tell replays how a state was reached.
func (x *search) tell(hash uint64) []string {
	m := newMicrocosm(x.s)
	var lines []string
	for _, a := range x.seen.path(hash) {
		m.detach()
		m.do(a)
		lines = append(lines, fmt.Sprintf("%12v  %v", m.now, a))
	}
	return lines
}

// That one actor owns a key is why the rules hold: with two of them, each takes the other's
// live term for a forgotten one of its own, and releases it. The exploration notices.
func TestExploreNoticesTwoActorsOnOneKey(t *testing.T) {
	for _, s := range scenarios() {
		if s.name != "plain, three clients and a fault" && s.name != "plain and fenced, four clients" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			s.siblings = true
			x := explore(s, *exploreStates)
			if x.wrong == "" {
				t.Fatalf("%d states, and nothing is wrong in any of them", x.seen.n)
			}
			t.Logf("%s\n%s", x.wrong, strings.Join(x.trace, "\n"))
		})
	}
}
