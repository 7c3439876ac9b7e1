package judge

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

func TestJudge_NoticesEachBrokenPromiseOfSynchronizers(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	of := func(kind string, proc, asked, released int) *history.Request {
		r := kept(proc, 1, asked, asked+1, released, kind)
		r.Parts[0].Permits, r.Parts[0].Total = 1, 2
		return r
	}
	three := func(kind string, third int) []*history.Process {
		return []*history.Process{process(1, of(kind, 1, 10, 50)), process(2, of(kind, 2, 10, 50)), process(3, of(kind, 3, third, third+40))}
	}
	does := func(r *history.Request, does string, n, by int) *history.Request {
		r.Parts[0].Action, r.Parts[0].Permits, r.Parts[0].CountDownID = does, n, by
		r.First, r.Last, r.Releasing, r.Released = 0, 0, 0, 0
		return r
	}
	failed := func(r *history.Request, why string) *history.Request {
		r.Granted, r.Err = false, why
		return r
	}
	with := func(all []*history.Process, r *history.Request) []*history.Process {
		return append(all, process(4, r))
	}
	kept3 := kept(3, 1, 60, 500, 540, expirable)
	kept3.Parts[0].Permits, kept3.Parts[0].Total = 1, 2
	both := *kept3
	both.Parts = []history.Part{{Lock: "x", Kind: expirable, Permits: 2, Total: 2}}
	unreleased := of(semaphore, 1, 10, 50)
	unreleased.Releasing, unreleased.Released, unreleased.Died = 0, 0, ms(60)
	killed := process(1, unreleased)
	killed.Killed = ms(60)
	wipe := history.Fault{Name: "FLUSHALL", Proc: -1, From: ms(30), To: ms(31), BreaksLeases: true, ErasesData: true}
	takeover := history.Fault{Name: "a master is killed", Proc: -1, From: ms(95), To: ms(950), Takeover: true}
	loses, later := takeover, takeover
	loses.ErasesData, later.ErasesData, later.From = true, true, ms(890)
	at := func(latch ...*history.Request) []*history.Process {
		return []*history.Process{process(1, append(latch, does(of("latch", 1, 0, 2), history.Close, 2, 0))...)}
	}
	down := func(asked, by int) *history.Request {
		return does(of("latch", 1, asked, asked+2), history.Down, 1, by)
	}
	wait := func(asked, answered int) *history.Request {
		r := does(of("latch", 1, asked, answered), "", 0, 0)
		r.Answered = ms(answered)
		return r
	}
	undone := []*history.Process{process(1, failed(does(of("latch", 1, 100, 102), history.Close, 2, 0), "unavailable"), failed(wait(110, 111), "held"), wait(120, 960))}
	const lost, permits = "permits are neither created nor lost", "linearizable: expirable permits"
	for _, c := range []struct {
		name      string
		processes []*history.Process
		faults    []history.Fault
		free      int
		broken    string
	}{
		{"all are released", three(expirable, 60), nil, 2, ""},
		{"one too many is valid", three(expirable, 40), nil, 2, permits},
		{"one more, which was added", with(three(expirable, 40), does(of(expirable, 4, 20, 30), history.Add, 1, 0)), nil, 3, ""},
		{"two of an unknown resize", with(three(expirable, 60), failed(does(of(expirable, 4, 20, 30), history.Resize, 5, 0), "unavailable")), nil, 2, ""},
		{"one whose release a new master lacks", three(expirable, 60), []history.Fault{takeover}, 1, ""},
		{"two taken on a new master, of which one was released later", three(expirable, 60), []history.Fault{takeover}, 0, lost},
		{"one too many after a broken lease", three(expirable, 40), []history.Fault{wipe}, 2, ""},
		{"one is lost", three(expirable, 60), nil, 1, permits},
		{"an unknown number", three(expirable, 60), nil, -1, lost},
		{"a waiter while there is no permit", []*history.Process{process(1, of(expirable, 1, 10, 50)), process(2, does(of(expirable, 2, 55, 60), history.Resize, 1, 0),
			does(of(expirable, 2, 65, 70), history.Add, -1, 0), does(of(expirable, 2, 480, 490), history.Add, 1, 0)), process(3, kept3)}, nil, 1, ""},
		{"a waiter for two while there is one permit", []*history.Process{process(1, of(expirable, 1, 10, 50)), process(2, does(of(expirable, 2, 55, 60), history.Resize, 1, 0),
			does(of(expirable, 2, 480, 490), history.Add, 1, 0)), process(3, &both)}, nil, 2, ""},
		{"a waiter while there is a permit", []*history.Process{process(1, of(expirable, 1, 10, 50)), process(2, does(of(expirable, 2, 55, 60), history.Resize, 1, 0),
			does(of(expirable, 2, 480, 490), history.Add, 1, 0)), process(3, kept3)}, nil, 2, "a free lock is granted to its waiters"},
		{"one too many of a semaphore", three(semaphore, 40), nil, 2, "linearizable: semaphore"},
		{"one less, which was taken away", with(three(semaphore, 60), does(of(semaphore, 4, 20, 30), history.Add, -1, 0)), nil, 1, ""},
		{"two, when one was taken away before", []*history.Process{process(1, of(semaphore, 1, 10, 50)), process(2, does(of(semaphore, 2, 20, 30), history.Add, -1, 0)),
			process(3, of(semaphore, 3, 60, 100)), process(4, of(semaphore, 4, 60, 100))}, nil, 1, "linearizable: semaphore"},
		{"one less than that", with(three(semaphore, 60), does(of(semaphore, 4, 20, 30), history.Add, -1, 0)), nil, 0, "linearizable: semaphore"},
		{"one is created", three(semaphore, 60), nil, 3, "linearizable: semaphore"},
		{"Redis has lost its data", three(semaphore, 60), []history.Fault{wipe}, 3, ""},
		{"gone with its process", []*history.Process{killed}, nil, 1, ""},
		{"permits of a killed process are free", []*history.Process{killed}, nil, 2, "linearizable: semaphore"},
		{"a latch that opens", at(down(10, 0), down(20, 1), wait(5, 22), failed(wait(11, 12), "held")), nil, 0, ""},
		{"one that opens too early", at(down(10, 0), wait(5, 19), down(20, 1)), nil, 0, "linearizable: latch"},
		{"one that opens after an id twice", at(down(10, 1), down(20, 1), wait(5, 22)), nil, 0, "linearizable: latch"},
		{"one that opens after a count-down of unknown outcome", at(down(10, 1), failed(down(20, 2), "unavailable"), wait(5, 30)), nil, 0, ""},
		{"one whose count-down of unknown outcome is lost", at(down(10, 1), failed(down(20, 2), "unavailable")), nil, 1, "linearizable: latch"},
		{"one that is closed after the last", at(down(10, 1), down(20, 0), failed(wait(25, 26), "held")), nil, 0, "linearizable: latch"},
		{"one whose close is undone by a failover", undone, []history.Fault{takeover}, 0, ""},
		{"one that opens by itself", undone, nil, 0, "linearizable: latch"},
		{"one that is open and keeps a waiter waiting", at(down(10, 1), down(20, 0), wait(25, 26), wait(5, 300)), nil, 0, "an open latch lets its waiters pass"},
		{"one that is closed again on a new master, which lacks its opening", at(down(10, 1), down(20, 0), wait(25, 26), wait(90, 900)), []history.Fault{loses}, 1, ""},
		{
			"one that is open until a new master takes over",
			at(down(10, 1), down(20, 0), wait(25, 26), failed(wait(5, 900), "held")), []history.Fault{later}, 1,
			"an open latch lets its waiters pass",
		},
		{"one that Redis has lost", at(down(10, 1), wait(5, 32)), []history.Fault{wipe}, 0, ""},
	} {
		found := map[string]Permits{"x": {Free: c.free}}
		if c.faults != nil && c.faults[0].Takeover {
			found["x"] = Permits{Free: c.free, Taken: 2 - c.free}
		}
		if c.free < 0 {
			found = nil
		}
		v := Judge(history.Span{To: time.Second}, c.processes, c.faults, nil, nil, nil, found, limits)
		got := slices.ContainsFunc(v.Violations, func(v Violation) bool { return v.Check == c.broken })
		if got != (c.broken != "") || !got && !v.OK() || len(v.Violations) > 1 && c.free >= 0 {
			t.Errorf("%s: the verdict is %v, want %q", c.name, v.Violations, c.broken)
		}
	}
}
