package backend

import (
	"fmt"
	"testing"
	"time"
)

// A counter keeps its highest token while it has a user, and for a while after that.
func TestCounters_AreKeptForAWhile(t *testing.T) {
	all := counters{keepFor: time.Minute}
	first := all.enter("orders", 0)
	first.NoteDrawn(7)
	first.NoteDrawn(5)
	if second := all.enter("orders", time.Hour); second != first || second.Highest() != 7 {
		t.Fatalf("the counter in use has %d, expected 7", second.Highest())
	}
	all.leave(first, time.Hour)
	all.leave(first, time.Hour)
	again := all.enter("orders", time.Hour+59*time.Second)
	if again.Highest() != 7 {
		t.Errorf("after 59 s without a user the counter has %d, expected 7", again.Highest())
	}
	all.enter("invoices", 2*time.Hour) // which forgets unused counters
	if all.byName["orders"] != again {
		t.Error("a counter that was in use again is forgotten")
	}
	all.leave(again, 2*time.Hour)
	all.enter("refunds", 2*time.Hour+time.Minute)
	if all.byName["orders"] != nil {
		t.Error("an unused counter is kept for ever")
	}
}

// The memory for counters is bounded by what was used lately.
func TestCounters_AreForgotten(t *testing.T) {
	all := counters{keepFor: time.Minute}
	for i := range 10_000 {
		all.leave(all.enter(fmt.Sprint(i), time.Duration(i)*time.Second), time.Duration(i)*time.Second)
	}
	if n := len(all.byName); n > 70 {
		t.Errorf("%d counters are kept, and 60 were used in the last minute", n)
	}
	if n := len(all.unused); n > 70 {
		t.Errorf("%d counters are noted as unused", n)
	}
}
