package judge

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// limits of the histories below, whose times are in milliseconds.
var limits = Limits{
	Lease: 100 * time.Millisecond, Silence: 50 * time.Millisecond, Slack: 20 * time.Millisecond,
	Idle: 200 * time.Millisecond, Order: 40 * time.Millisecond, Checker: 10 * time.Second,
}

// kept is a request that was granted, valid from grant to release, and released.
func kept(proc, id, asked, granted, released int, kind string) *history.Request {
	at := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return &history.Request{
		Proc: proc, ID: id, Root: id, Parts: []history.Part{{Lock: "x", Kind: kind}}, Unlimited: true,
		Asked: at(asked), Answered: at(granted), Granted: true, Count: 1,
		First: at(granted), Last: at(released - 1), Releasing: at(released - 1), Released: at(released),
	}
}

func lost(r *history.Request, invalid, notified int) *history.Request {
	r.Invalid, r.Notified, r.LossReason = time.Duration(invalid)*time.Millisecond, time.Duration(notified)*time.Millisecond, "expired"
	r.Last = r.Invalid - time.Millisecond
	r.Releasing, r.Released, r.ReleaseErr = r.Notified, r.Notified, "lost"
	return r
}

func shared(r *history.Request) *history.Request {
	r.Parts[0].Shared = true
	return r
}

func token(r *history.Request, n int64) *history.Request {
	r.Tokens = []int64{n}
	return r
}

func atLeast(r *history.Request, ms int) *history.Request {
	r.AtLeast = time.Duration(ms) * time.Millisecond
	return r
}

func extended(r *history.Request, from, to, lease int, err string) *history.Request {
	at := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	r.Extensions = append(r.Extensions, history.Extension{Span: history.Span{From: at(from), To: at(to)}, Lease: at(lease), Err: err})
	return r
}

func bounded(r *history.Request, ms int) *history.Request {
	r.Bound = time.Duration(ms) * time.Millisecond
	return r
}

func judged(processes []*history.Process, faults ...history.Fault) *Verdict {
	return Judge(history.Span{To: time.Second}, processes, faults, nil, nil, nil, nil, limits)
}

func process(proc int, requests ...*history.Request) *history.Process {
	return &history.Process{Proc: proc, Requests: requests}
}

func TestJudge_NoticesEachBrokenPromise(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	deletion := history.Fault{Name: "DEL", Proc: -1, From: ms(20), To: ms(21), BreaksLeases: true}
	killed := process(1, &history.Request{
		Proc: 1, ID: 1, Root: 1, Parts: []history.Part{{Lock: "x", Kind: "plain"}}, Asked: ms(1), Answered: ms(2), Granted: true, Count: 1,
		First: ms(2), Last: ms(30), Died: ms(40),
	})
	killed.Killed = ms(40)
	again := kept(1, 2, 12, 14, 16, "reentrant")
	again.Root, again.Count, again.First, again.Last = 1, 2, 0, 0
	wrongCount := *again
	wrongCount.Count = 3
	never := kept(1, 1, 10, 20, 40, "plain")
	never.First, never.Last, never.Invalid, never.Notified, never.ReleaseErr = 0, 0, ms(21), ms(21), "lost"
	closing := *never
	closing.LossReason = closed
	unnotified := kept(1, 1, 10, 20, 400, "plain")
	unnotified.Last, unnotified.Invalid, unnotified.ReleaseErr = ms(99), ms(100), "lost"
	good := kept(1, 1, 10, 20, 200, "plain")
	good.Last, good.Invalid = ms(99), ms(100)
	slow := kept(1, 1, 10, 20, 400, "plain")
	slow.Releasing, slow.Last = ms(30), ms(30)
	overBefore := kept(1, 1, 10, 20, 30, "plain")
	overBefore.ReleaseErr = "not held"
	unanswered := &history.Request{Proc: 2, ID: 7, Root: 7, Parts: []history.Part{{Lock: "x", Kind: "plain"}}, Asked: ms(100)}

	// A writer that reads as well, and does not know whether it has released the write lock.
	downgraded := func(releasing int) *history.Process {
		writer, reader := kept(1, 1, 10, 20, 50, "readwrite"), lost(shared(kept(1, 2, 21, 22, 80, "readwrite")), 70, 71)
		writer.Releasing, writer.Last, writer.ReleaseErr, writer.OutcomeUnknown = ms(releasing), ms(releasing), "unavailable", true
		reader.Root = 1
		return process(1, writer, reader)
	}

	// The same, but it has released its read hold.
	downgradedAndOver := downgraded(30)
	downgradedAndOver.Requests[1] = shared(kept(1, 2, 21, 22, 80, "readwrite"))
	downgradedAndOver.Requests[1].Root = 1

	for _, c := range []struct {
		name      string
		processes []*history.Process
		faults    []history.Fault
		want      []string // the checks that are to fail, in alphabetical order
	}{
		{"one after another", []*history.Process{process(1, kept(1, 1, 10, 20, 30, "plain")), process(2, kept(2, 1, 12, 31, 40, "plain"))}, nil, nil},
		{"both are valid", []*history.Process{process(1, kept(1, 1, 10, 20, 30, "plain")), process(2, kept(2, 1, 12, 25, 40, "plain"))}, nil,
			[]string{"at most one is trusted", "linearizable: mutex"}},
		{"both are valid after a deletion", []*history.Process{process(1, kept(1, 1, 10, 15, 30, "plain")), process(2, kept(2, 1, 12, 25, 40, "plain"))},
			[]history.Fault{deletion}, nil},
		{"both are valid long after a deletion", []*history.Process{process(1, kept(1, 1, 10, 15, 300, "plain")), process(2, kept(2, 1, 12, 25, 400, "plain"))},
			[]history.Fault{deletion}, []string{"at most one is trusted"}},
		{"two readers", []*history.Process{process(1, shared(kept(1, 1, 10, 20, 30, "readwrite"))), process(2, shared(kept(2, 1, 12, 25, 40, "readwrite")))}, nil, nil},
		{"a reader and a writer", []*history.Process{process(1, shared(kept(1, 1, 10, 20, 30, "readwrite"))), process(2, kept(2, 1, 12, 25, 40, "readwrite"))}, nil,
			[]string{"at most one is trusted", "linearizable: read/write lock"}},
		{"a reader beside a writer that may have released", []*history.Process{downgraded(30), process(2, shared(kept(2, 1, 12, 40, 60, "readwrite")))}, nil, nil},
		{"a reader beside a writer that may have released, and is over", []*history.Process{
			downgradedAndOver, process(2, shared(kept(2, 1, 12, 40, 60, "readwrite"))),
		}, nil, nil},
		{"a reader beside a writer that releases later", []*history.Process{downgraded(45), process(2, shared(kept(2, 1, 12, 40, 60, "readwrite")))}, nil,
			[]string{"at most one is trusted", "linearizable: read/write lock"}},
		{"another's after a loss", []*history.Process{process(1, lost(kept(1, 1, 10, 20, 60, "plain"), 50, 51)), process(2, kept(2, 1, 12, 55, 60, "plain"))}, nil, nil},
		{"another's before a loss", []*history.Process{process(1, lost(kept(1, 1, 10, 20, 60, "plain"), 50, 51)), process(2, kept(2, 1, 12, 45, 60, "plain"))}, nil,
			[]string{"at most one is trusted", "linearizable: mutex"}},
		{"notified late", []*history.Process{process(1, lost(kept(1, 1, 10, 20, 60, "plain"), 50, 100))}, nil, []string{"holders are notified of losses"}},
		{"notified late by a process that did not run", []*history.Process{{Proc: 1, Requests: []*history.Request{lost(kept(1, 1, 10, 20, 60, "plain"), 50, 100)},
			Stalls: []history.Span{{From: ms(45), To: ms(95)}}}}, nil, nil},
		{"never notified", []*history.Process{process(1, unnotified)}, nil, []string{"holders are notified of losses"}},
		{"never valid", []*history.Process{process(1, never)}, nil, []string{"a granted hold is valid"}},
		{"closed at the moment of its grant", []*history.Process{process(1, &closing)}, nil, nil},
		{"released when it was invalid", []*history.Process{process(1, good)}, nil, []string{"holders are notified of losses", "the release of an invalid hold is not confirmed"}},
		{"killed", []*history.Process{killed, process(2, kept(2, 1, 12, 31, 50, "plain"))}, nil, nil},
		{"another's before the kill", []*history.Process{killed, process(2, kept(2, 1, 12, 25, 50, "plain"))}, nil,
			[]string{"at most one is trusted", "linearizable: mutex"}},
		{"re-entered", []*history.Process{process(1, kept(1, 1, 10, 11, 20, "reentrant"), again)}, nil, nil},
		{"re-entered with a wrong count", []*history.Process{process(1, kept(1, 1, 10, 11, 20, "reentrant"), &wrongCount)}, nil, []string{"linearizable: re-entrant mutex"}},
		{"tokens that grow", []*history.Process{process(1, token(kept(1, 1, 10, 11, 20, "fenced"), 3), token(kept(1, 2, 30, 31, 40, "fenced"), 5))}, nil, nil},
		{"tokens that do not grow", []*history.Process{process(1, token(kept(1, 1, 10, 11, 20, "fenced"), 3), token(kept(1, 2, 30, 31, 40, "fenced"), 3))}, nil,
			[]string{"linearizable: fenced mutex", "tokens grow"}},
		{"a lower token under a broken lease", []*history.Process{process(1, token(kept(1, 1, 10, 28, 32, "fenced"), 3)), process(2, token(kept(2, 1, 22, 23, 26, "fenced"), 4))},
			[]history.Fault{deletion}, nil},
		{"a token given twice under a broken lease", []*history.Process{process(1, token(kept(1, 1, 10, 28, 32, "fenced"), 4)), process(2, token(kept(2, 1, 22, 23, 26, "fenced"), 4))},
			[]history.Fault{deletion}, []string{"tokens grow"}},
		{"a lower token long after a deletion", []*history.Process{process(1, token(kept(1, 1, 210, 228, 232, "fenced"), 3)), process(2, token(kept(2, 1, 22, 23, 26, "fenced"), 4))},
			[]history.Fault{deletion}, []string{"tokens grow"}},
		{"tokens that start again", []*history.Process{process(1, token(kept(1, 1, 10, 11, 15, "fenced"), 3), token(kept(1, 2, 230, 231, 240, "fenced"), 1))},
			[]history.Fault{{Name: "FLUSHALL", Proc: -1, From: ms(20), To: ms(21), BreaksLeases: true, ErasesData: true}}, nil},
		{"the first granted last", []*history.Process{process(1, kept(1, 1, 10, 200, 210, "fair")), process(2, kept(2, 1, 60, 100, 110, "fair"))}, nil,
			[]string{"first come, first served"}},
		{"waiting for a free lock", []*history.Process{process(1, kept(1, 1, 10, 20, 30, "plain")), process(2, kept(2, 1, 12, 400, 410, "plain"))}, nil,
			[]string{"a free lock is granted to its waiters"}},
		{"waiting while a fault hinders", []*history.Process{process(1, kept(1, 1, 10, 20, 30, "plain")), process(2, kept(2, 1, 12, 400, 410, "plain"))},
			[]history.Fault{{Name: "cut", Proc: -1, Hinders: true, From: ms(30), To: ms(100)}}, nil},
		{"never answered", []*history.Process{process(2, unanswered)}, nil, []string{"a free lock is granted to its waiters"}},
		{"a count that Redis does not have", []*history.Process{{Proc: 1, Counts: []history.Count{{Request: kept(1, 1, 1, 2, 9, "plain"), At: ms(3), Got: 2, Want: 1}}}}, nil,
			[]string{"the hold count in Redis is right"}},
		{"a promise that is not kept", []*history.Process{{Proc: 1, Ensured: []history.Ensured{{
			Request: lost(kept(1, 1, 1, 2, 50, "plain"), 30, 31), Span: history.Span{From: ms(3), To: ms(40)},
		}}}}, nil,
			[]string{"an ensured lease is kept"}},
		{"a promise that was ended by a suspend", []*history.Process{{Proc: 1, Ensured: []history.Ensured{{
			Request: lost(kept(1, 1, 1, 2, 50, "plain"), 30, 31), Span: history.Span{From: ms(3), To: ms(40)},
		}}}},
			[]history.Fault{{Name: "suspend the clients", Proc: -1, From: ms(20), To: ms(30), ClockJumps: true}}, nil},
		{"plain beside fenced", []*history.Process{process(1, kept(1, 1, 10, 20, 30, "plain")), process(2, token(kept(2, 1, 12, 25, 40, "fenced"), 1))}, nil,
			[]string{"at most one is trusted", "linearizable: mutex, partly fenced"}},
		{"plain between fenced", []*history.Process{
			process(1, kept(1, 1, 30, 31, 40, "plain")),
			process(2, token(kept(2, 1, 10, 20, 30, "fenced"), 1), token(kept(2, 2, 40, 41, 50, "fenced"), 1)),
		}, nil,
			[]string{"linearizable: mutex, partly fenced", "tokens grow"}},
		{"a minimum time", []*history.Process{process(1, atLeast(kept(1, 1, 10, 11, 12, "job"), 40)), process(2, kept(2, 1, 49, 51, 52, "job"))}, nil, nil},
		{"granted within a minimum time", []*history.Process{process(1, atLeast(kept(1, 1, 10, 11, 12, "job"), 40)), process(2, kept(2, 1, 47, 49, 52, "job"))}, nil,
			[]string{"a hold lasts for its minimum time"}},
		{"granted within a minimum time after a deletion", []*history.Process{process(1, atLeast(kept(1, 1, 10, 11, 12, "job"), 40)), process(2, kept(2, 1, 47, 49, 52, "job"))},
			[]history.Fault{deletion}, nil},
		{"extended and held to the end", []*history.Process{process(1, extended(lost(kept(1, 1, 1, 2, 60, "plain"), 59, 60), 10, 12, 50, ""))}, nil, nil},
		{"valid after the end of an extension", []*history.Process{process(1, extended(lost(kept(1, 1, 1, 2, 60, "plain"), 61, 62), 10, 11, 50, ""))}, nil,
			[]string{"an extended hold ends when its lease does"}},
		{"lost before the end of an extension", []*history.Process{process(1, extended(lost(kept(1, 1, 1, 2, 60, "plain"), 55, 60), 10, 12, 50, ""))}, nil,
			[]string{"an extended hold ends when its lease does"}},
		{"lost before the end of an extension after a deletion", []*history.Process{process(1, extended(lost(kept(1, 1, 1, 2, 60, "plain"), 55, 60), 10, 12, 50, ""))},
			[]history.Fault{deletion}, nil},
		{"lost after another extension, which has failed", []*history.Process{process(1,
			extended(extended(lost(kept(1, 1, 1, 2, 60, "plain"), 55, 60), 10, 12, 50, ""), 20, 21, 10, "unavailable"))}, nil, nil},
		{"valid after the end of the extension before that", []*history.Process{process(1,
			extended(extended(lost(kept(1, 1, 1, 2, 60, "plain"), 61, 62), 10, 11, 50, ""), 20, 21, 100, "unavailable"))}, nil,
			[]string{"an extended hold ends when its lease does"}},
		{"renewed by the watchdog after an extension", []*history.Process{process(1, extended(extended(kept(1, 1, 1, 2, 90, "plain"), 10, 11, 50, ""), 20, 21, 0, ""))}, nil, nil},
		{"a promise that an extension has replaced", []*history.Process{{Proc: 1, Ensured: []history.Ensured{{
			Request: extended(lost(kept(1, 1, 1, 2, 50, "plain"), 29, 31), 10, 11, 20, ""), Span: history.Span{From: ms(3), To: ms(40)}}}}}, nil, nil},
		{"an answer within the bound", []*history.Process{process(1, bounded(kept(1, 1, 10, 20, 30, "plain"), 5))}, nil, nil},
		{"an answer after the bound", []*history.Process{process(1, bounded(kept(1, 1, 10, 36, 40, "plain"), 5))}, nil, []string{"every call is bounded"}},
		{
			"no answer at all",
			[]*history.Process{
				process(1, bounded(&history.Request{Proc: 1, ID: 1, Root: 1, Parts: unanswered.Parts, Asked: ms(900)}, 5)),
			},
			nil, []string{"every call is bounded"},
		},
		{"a release that takes too long", []*history.Process{process(1, slow)}, nil, []string{"a release is confirmed in time"}},
		{"a release that is hindered", []*history.Process{process(1, slow)}, []history.Fault{{Name: "cut", Proc: -1, Hinders: true, From: ms(30), To: ms(100)}}, nil},
		{"a call that takes too long", []*history.Process{{Proc: 1, Calls: []history.Call{{
			Name: "inspect", Request: kept(1, 1, 1, 2, 9, "plain"), Span: history.Span{From: ms(3), To: ms(50)}, Bound: ms(10),
		}}}}, nil,
			[]string{"every call is bounded"}},
		{"ended without a release or a loss", []*history.Process{process(1, overBefore)}, nil, []string{"a hold ends by a release or a loss"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range c.processes {
				for _, counted := range p.Counts {
					p.Requests = append(p.Requests, counted.Request)
				}
				for _, ensured := range p.Ensured {
					p.Requests = append(p.Requests, ensured.Request)
				}
			}
			v := judged(c.processes, c.faults...)
			var got []string
			for _, violation := range v.Violations {
				got = append(got, violation.Check)
			}
			slices.Sort(got)
			got = slices.Compact(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("failed: %q, want %q\n%v", got, c.want, v.Violations)
			}
			if len(v.Undecided) > 0 {
				t.Errorf("undecided: %q", v.Undecided)
			}
		})
	}
}

func TestJudge_NoticesAStuckOrCrashedProcess(t *testing.T) {
	for check, v := range map[string]*Verdict{
		"every request is answered": Judge(history.Span{}, nil, nil, []int{3}, nil, nil, nil, limits),
		"no process crashes":        Judge(history.Span{}, nil, nil, nil, []int{3}, nil, nil, limits),
	} {
		if v.OK() || v.Violations[0].Check != check || !strings.Contains(v.Violations[0].Detail, "process 3") {
			t.Errorf("%s: the verdict is %v", check, v.Violations)
		}
	}
}

func TestViolation_DrawsOnlyWhatIsNotLinearizable(t *testing.T) {
	v := judged([]*history.Process{process(1, kept(1, 1, 10, 20, 30, "plain")), process(2, kept(2, 1, 12, 25, 40, "plain"))})
	drawn := 0
	for i := range v.Violations {
		if err := v.Violations[i].Draw(filepath.Join(t.TempDir(), "picture.html")); err != nil {
			t.Error(err)
		}
		if v.Violations[i].Picture != "" {
			drawn++
		}
	}
	if drawn != 1 {
		t.Errorf("%d pictures, want that of the history that is not linearizable", drawn)
	}
}

// A request that was interrupted by a kill has an unknown outcome: it may have happened, or not.
func TestJudge_AcceptsEitherOutcomeOfAnInterruptedRequest(t *testing.T) {
	half := &history.Request{Proc: 1, ID: 1, Root: 1, Parts: []history.Part{{Lock: "x", Kind: "plain"}}, Asked: time.Millisecond}
	for _, others := range [][]*history.Request{nil, {kept(2, 1, 2, 3, 4, "plain"), kept(2, 2, 5, 6, 7, "plain")}} {
		p := process(1, half)
		p.Killed = 10 * time.Millisecond
		v := judged([]*history.Process{p, process(2, others...)})
		if !v.OK() || v.Unknown != 1 {
			t.Errorf("%d unknown outcomes, and %v", v.Unknown, v.Violations)
		}
	}
}
