package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// Without faults, two processes whose waiters never cease get equal shares of the
// lock, and most grants cost no command.
func TestProcessesShareTheLock(t *testing.T) {
	w := newWorld(&core.Kind{}, &tape{}, false)
	a, b := w.processes[0], w.processes[1]
	for w.now < 60*sec {
		for _, p := range w.processes {
			for len(p.requests) < 5 {
				p.acquire() // and release after a millisecond
			}
		}
		w.happened = 0 // it never comes to rest
		w.runUntil(w.now + ms)
	}
	if total := a.grants + b.grants; total < 40000 || 10*a.grants > 11*b.grants || 10*b.grants > 11*a.grants {
		t.Errorf("in a minute the one gets %d grants, and the other %d", a.grants, b.grants)
	}
	if commands := a.lastSeq + b.lastSeq; 20*int(commands) > a.grants+b.grants {
		t.Errorf("%d grants took %d commands", a.grants+b.grants, commands)
	}
}
