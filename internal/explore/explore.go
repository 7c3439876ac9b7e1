// Package explore tries everything that can happen in small worlds. It is for the tests of the packages
// that decide.
//
//	explore.go  the exploration of any world
//	world.go    a world of processes that share a synchronizer
//	net.go      what is on its way in it, and what may go wrong
//	client.go   who asks for something in it
//	digest.go   what makes two states of it the same
//	walk.go     random walks through larger ones
package explore

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// States is how many states of a world are explored. With the race detector, which finds as much in a
// tenth of them, everything takes seven times as long.
var States = flag.Int("explore.states", map[bool]int{false: 10_000, true: 1000}[raced()], "how many states of each scenario to explore at most; 0: all there are")

func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// World is a pointer to a state of a world of type W, in which a move of type M can happen next.
type World[W, M any] interface {
	*W
	// CopyTo makes another world the same. What happens to one does not change the other.
	CopyTo(*W)
	// Moves appends all that can happen to a list.
	Moves([]M) []M
	// Try lets a move happen, and returns an error if a rule is broken then.
	Try(M) error
	// Hash tells worlds apart that may go on in different ways.
	Hash() uint64
	// Settle lets the faults stop, and returns an error unless all come to their ends.
	Settle() error
	// Describe is a line about a move that is about to happen.
	Describe(M) string
}

// Scenario is a world by its beginning.
type Scenario[P any] struct {
	Name  string
	Begin func() P
}

// All tries everything that can happen in each scenario, up to a number of states, and checks the rules
// in every state. From some states it lets the faults stop, and everybody must be served.
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
				t.Logf("%s: %d states, %d edges, %d settled, %d moves deep, %s", s.Name, x.States(), x.edges, x.settled, x.depth, map[bool]string{true: "all there are", false: "not all"}[x.complete])
				if x.Wrong != nil {
					t.Errorf("%v\n%s", x.Wrong, strings.Join(x.Trace, "\n"))
				}
				results <- x
			})
		}
	})
	t.Logf("in all %d states, %d edges, %d settled; %d scenarios of %d to their end", states, edges, settled, complete, len(scenarios))
}

// Search is what an exploration has found: Wrong is the first rule that is broken, if any is, and Trace
// how that comes about.
type Search[P World[W, M], W, M any] struct {
	Wrong error
	Trace []string

	begin          func() P
	seen           map[uint64]edge[M]
	edges, settled int
	depth          int
	complete       bool
}

// States is how many states were seen.
func (x *Search[P, W, M]) States() int { return len(x.seen) }

// Run goes breadth first, so that the first violation has the shortest trace. When so many states are
// not all there are, it has seen all of the first levels, and goes on to the depths from some of every
// level's states, chosen by their hashes.
func Run[P World[W, M], W, M any](s Scenario[P], limit int) *Search[P, W, M] {
	x := &Search[P, W, M]{begin: s.Begin, seen: map[uint64]edge[M]{}}
	var moves []M
	first := s.Begin()
	here, thinned := []explored[P]{{first, first.Hash()}}, false
	x.seen[here[0].hash] = edge[M]{}
	to, end := P(new(W)), P(new(W))
	for ; len(here) > 0; x.depth++ {
		var next []explored[P]
		for _, from := range here {
			moves = from.world.Moves(moves[:0])
			for _, a := range moves {
				from.world.CopyTo(to)
				x.edges++
				if x.Wrong = to.Try(a); x.Wrong != nil {
					x.Trace = append(x.tell(from.hash), from.world.Describe(a))
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
						x.Wrong, x.Trace = fmt.Errorf("when the faults stop: %w", x.Wrong), x.tell(hash)
						return x
					}
				}
				next = append(next, explored[P]{to, hash})
				to = P(new(W))
			}
			if limit > 0 && len(x.seen) >= limit {
				return x
			}
		}
		for sparse := 1; limit > 0 && 4*len(x.seen) > limit && len(next) > limit/levels; sparse++ {
			thinned = true
			next = slices.DeleteFunc(next, func(one explored[P]) bool { return one.hash>>40&(1<<sparse-1) != 0 })
		}
		here = next
	}
	x.complete = !thinned
	return x
}

// explored is a state to go on from, and edge how one was reached.
type explored[P any] struct {
	world P
	hash  uint64
}

type edge[M any] struct {
	from uint64
	by   M
}

// levels is how much narrower a limited exploration goes into the depths than it is big.
const levels = 150

// tell replays how a state was reached.
func (x *Search[P, W, M]) tell(hash uint64) (lines []string) {
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
