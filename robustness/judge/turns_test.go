package judge

import (
	"strings"
	"testing"
	"time"
)

// turnLimits let each process overtake another twice, in turns of 10 ms.
func turnLimits() Limits {
	l := limits
	l.Turn, l.Join, l.Start, l.Overtakes = 10*time.Millisecond, 4*time.Millisecond, 10*time.Millisecond, 2
	l.Idle = time.Second
	return l
}

const overtaken = "1: asked 100, granted 240, released 244\n2: asked 105, granted 115, released 119, repeated 4 every 20"

// Overtakes of 0 promise nothing.
func TestBoundedWaiting_IsJudgedOnlyWhereItIsPromised(t *testing.T) {
	l := turnLimits()
	l.Overtakes = 0
	if v := parse(t, overtaken).judged(l); !v.OK() {
		t.Errorf("broken without a promise: %v", v.Violations)
	}
}

// The verdict names the process that was overtaken, the process that overtook it, and the numbers of turns and waits.
func TestBoundedWaiting_NamesBothProcesses(t *testing.T) {
	v := parse(t, overtaken).judged(turnLimits())
	if len(v.Violations) != 1 {
		t.Fatalf("%v, want one violation", v.Violations)
	}
	got := v.Violations[0]
	for _, want := range []string{"process 1, which waited from 104ms to 240ms", "5 turns of process 2"} {
		if !strings.Contains(got.Detail, want) {
			t.Errorf("%q does not contain %q", got.Detail, want)
		}
	}
	if at := 155 * time.Millisecond; got.At != at || got.Lock != "x" {
		t.Errorf("the violation is at %v, lock %q; want the third turn, at %v", got.At, got.Lock, at)
	}
	// The first process in the queue waits, too.
	if v.MaxOvertaken != 5 || v.Waits != 6 {
		t.Errorf("overtaken %d times, %d waits judged", v.MaxOvertaken, v.Waits)
	}
}
