package judge

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// Each check of a single world detects its violation, and nothing else.
func TestJudge_EachCheckOfAWorldNoticesItsViolationOnly(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	awake := limits
	awake.GrantWithin, awake.Idle = 100*time.Millisecond, time.Minute
	named := func(r *history.Request, kind string, takes int) *history.Request {
		r.Parts[0].Kind, r.Parts[0].Permits, r.Parts[0].Total = kind, takes, 2
		return r
	}
	refused := func(r *history.Request, err string) *history.Request {
		r.Granted, r.Err, r.First, r.Last, r.Releasing, r.Released = false, err, 0, 0, 0, 0
		return r
	}
	does := func(r *history.Request, what string) *history.Request {
		r.Parts[0].Action = what
		return r
	}
	extended := func(r *history.Request, at, by int) *history.Request {
		r.Extensions = []history.Extension{{Span: history.Span{From: ms(at), To: ms(at + 1)}, Lease: ms(by)}}
		return r
	}
	force := history.Fault{Proc: -1, Lock: "x", BreaksLeases: true, Forces: true, From: ms(100), To: ms(300)}
	planted := history.Fault{Proc: -1, Lock: "x", Foreign: true, From: ms(10), To: ms(11)}
	set := history.Fault{Proc: -1, Lock: "x", Number: 1 << 40}
	for _, c := range []struct {
		name, want string
		requests   []*history.Request
		fault      history.Fault
	}{
		{
			"a reader is not granted beside a reader", "a request that can be granted is granted",
			[]*history.Request{
				shared(kept(1, 1, 1, 2, 400, "readwrite")), shared(kept(2, 1, 10, 300, 310, "readwrite")),
			},
			history.Fault{},
		},
		{"a reader waits for a writer", "", []*history.Request{kept(1, 1, 1, 2, 400, "readwrite"), shared(kept(2, 1, 10, 401, 410, "readwrite"))}, history.Fault{}},
		{
			"a reader waits behind a writer", "",
			[]*history.Request{
				shared(kept(1, 1, 1, 2, 400, "readwrite")), kept(3, 1, 5, 401, 402, "readwrite"),
				shared(kept(2, 1, 10, 403, 410, "readwrite")),
			},
			history.Fault{},
		},
		{
			"one permit is enough", "a request that can be granted is granted",
			[]*history.Request{
				named(kept(1, 1, 1, 2, 400, semaphore), semaphore, 1),
				named(kept(2, 1, 10, 300, 310, semaphore), semaphore, 1),
			},
			history.Fault{},
		},
		{
			"two permits are not free", "",
			[]*history.Request{
				named(kept(1, 1, 1, 2, 400, semaphore), semaphore, 1),
				named(kept(2, 1, 10, 401, 410, semaphore), semaphore, 2),
			},
			history.Fault{},
		},
		{"a lease is lost", "no lease is lost while Redis answers", []*history.Request{lost(kept(1, 1, 1, 2, 300, "plain"), 200, 201)}, history.Fault{}},
		{"a lease is lost in a fault", "", []*history.Request{lost(kept(1, 1, 1, 2, 300, "plain"), 200, 201)}, history.Fault{Proc: -1, Hinders: true, From: ms(100), To: ms(150)}},
		{"the next hold is ended", "a forced release ends only the inspected hold", []*history.Request{lost(kept(1, 1, 150, 160, 300, "plain"), 250, 251)}, force},
		{"the next hold ends by its extension", "", []*history.Request{extended(lost(kept(1, 1, 150, 160, 300, "plain"), 250, 251), 200, 52)}, force},
		{"the inspected hold is ended", "", []*history.Request{lost(kept(1, 1, 50, 60, 300, "plain"), 250, 251)}, force},
		{"a foreign key is locked", "a foreign key is not locked", []*history.Request{named(kept(1, 1, 20, 30, 40, foreign), foreign, 0)}, planted},
		{"a foreign key is waited for", "a foreign key is not waited for", []*history.Request{named(refused(kept(1, 1, 20, 30, 40, foreign), "timed out"), foreign, 0)}, planted},
		{
			"a foreign key is disclosed", "a foreign key is not disclosed",
			[]*history.Request{
				does(
					named(refused(kept(1, 1, 20, 30, 40, foreign), history.Discloses+"password"), foreign, 0),
					history.Inspect,
				),
			},
			planted,
		},
		{"a foreign key is refused", "", []*history.Request{named(refused(kept(1, 1, 20, 30, 40, foreign), "rejected"), foreign, 0)}, planted},
		{"the key was not foreign yet", "", []*history.Request{named(kept(1, 1, 1, 2, 9, foreign), foreign, 0)}, planted},
		{"a closed latch is passed", "a closed latch is not passed", []*history.Request{named(kept(1, 1, 1, 2, 3, edgeLatch), edgeLatch, 0)}, set},
		{"a count-down is missing", "numbers are exact", []*history.Request{does(named(kept(1, 1, 1, 2, 3, edgeLatch), edgeLatch, 1), history.Down)}, set},
		{"permits are released", "", []*history.Request{named(kept(1, 1, 1, 2, 3, edgeSemaphore), edgeSemaphore, 2)}, set},
	} {
		c.fault.Name = c.name
		found := map[string]Permits{"x": {Free: 1 << 40}}
		if c.requests[0].Parts[0].Kind == semaphore {
			found["x"] = Permits{Free: 2}
		}
		var processes []*history.Process
		for _, r := range c.requests {
			processes = append(processes, process(r.Proc, r))
		}
		v := Judge(history.Span{To: time.Second}, processes, []history.Fault{c.fault}, nil, nil, nil, found, awake)
		var got []string
		for _, each := range v.Violations {
			got = append(got, each.Check)
		}
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(slices.Compact(got), []string{c.want}) {
			t.Errorf("%s: failed checks %q, want %q: %v", c.name, got, c.want, v.Violations)
		}
	}
}
