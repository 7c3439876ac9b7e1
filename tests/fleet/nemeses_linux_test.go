//go:build fleet

// These tests take minutes; make fleet runs them.

package fleet_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	worldTime = flag.Duration("fleet.time", time.Minute, "how long TestNemeses goes on")
	worldOnly = flag.String("fleet.only", "", "TestNemeses has only the nemeses whose names contain it")
	worldSeed = flag.Uint64("fleet.seed", 0, "the seed of TestNemeses; 0: a random one")
)

// A fleet grows from one node to three, in which no request fails, and to five. Then all nemeses come again and again,
// in a random order, until the time is over.
func TestNemeses(t *testing.T) {
	seed := *worldSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-fleet.seed=%d", seed)
	w := newWorld(t, seed)
	defer w.judge()
	w.grow(1)
	w.increases("answered", 200)
	w.orderly("from one node to three", func() { w.grow(2) })
	w.grow(2)
	chosen := slices.DeleteFunc(slices.Clone(nemeses), func(n nemesis) bool { return !strings.Contains(n.name, *worldOnly) })
	var next []int
	for end := time.Now().Add(*worldTime); time.Now().Before(end); next = next[1:] {
		if len(next) == 0 {
			next = w.random.Perm(len(chosen))
		}
		w.happens(chosen[next[0]])
	}
	w.end()
}

// happens lets a nemesis happen, and waits until the fleet has recovered.
func (w *world) happens(n nemesis) {
	w.t.Helper()
	w.nodes[0].add("nemesis", strings.ReplaceAll(n.name, " ", "-"))
	began := time.Now()
	n.do(w)
	lasted := time.Since(began)
	last := w.recovers()
	w.t.Logf("%s: %.1f s, and %.1f s until it has recovered; %d answered, %d failed, %d refused so far%s", n.name,
		lasted.Seconds(), (time.Since(began) - lasted).Seconds(), w.count("answered"), w.count("failed"), w.count("refused"), last)
}

// When a rule is broken, the judge notices soon.
func TestControls(t *testing.T) {
	for _, c := range controls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.binary, w.grains = build(t, c.edits), 60
			w.grow(2)
			for end := time.Now().Add(time.Minute); time.Now().Before(end); {
				c.do(w)
				w.increases("answered", 64)
				w.mu.Lock()
				history := slices.Clone(w.history)
				w.mu.Unlock()
				for _, fault := range judge(history, false).faults {
					if strings.Contains(fault, c.caught) {
						t.Log(fault)
						return
					}
				}
			}
			t.Error("the judge has not noticed")
		})
	}
}
