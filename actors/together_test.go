package actors

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// fake is a part that answers as it is told, and notes what it was asked.
type fake struct {
	answers map[core.CommandKind]verdict
	asked   []core.CommandKind
	until   []time.Time
	late    bool // answers when it is let
	pending []func()
	owed    bool // its release goes on in the background
}

func (f *fake) run(c core.Command, deadline time.Time, done func(verdict)) {
	f.asked, f.until = append(f.asked, c.Kind), append(f.until, deadline)
	v, known := f.answers[c.Kind]
	if !known {
		v.Outcome = core.Done
	}
	if f.late {
		f.pending = append(f.pending, func() { done(v) })
		return
	}
	done(v)
}

func (f *fake) inspect(_ time.Time, done func(wire.View, error)) { done(wire.View{TTL: -1}, nil) }

func (f *fake) cleanUp(core.Command) { f.owed = true }

func (f *fake) ears() []ear { return nil }

var errDown = errors.New("down")

func outcome(o core.Outcome) verdict { return verdict{Result: core.Result{Outcome: o}} }

func failing(transient, unsure bool) verdict {
	return verdict{Result: core.Result{Outcome: core.Failed, Err: errDown, Transient: transient, Unsure: unsure}}
}

// ran is what a command to parts came to; the test fails if there is not exactly one verdict.
func ran(t *testing.T, parts []*fake, c core.Command, deadline time.Time) verdict {
	t.Helper()
	whole := &together{}
	for _, part := range parts {
		whole.parts = append(whole.parts, part)
	}
	var verdicts []verdict
	whole.run(c, deadline, func(v verdict) { verdicts = append(verdicts, v) })
	if len(verdicts) != 1 {
		t.Fatalf("%d verdicts, want one", len(verdicts))
	}
	return verdicts[0]
}

func TestTogetherAcquire(t *testing.T) {
	take, both := []core.CommandKind{core.Acquire}, []core.CommandKind{core.Acquire, core.Release}
	acquiring := func(v verdict) map[core.CommandKind]verdict { return map[core.CommandKind]verdict{core.Acquire: v} }
	tests := map[string]struct {
		second  map[core.CommandKind]verdict
		first   map[core.CommandKind]verdict
		want    core.Outcome
		unsure  bool
		asked   [3][]core.CommandKind
		expired bool
	}{
		"all granted":                  {want: core.Done, asked: [3][]core.CommandKind{take, take, take}},
		"the second refuses":           {second: acquiring(outcome(core.Refused)), want: core.Refused, asked: [3][]core.CommandKind{both, take, nil}},
		"the second fails for certain": {second: acquiring(failing(true, false)), want: core.Failed, asked: [3][]core.CommandKind{both, take, nil}},
		"the second may have taken it": {second: acquiring(failing(true, true)), want: core.Failed, unsure: true, asked: [3][]core.CommandKind{both, both, nil}},
		"the first is not given back": {
			first: map[core.CommandKind]verdict{core.Release: failing(true, true)}, second: acquiring(outcome(core.Refused)),
			want: core.Failed, unsure: true, asked: [3][]core.CommandKind{both, take, nil},
		},
		"the first has gone meanwhile": {
			first: map[core.CommandKind]verdict{core.Release: outcome(core.Absent)}, second: acquiring(outcome(core.Refused)),
			want: core.Refused, asked: [3][]core.CommandKind{both, take, nil},
		},
		"too late": {want: core.Failed, expired: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parts := []*fake{{answers: test.first}, {answers: test.second}, {}}
			deadline := time.Now().Add(time.Minute)
			if test.expired {
				deadline = time.Now()
			}
			v := ran(t, parts, core.Command{Kind: core.Acquire, Count: 1}, deadline)
			if v.Outcome != test.want || v.Unsure != test.unsure {
				t.Errorf("outcome %v, unsure %v, want %v and %v", v.Outcome, v.Unsure, test.want, test.unsure)
			}
			for i, part := range parts {
				if !slices.Equal(part.asked, test.asked[i]) {
					t.Errorf("part %d was asked %v, want %v", i, part.asked, test.asked[i])
				}
				if len(part.until) > 0 && !part.until[0].Equal(deadline) {
					t.Errorf("part %d has a deadline of its own", i)
				}
			}
		})
	}
}

// The tokens come in the order of the parts, and those of one try do not show up in another's.
func TestTogetherTokens(t *testing.T) {
	tokens := func(n ...int64) map[core.CommandKind]verdict {
		return map[core.CommandKind]verdict{core.Acquire: {Result: core.Result{Outcome: core.Done, Tokens: n}}}
	}
	parts := []*fake{{answers: tokens(3, 8)}, {}, {answers: tokens(5)}}
	v := ran(t, parts, core.Command{Kind: core.Acquire, Count: 1}, time.Now().Add(time.Minute))
	if want := []int64{3, 8, 5}; !slices.Equal(v.Tokens, want) {
		t.Errorf("tokens %v, want %v", v.Tokens, want)
	}
}

// A yield is a release of all parts, and nobody counts who else waits.
func TestTogetherYield(t *testing.T) {
	parts := []*fake{{}, {}}
	if v := ran(t, parts, core.Command{Kind: core.Yield, Count: 1}, time.Now().Add(time.Minute)); v.Outcome != core.Done {
		t.Errorf("outcome %v", v.Outcome)
	}
	for i, part := range parts {
		if want := []core.CommandKind{core.Release}; !slices.Equal(part.asked, want) {
			t.Errorf("part %d was asked %v, want %v", i, part.asked, want)
		}
	}
}

// Whatever the order of the answers: one verdict, after the last.
func TestTogetherLateAnswers(t *testing.T) {
	parts := []*fake{{late: true}, {late: true}, {late: true}}
	whole, verdicts := &together{parts: []target{parts[0], parts[1], parts[2]}}, 0
	whole.run(core.Command{Kind: core.Renew}, time.Now().Add(time.Minute), func(verdict) { verdicts++ })
	for i, part := range []*fake{parts[2], parts[0], parts[1]} {
		part.pending[0]()
		want := 0
		if i == 2 {
			want = 1
		}
		if verdicts != want {
			t.Errorf("%d verdicts after %d answers", verdicts, i+1)
		}
	}
}

func TestSum(t *testing.T) {
	done, absent, refused := outcome(core.Done), outcome(core.Absent), outcome(core.Refused)
	taken := outcome(core.Absent)
	taken.Taken = true
	held := outcome(core.Done)
	held.WasHeld = true
	tests := []struct {
		name    string
		kind    core.CommandKind
		answers []verdict
		want    core.Result
		count   int
	}{
		{"all done", core.Renew, []verdict{done, done}, core.Result{Outcome: core.Done}, 0},
		{"one lost", core.Renew, []verdict{done, absent}, core.Result{Outcome: core.Absent}, 0},
		{"one taken", core.Renew, []verdict{absent, taken, done}, core.Result{Outcome: core.Absent, Taken: true}, 0},
		{"one refused", core.Acquire, []verdict{done, refused}, core.Result{Outcome: core.Absent, Taken: true}, 0},
		{"one failed", core.Renew, []verdict{done, failing(true, true)}, failing(true, true).Result, 0},
		{"one failed, one for good", core.Renew, []verdict{failing(true, true), failing(false, false)}, failing(false, true).Result, 0},
		{"one for good, one failed", core.Renew, []verdict{failing(false, false), failing(true, true)}, failing(false, true).Result, 0},
		{"one failed for certain, and the others did it", core.Release, []verdict{failing(true, false), done}, failing(true, true).Result, 0},
		{"a loss counts for more", core.Renew, []verdict{failing(true, true), absent}, core.Result{Outcome: core.Absent}, 0},
		{"but not for a release", core.Release, []verdict{failing(true, true), absent}, failing(true, true).Result, 0},
		{"unless a count stays", core.Release, []verdict{failing(true, true), absent}, core.Result{Outcome: core.Absent}, 1},
		{"one was held", core.ForceRelease, []verdict{done, held, done}, core.Result{Outcome: core.Done, WasHeld: true}, 0},
	}
	for _, test := range tests {
		got := sum(core.Command{Kind: test.kind, Count: test.count}, test.answers).Result
		if got.Outcome != test.want.Outcome || got.Taken != test.want.Taken || got.Transient != test.want.Transient ||
			got.Unsure != test.want.Unsure || got.WasHeld != test.want.WasHeld || !errors.Is(got.Err, test.want.Err) {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// A part that rejects the release for good ends the tries of the whole; what another one has
// failed to release must not stay held for that, and Close must know of what stays.
func TestTogetherReleasesTheOthers(t *testing.T) {
	releasing := func(v verdict) *fake { return &fake{answers: map[core.CommandKind]verdict{core.Release: v}} }
	for _, test := range []struct {
		parts []*fake
		c     core.Command
		owed  []bool
	}{
		{[]*fake{releasing(failing(false, false)), releasing(failing(true, false)), {}}, core.Command{}, []bool{true, true, false}},
		{[]*fake{releasing(failing(true, true)), releasing(failing(true, false)), {}}, core.Command{}, []bool{false, false, false}}, // all are tried again
		// A count that is left is a hold that goes on: no part of it must be freed.
		{[]*fake{releasing(failing(false, false)), releasing(failing(true, false)), {}}, core.Command{Count: 1}, []bool{false, false, false}},
		{[]*fake{releasing(failing(false, false)), releasing(failing(true, false)), {}}, core.Command{Shared: 1}, []bool{false, false, false}},
	} {
		test.c.Kind = core.Release
		ran(t, test.parts, test.c, time.Now().Add(time.Minute))
		for i, part := range test.parts {
			if part.owed != test.owed[i] {
				t.Errorf("part %d is owed: %v, want %v", i, part.owed, test.owed[i])
			}
		}
	}
}
