package fair_test

// The fair lock over several real processes, and the processes that tests start.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestFairOrderOverProcesses(t *testing.T) {
	const processes, each, at = 4, 25, 40
	// A busy machine may need a while; a wait of its own for each of a dead process's
	// entries would take longer than that.
	const patience = 10 * time.Second
	for what, fate := range map[string]struct {
		dies, holds bool
		bound       time.Duration
	}{
		"all live":          {false, false, patience},
		"a waiter's killed": {true, false, locktest.InLine.WaiterTimeout + patience},
		"a holder's killed": {true, true, locktest.InLine.WaiterTimeout + locktest.InLine.Watchdog + patience},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Shared(t))
			lines := make(chan locktest.Said, processes*each)
			var children []*locktest.Child
			var line []*locktest.Child // whose waiter has which place
			for i := range processes {
				children = append(children, locktest.Spawn(t, i, lines, "fair", k.Server.URL(), k.LockName))
				line = append(line, slices.Repeat(children[i:], each)...)
			}
			rand.Shuffle(len(line), func(i, j int) { line[i], line[j] = line[j], line[i] })
			k.TakeAs(t, locktest.Redisson, time.Minute)
			for i, c := range line {
				c.Tell(t, "acquire", i)
				k.awaitLine(t, i+1)
			}
			k.pass(t)

			var victim *locktest.Child
			var died time.Time
			var longest, gap time.Duration
			served, last := 0, time.Now()
			for i, c := range line {
				if c == victim {
					continue
				}
				next := locktest.Await(t, fmt.Sprintf("the grant of waiter %d", i), lines)
				if next.By != c || next.Text != fmt.Sprint("granted ", i) {
					t.Fatalf("process %d: %q, when it was the turn of waiter %d of process %d", next.By.Number, next.Text, i, c.Number)
				}
				if owners := k.Owners(t); len(owners) != 1 {
					t.Errorf("granted to waiter %d, and held by %v", i, owners)
				}
				gap = time.Since(last)
				longest = max(longest, gap)
				served++
				if victim == nil && fate.dies && i >= at {
					victim, died = c, time.Now()
					if !fate.holds { // another one goes instead of the holder
						victim = children[(c.Number+1)%processes]
					}
					victim.Kill(t)
				}
				if last = time.Now(); c != victim {
					c.Tell(t, "release", i)
				}
			}
			if longest > fate.bound {
				t.Errorf("nobody had the lock for %v, more than %v", longest, fate.bound)
			}
			if fate.dies {
				if total := time.Since(died); total > fate.bound {
					t.Errorf("the death held up the queue for %v in all, more than %v", total, fate.bound)
				}
				t.Logf("served %d, longest gap %v, all after the death within %v", served, longest, time.Since(died))
			} else {
				t.Logf("served %d in order, longest gap %v", served, longest)
			}
			k.awaitNothing(t)
			select {
			case more := <-lines:
				if !strings.HasPrefix(more.Text, "granted") || more.By != victim {
					t.Errorf("process %d: %q", more.By.Number, more.Text)
				}
			default:
			}
		})
	}
}
