package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

const waiting = "bounded waiting"

// turnLimits let each process overtake another twice, in turns of 10 ms.
func turnLimits() Limits {
	l := limits
	l.Turn, l.Join, l.Start, l.Overtakes = 10*time.Millisecond, 4*time.Millisecond, 10*time.Millisecond, 2
	l.Idle = time.Second
	return l
}

// turns are n requests of a process, each granted after 10 ms and held for 4 ms, at intervals of every.
func turns(proc, n, from, every int, kind string) (requests []*history.Request) {
	for i := range n {
		granted := from + i*every
		requests = append(requests, kept(proc, i+1, granted-10, granted, granted+4, kind))
	}
	return requests
}

// pending is a request without an answer.
func pending(proc, id, asked int, kind string) *history.Request {
	return &history.Request{
		Proc: proc, ID: id, Root: id, Parts: []history.Part{{Lock: "x", Kind: kind}}, Unlimited: true, Asked: time.Duration(asked) * time.Millisecond,
	}
}

func cancelled(r *history.Request, at int) *history.Request {
	r.Answered, r.Err = time.Duration(at)*time.Millisecond, "cancelled"
	return r
}

func of(proc int, lists ...[]*history.Request) *history.Process {
	p := &history.Process{Proc: proc}
	for _, list := range lists {
		p.Requests = append(p.Requests, list...)
	}
	for i, r := range p.Requests {
		r.ID, r.Root = i+1, i+1
	}
	return p
}

func one(r *history.Request) []*history.Request { return []*history.Request{r} }

func sharing(list []*history.Request) []*history.Request {
	for _, r := range list {
		shared(r)
	}
	return list
}

func limited(list []*history.Request) []*history.Request {
	for _, r := range list {
		r.Unlimited = false
	}
	return list
}

func TestBoundedWaiting_IsMeasuredInTurns(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	// first makes a request at 100 ms, which is granted at the given ms.
	first := func(granted int, kind string) *history.Process {
		return of(1, one(kept(1, 1, 100, granted, granted+4, kind)))
	}
	several := func(p *history.Process) *history.Process {
		for _, r := range p.Requests {
			r.Parts = append(r.Parts, history.Part{Lock: "y", Kind: "plain"})
		}
		return p
	}
	inner := of(2, turns(2, 5, 115, 20, "reentrant"))
	for _, r := range inner.Requests[1:] { // within the first hold, which goes on
		r.Root, r.Count, r.First, r.Last = inner.Requests[0].ID, 2, 0, 0
	}
	inner.Requests[0].Releasing, inner.Requests[0].Last, inner.Requests[0].Released = ms(213), ms(213), ms(214)

	for _, c := range []struct {
		name      string
		processes []*history.Process
		faults    []history.Fault
		broken    bool
	}{
		{"a turn of each before it", []*history.Process{first(160, "plain"), of(2, turns(2, 1, 115, 20, "plain")), of(3, turns(3, 1, 135, 20, "plain"))}, nil, false},
		{"two turns of each before it", []*history.Process{first(200, "plain"), of(2, turns(2, 2, 115, 40, "plain")), of(3, turns(3, 2, 135, 40, "plain"))}, nil, false},
		{"three turns of each before it", []*history.Process{first(240, "plain"), of(2, turns(2, 3, 115, 40, "plain")), of(3, turns(3, 3, 135, 40, "plain"))}, nil, true},
		{"three turns of one process in a row", []*history.Process{first(200, "plain"), of(2, turns(2, 3, 115, 20, "plain"))}, nil, true},
		{"many grants in two turns", []*history.Process{first(200, "plain"), of(2, turns(2, 2, 115, 5, "plain"), turns(2, 2, 155, 5, "plain"))}, nil, false},
		{"a long turn", []*history.Process{first(200, "plain"), of(2, turns(2, 12, 115, 5, "plain"))}, nil, true},
		{"never granted", []*history.Process{of(1, one(pending(1, 1, 100, "plain"))), of(2, turns(2, 3, 115, 20, "plain"))}, nil, true},
		{"never granted after a turn of its own", []*history.Process{
			of(1, one(kept(1, 1, 90, 100, 110, "plain")), one(pending(1, 2, 105, "plain"))), of(2, turns(2, 3, 125, 20, "plain")),
		}, nil, true},
		{"three short turns", []*history.Process{
			first(200, "plain"),
			of(2, []*history.Request{kept(2, 1, 105, 115, 116, "plain"), kept(2, 2, 106, 119, 120, "plain"), kept(2, 3, 107, 123, 124, "plain")}),
			of(3, []*history.Request{kept(3, 1, 101, 117, 118, "plain"), kept(3, 2, 102, 121, 122, "plain")}),
		}, nil, true},
		{"cancelled at last", []*history.Process{of(1, one(cancelled(pending(1, 1, 100, "plain"), 300))), of(2, turns(2, 3, 115, 20, "plain"))}, nil, true},
		{"cancelled before", []*history.Process{of(1, one(cancelled(pending(1, 1, 100, "plain"), 150))), of(2, turns(2, 5, 115, 20, "plain"))}, nil, false},
		{"killed at last", []*history.Process{
			{Proc: 1, Killed: ms(300), Requests: one(pending(1, 1, 100, "plain"))}, of(2, turns(2, 5, 115, 20, "plain")),
		}, nil, true},
		{"never granted to a process that was killed before", []*history.Process{
			{Proc: 1, Killed: ms(120), Requests: one(pending(1, 1, 100, "plain"))}, of(2, turns(2, 5, 115, 20, "plain")),
		}, nil, false},
		{"by requests made before", []*history.Process{of(1, one(kept(1, 1, 100, 240, 244, "plain"))), of(2, []*history.Request{
			kept(2, 1, 90, 115, 119, "plain"), kept(2, 2, 91, 145, 149, "plain"), kept(2, 3, 92, 175, 179, "plain"), kept(2, 4, 93, 205, 209, "plain"),
		})}, nil, false},
		{"another of the process is granted in between", []*history.Process{
			of(1, one(kept(1, 1, 100, 240, 244, "plain")), one(kept(1, 2, 100, 165, 169, "plain"))), of(2, turns(2, 2, 115, 20, "plain"), turns(2, 2, 185, 20, "plain")),
		}, nil, false},
		{"the wait begins when the process has released", []*history.Process{
			of(1, one(kept(1, 1, 50, 60, 160, "plain")), one(kept(1, 2, 100, 230, 234, "plain"))), of(2, one(kept(2, 1, 150, 165, 169, "plain")), turns(2, 2, 185, 20, "plain")),
		}, nil, false},
		{"after a turn of its own", []*history.Process{
			of(1, one(kept(1, 1, 90, 100, 110, "plain")), one(kept(1, 2, 105, 240, 244, "plain"))), of(2, turns(2, 3, 125, 20, "plain")),
		}, nil, true},
		{"one that waits for a limited time", []*history.Process{of(1, limited(one(kept(1, 1, 100, 240, 244, "plain")))), of(2, turns(2, 5, 115, 20, "plain"))}, nil, true},
		{"by requests made at the same time", []*history.Process{of(1, one(kept(1, 1, 100, 240, 244, "plain"))), of(2, []*history.Request{
			kept(2, 1, 101, 115, 119, "plain"), kept(2, 2, 102, 145, 149, "plain"), kept(2, 3, 103, 175, 179, "plain"), kept(2, 4, 104, 205, 209, "plain"),
		})}, nil, false},
		{"by requests that do not wait", []*history.Process{first(240, "plain"), of(2, limited(turns(2, 3, 115, 20, "plain")))}, nil, true},
		{"by re-entries", []*history.Process{first(240, "reentrant"), inner}, nil, false},
		{"fenced", []*history.Process{of(1, one(token(kept(1, 1, 100, 240, 244, "fenced"), 9))), of(2, []*history.Request{
			token(kept(2, 1, 105, 115, 119, "fenced"), 1), token(kept(2, 2, 125, 135, 139, "fenced"), 2), token(kept(2, 3, 145, 155, 159, "fenced"), 3),
		})}, nil, true},
		{"fair, which has an order of its own", []*history.Process{first(200, "fair"), of(2, turns(2, 3, 115, 11, "fair"))}, nil, false},
		{"a lock that is taken with others", []*history.Process{several(first(240, "plain")), several(of(2, turns(2, 5, 115, 20, "plain")))}, nil, false},
		{"a writer among readers", []*history.Process{first(240, "readwrite"), of(2, sharing(turns(2, 3, 115, 20, "readwrite")))}, nil, true},
		{
			"a writer after the readers of two turns",
			[]*history.Process{
				first(240, "readwrite"), of(2, sharing(turns(2, 2, 115, 20, "readwrite"))),
				of(3, sharing(turns(3, 2, 116, 20, "readwrite"))),
			},
			nil, false,
		},
		{"a reader among writers", []*history.Process{of(1, sharing(one(kept(1, 1, 100, 240, 244, "readwrite")))), of(2, turns(2, 3, 115, 20, "readwrite"))}, nil, true},
		{"a writer whose process reads", []*history.Process{
			of(1, one(kept(1, 1, 100, 240, 244, "readwrite")), sharing(one(kept(1, 2, 100, 155, 158, "readwrite")))),
			of(2, sharing(append(turns(2, 2, 115, 20, "readwrite"), turns(2, 2, 175, 20, "readwrite")...))),
		}, nil, false},
		{"a writer whose process has read before", []*history.Process{
			of(1, one(kept(1, 1, 100, 260, 264, "readwrite")), sharing(one(kept(1, 2, 100, 155, 158, "readwrite")))), of(2, sharing(turns(2, 3, 175, 20, "readwrite"))),
		}, nil, true},
		{"a writer behind the readers of its process", []*history.Process{of(1, one(kept(1, 1, 100, 240, 244, "readwrite")), sharing(turns(1, 5, 115, 20, "readwrite")))}, nil, false},
		{"a reader beside a turn that goes on", []*history.Process{
			of(1, sharing(one(kept(1, 1, 100, 140, 150, "readwrite")))), of(2, sharing(turns(2, 2, 115, 11, "readwrite")),
				sharing([]*history.Request{kept(2, 1, 90, 137, 150, "readwrite"), kept(2, 1, 105, 141, 150, "readwrite")})),
		}, nil, false},
		{"readers with turns at the same time", []*history.Process{
			of(1, one(kept(1, 1, 100, 150, 154, "readwrite"))),
			of(2, sharing([]*history.Request{kept(2, 1, 105, 115, 125, "readwrite"), kept(2, 2, 106, 119, 126, "readwrite"), kept(2, 3, 107, 123, 129, "readwrite")})),
			of(3, sharing([]*history.Request{kept(3, 1, 105, 117, 125, "readwrite"), kept(3, 2, 106, 121, 126, "readwrite"), kept(3, 3, 107, 124, 129, "readwrite")})),
		}, nil, false},
		{"while a fault is active", []*history.Process{first(240, "plain"), of(2, turns(2, 5, 115, 20, "plain"))},
			[]history.Fault{{Name: "lost messages", Proc: -1, From: ms(120), To: ms(130)}}, false},
		{"soon after a fault", []*history.Process{first(240, "plain"), of(2, turns(2, 5, 115, 20, "plain"))},
			[]history.Fault{{Name: "delay", Proc: 3, Hinders: true, From: ms(10), To: ms(20)}}, false},
		{"long after a fault", []*history.Process{of(1, one(kept(1, 1, 400, 540, 544, "plain"))), of(2, turns(2, 5, 415, 20, "plain"))},
			[]history.Fault{{Name: "delay", Proc: -1, Hinders: true, From: ms(10), To: ms(20)}}, true},
		{"a fault of another lock", []*history.Process{first(240, "plain"), of(2, turns(2, 5, 115, 20, "plain"))},
			[]history.Fault{{Name: "DEL", Proc: -1, BreaksLeases: true, Lock: "y", From: ms(120), To: ms(130)}}, true},
		{"at the start of a round", []*history.Process{of(1, one(kept(1, 1, 2, 240, 244, "plain"))), of(2, turns(2, 5, 115, 20, "plain"))}, nil, false},
		{
			"while a process did not run",
			[]*history.Process{
				first(240, "plain"), of(2, turns(2, 5, 115, 20, "plain")),
				{Proc: 3, Stalls: []history.Span{{From: ms(120), To: ms(160)}}},
			},
			nil, false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			judge := func(l Limits) *Verdict {
				return Judge(history.Span{To: time.Second}, c.processes, c.faults, nil, nil, nil, nil, l)
			}
			v := judge(turnLimits())
			broken := false
			for _, violation := range v.Violations {
				if violation.Check != waiting {
					t.Errorf("the history fails another check: %v", violation)
				}
				broken = broken || violation.Check == waiting
			}
			if broken != c.broken {
				t.Errorf("broken: %v, want %v\n%v", broken, c.broken, v.Violations)
			}
			for _, violation := range judge(limits).Violations {
				if violation.Check == waiting {
					t.Errorf("turns are not promised, but were judged: %v", violation)
				}
			}
		})
	}
}

// The verdict names the process that was overtaken, the one that overtook it, and the numbers of turns and waits.
func TestBoundedWaiting_NamesBothProcesses(t *testing.T) {
	v := Judge(history.Span{To: time.Second}, []*history.Process{
		of(1, one(kept(1, 1, 100, 240, 244, "plain"))), of(2, turns(2, 5, 115, 20, "plain")),
	}, nil, nil, nil, nil, nil, turnLimits())
	if len(v.Violations) != 1 {
		t.Fatal(v.Violations)
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
