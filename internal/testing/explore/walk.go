package explore

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Walk makes random moves in worlds that are too large to explore, and checks the rules. Then it continues without
// faults, and all clients must be served. begin makes the initial state for a seed.
func Walk[S Synchronizer[S]](t *testing.T, worlds, moves int, begin func(*rand.Rand) *Processes[S]) {
	for seed := range uint64(worlds) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := begin(random)
		var trace []string
		err := error(nil)
		for range moves {
			list := w.Moves(nil)
			if len(list) == 0 {
				break
			}
			a := list[random.IntN(len(list))]
			if w.cost(a) != None && random.IntN(rare) > 0 {
				continue
			}
			trace = append(trace, w.Describe(a))
			if err = w.Try(a); err != nil {
				break
			}
		}
		if err == nil {
			err = w.Settle()
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(trace[max(0, len(trace)-60):], "\n"))
		}
	}
}

// rare is the factor by which faults are less frequent than other moves.
const rare = 8
