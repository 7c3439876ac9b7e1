package judge

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

func TestAVerdictOnPermits(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	of := func(kind string, proc, asked, released int) *history.Request {
		r := kept(proc, 1, asked, asked+1, released, kind)
		r.Parts[0].Takes, r.Parts[0].Of = 1, 2
		return r
	}
	three := func(kind string, third int) []*history.Process {
		return []*history.Process{process(1, of(kind, 1, 10, 50)), process(2, of(kind, 2, 10, 50)), process(3, of(kind, 3, third, third+40))}
	}
	unreleased := of(semaphore, 1, 10, 50)
	unreleased.Releasing, unreleased.Released, unreleased.Died = 0, 0, ms(60)
	killed := process(1, unreleased)
	killed.Killed = ms(60)
	wipe := history.Fault{Name: "FLUSHALL", Proc: -1, From: ms(30), To: ms(31), Robs: true, Wipes: true}
	for _, c := range []struct {
		name      string
		processes []*history.Process
		faults    []history.Fault
		free      int
		broken    string
	}{
		{"all come back", three(leased, 60), nil, 2, ""},
		{"one too many is trusted", three(leased, 40), nil, 2, "no more permits are held than there are"},
		{"one too many after a robbery", three(leased, 40), []history.Fault{wipe}, 2, ""},
		{"one is lost", three(leased, 60), nil, 1, "permits are neither made nor lost"},
		{"one too many of a semaphore", three(semaphore, 40), nil, 2, "no more permits are held than there are"},
		{"one is made", three(semaphore, 60), nil, 3, "permits are neither made nor lost"},
		{"forgotten", three(semaphore, 60), []history.Fault{wipe}, 3, ""},
		{"gone with its process", []*history.Process{killed}, nil, 1, ""},
		{"back from the dead", []*history.Process{killed}, nil, 2, "permits are neither made nor lost"},
	} {
		v := Judge(history.Span{To: time.Second}, c.processes, c.faults, nil, nil, nil, map[string]Permits{"x": {Free: c.free}}, limits)
		if got := slices.ContainsFunc(v.Violations, func(v Violation) bool { return v.Check == c.broken }); got != (c.broken != "") || len(v.Violations) > 1 {
			t.Errorf("%s: the verdict is %v, want %q", c.name, v.Violations, c.broken)
		}
	}
}
