// Package explore tries all sequences of events in small worlds, to test the decision machines. A world has the states,
// the moves that are possible in each, and the rules:
//
//	small := explore.Scenario[*world]{Name: "two waiters", Begin: func() *world { return newWorld(2) }}
//	explore.All(t, []explore.Scenario[*world]{small}) // all sequences of moves, up to a number of states
//	explore.Walk(t, 50, 2000, randomWorld)            // 50 random walks of at most 2000 moves
//
//	explore.go  the exploration of any world
//	world.go    a world of processes that share a synchronizer
//	net.go      the messages in transit, and the faults
//	client.go   the clients in it
//	digest.go   the hash of its states
//	walk.go     random walks through larger worlds
package explore

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// States is the number of states of a world to explore. With the race detector, exploring takes seven times as long,
// and a tenth of the states suffices.
var States = flag.Int("explore.states", map[bool]int{false: 10_000, true: 1000}[raced()],
	"how many states of each scenario to explore at most; 0: all")

func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// World is a pointer to a state of type W, from which moves of type M are possible.
type World[W, M any] interface {
	*W
	// CopyTo copies the state to another world. Both are then independent.
	CopyTo(*W)
	// Moves appends all possible moves to a list.
	Moves([]M) []M
	// Try makes a move, and returns an error if a rule is then violated.
	Try(M) error
	// Hash differs between states that may continue differently.
	Hash() uint64
	// Settle continues without faults, and returns an error unless all clients finish.
	Settle() error
	// Describe returns a line of text about a move before it is made.
	Describe(M) string
}

// Scenario is a named initial state of a world.
type Scenario[P any] struct {
	Name  string
	Begin func() P
}

// All explores each scenario, up to a number of states, and checks the rules in every state. From some states it
// continues without faults, and all clients must be served.
func All[P World[W, M], W, M any](t *testing.T, scenarios []Scenario[P]) {
	var states, edges, settled, complete int
	t.Run("scenarios", func(t *testing.T) {
		results := make(chan *Search[P, W, M], len(scenarios))
		t.Cleanup(func() {
			close(results)
			for x := range results {
				states, edges, settled = states+x.States(), edges+x.edges, settled+x.settled
				if x.complete {
					complete++
				}
			}
		})
		for _, s := range scenarios {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				x := Run(s, *States)
				t.Logf("%s: %d states, %d edges, %d settled, %d moves deep, %s",
					s.Name, x.States(), x.edges, x.settled, x.depth,
					map[bool]string{true: "all states", false: "not all states"}[x.complete])
				if x.Wrong != nil {
					t.Errorf("%v\n%s", x.Wrong, strings.Join(x.Trace, "\n"))
				}
				results <- x
			})
		}
	})
	t.Logf("in all %d states, %d edges, %d settled; %d of %d scenarios complete", states, edges, settled, complete, len(scenarios))
}

// Notices explores a scenario in which a rule is broken on purpose, and fails the test if nothing is wrong in any
// state. It looks at -explore.states states, or at limit states if that is more.
func Notices[P World[W, M], W, M any](t *testing.T, s Scenario[P], limit int) {
	t.Helper()
	x := Run(s, max(*States, limit)) // it stops at the first violation
	if x.Wrong == nil {
		t.Fatalf("%s: %d states, and nothing is wrong in any of them", s.Name, x.States())
	}
	t.Logf("%s, after %d states: %v\n%s", s.Name, x.States(), x.Wrong, strings.Join(x.Trace, "\n"))
}

// Search is the result of an exploration: Wrong is the first violation, if there is one, and Trace the moves that lead
// to it.
type Search[P World[W, M], W, M any] struct {
	Wrong error
	Trace []string

	begin          func() P
	seen           map[uint64]edge[M]
	edges, settled int
	depth          int
	complete       bool
}

// States returns the number of states that were seen.
func (x *Search[P, W, M]) States() int { return len(x.seen) }

// Run explores breadth first, so that the first violation has the shortest trace. If there are more states than the
// limit, it visits all states of the first levels, and continues from some states of every level, chosen by their
// hashes.
func Run[P World[W, M], W, M any](s Scenario[P], limit int) *Search[P, W, M] {
	x := &Search[P, W, M]{begin: s.Begin, seen: map[uint64]edge[M]{}}
	var moves []M
	first := s.Begin()
	here, thinned := []explored[P]{{first, first.Hash()}}, false
	x.seen[here[0].hash] = edge[M]{}
	var spent []P // worlds that are no longer needed: their memory is used again
	another := func() P {
		if len(spent) == 0 {
			return P(new(W))
		}
		last := spent[len(spent)-1]
		spent = spent[:len(spent)-1]
		return last
	}
	to, end := another(), another()
	for ; len(here) > 0; x.depth++ {
		var next []explored[P]
		for _, from := range here {
			moves = from.world.Moves(moves[:0])
			for _, a := range moves {
				from.world.CopyTo(to)
				x.edges++
				if x.Wrong = to.Try(a); x.Wrong != nil {
					x.Trace = append(x.replay(from.hash), from.world.Describe(a))
					return x
				}
				hash := to.Hash()
				if _, known := x.seen[hash]; known {
					continue
				}
				x.seen[hash] = edge[M]{from.hash, a}
				if hash>>32%64 == 0 {
					to.CopyTo(end)
					x.settled++
					if x.Wrong = end.Settle(); x.Wrong != nil {
						x.Wrong, x.Trace = fmt.Errorf("without further faults: %w", x.Wrong), x.replay(hash)
						return x
					}
				}
				next = append(next, explored[P]{to, hash})
				to = another()
			}
			spent = append(spent, from.world)
			if limit > 0 && len(x.seen) >= limit {
				return x
			}
		}
		for sparse := 1; limit > 0 && 4*len(x.seen) > limit && len(next) > limit/levels; sparse++ {
			thinned = true
			next = slices.DeleteFunc(next, func(one explored[P]) bool {
				drop := one.hash>>40&(1<<sparse-1) != 0
				if drop {
					spent = append(spent, one.world)
				}
				return drop
			})
		}
		here = next
	}
	x.complete = !thinned
	return x
}

// explored is a state to continue from, and edge is how a state was reached.
type explored[P any] struct {
	world P
	hash  uint64
}

type edge[M any] struct {
	from uint64
	by   M
}

// levels is the limit divided by the number of states of a level that a limited exploration continues from.
const levels = 150

// replay returns a description of the moves to a state.
func (x *Search[P, W, M]) replay(hash uint64) (lines []string) {
	var path []M
	for e := x.seen[hash]; e.from != 0; e = x.seen[e.from] {
		path = append(path, e.by)
	}
	w := x.begin()
	for _, a := range slices.Backward(path) {
		lines = append(lines, w.Describe(a))
		_ = w.Try(a)
	}
	return lines
}
