package backend

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// fake is a part with given answers, which records the commands that it gets.
type fake struct {
	answers map[lock.CommandKind]Reply
	asked   []lock.CommandKind
	until   []time.Time
	late    bool // the answers go to pending
	pending []func()
	retried bool // its release is retried in the background
	stays   bool // its cleanup fails
}

func (f *fake) run(c lock.Command, deadline time.Time, done func(Reply)) {
	f.asked, f.until = append(f.asked, c.Kind), append(f.until, deadline)
	v, known := f.answers[c.Kind]
	if !known {
		v.Outcome = lock.Done
	}
	if f.late {
		f.pending = append(f.pending, func() { done(v) })
		return
	}
	done(v)
}

func (f *fake) inspect(_ time.Time, done func(protocol.View, error)) {
	done(protocol.View{TTL: -1}, nil)
}

func (f *fake) cleanUp(_ lock.Command, done func(bool)) { done(!f.stays) }

func (f *fake) retryRelease(lock.Command) { f.retried = true }

func (f *fake) channels() []Channel { return nil }

func (f *fake) onlyServer() *Server { return nil }

var errDown = errors.New("down")

func outcome(o lock.Outcome) Reply { return Reply{Result: lock.Result{Outcome: o}} }

func failing(transient, unsure bool) Reply {
	return Reply{Result: lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Err: errDown, Transient: transient, Unsure: unsure}}}
}

// ranAll returns the reply to a command on parts; the test fails unless there is exactly one.
func ranAll(t *testing.T, parts []*fake, c lock.Command, deadline time.Time) Reply {
	t.Helper()
	multi := &multiLock{}
	for _, part := range parts {
		multi.parts = append(multi.parts, part)
	}
	var replies []Reply
	multi.run(c, deadline, func(r Reply) { replies = append(replies, r) })
	if len(replies) != 1 {
		t.Fatalf("%d replies, want one", len(replies))
	}
	return replies[0]
}

func TestMultiLock_AcquiresAllOrNone(t *testing.T) {
	take, both := []lock.CommandKind{lock.Acquire}, []lock.CommandKind{lock.Acquire, lock.Release}
	acquiring := func(r Reply) map[lock.CommandKind]Reply { return map[lock.CommandKind]Reply{lock.Acquire: r} }
	tests := map[string]struct {
		second  map[lock.CommandKind]Reply
		first   map[lock.CommandKind]Reply
		want    lock.Outcome
		unsure  bool
		asked   [3][]lock.CommandKind
		expired bool
	}{
		"all granted":                  {want: lock.Done, asked: [3][]lock.CommandKind{take, take, take}},
		"the second refuses":           {second: acquiring(outcome(lock.Refused)), want: lock.Refused, asked: [3][]lock.CommandKind{both, take, nil}},
		"the second fails for certain": {second: acquiring(failing(true, false)), want: lock.Failed, asked: [3][]lock.CommandKind{both, take, nil}},
		"the second may have taken it": {second: acquiring(failing(true, true)), want: lock.Failed, unsure: true, asked: [3][]lock.CommandKind{both, both, nil}},
		"the first is not given back": {
			first: map[lock.CommandKind]Reply{lock.Release: failing(true, true)}, second: acquiring(outcome(lock.Refused)),
			want: lock.Failed, unsure: true, asked: [3][]lock.CommandKind{both, take, nil},
		},
		"the first has expired meanwhile": {
			first: map[lock.CommandKind]Reply{lock.Release: outcome(lock.Absent)}, second: acquiring(outcome(lock.Refused)),
			want: lock.Refused, asked: [3][]lock.CommandKind{both, take, nil},
		},
		"too late": {want: lock.Failed, expired: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parts := []*fake{{answers: test.first}, {answers: test.second}, {}}
			deadline := time.Now().Add(time.Minute)
			if test.expired {
				deadline = time.Now()
			}
			v := ranAll(t, parts, lock.Command{Kind: lock.Acquire, Count: 1}, deadline)
			if v.Outcome != test.want || v.Unsure != test.unsure {
				t.Errorf("outcome %v, unsure %v, want %v and %v", v.Outcome, v.Unsure, test.want, test.unsure)
			}
			for i, part := range parts {
				if !slices.Equal(part.asked, test.asked[i]) {
					t.Errorf("part %d was asked %v, want %v", i, part.asked, test.asked[i])
				}
				if len(part.until) > 0 && !part.until[0].Equal(deadline) {
					t.Errorf("part %d has its own deadline", i)
				}
			}
		})
	}
}

func TestSum_OfRepliesIsTheWorst(t *testing.T) {
	done, absent, refused := outcome(lock.Done), outcome(lock.Absent), outcome(lock.Refused)
	taken := outcome(lock.Absent)
	taken.Taken = true
	held := outcome(lock.Done)
	held.WasHeld = true
	tests := []struct {
		name    string
		kind    lock.CommandKind
		answers []Reply
		want    lock.Result
		count   int
	}{
		{name: "all done", kind: lock.Renew, answers: []Reply{done, done}, want: lock.Result{Outcome: lock.Done}},
		{name: "one lost", kind: lock.Renew, answers: []Reply{done, absent}, want: lock.Result{Outcome: lock.Absent}},
		{name: "one taken", kind: lock.Renew, answers: []Reply{absent, taken, done}, want: lock.Result{Outcome: lock.Absent, Taken: true}},
		{name: "one refused", kind: lock.Acquire, answers: []Reply{done, refused}, want: lock.Result{Outcome: lock.Absent, Taken: true}},
		{name: "one failed", kind: lock.Renew, answers: []Reply{done, failing(true, true)}, want: failing(true, true).Result},
		{name: "one failed, one permanently", kind: lock.Renew, answers: []Reply{failing(true, true), failing(false, false)}, want: failing(false, true).Result},
		{name: "one permanently, one failed", kind: lock.Renew, answers: []Reply{failing(false, false), failing(true, true)}, want: failing(false, true).Result},
		{name: "one failed for certain, and the others did it", kind: lock.Release, answers: []Reply{failing(true, false), done}, want: failing(true, true).Result},
		{name: "a loss counts for more", kind: lock.Renew, answers: []Reply{failing(true, true), absent}, want: lock.Result{Outcome: lock.Absent}},
		{name: "but not for a release", kind: lock.Release, answers: []Reply{failing(true, true), absent}, want: failing(true, true).Result},
		{name: "nor for a minimum time", kind: lock.Keep, answers: []Reply{failing(true, true), absent}, want: failing(true, true).Result},
		{name: "unless a count stays", kind: lock.Release, answers: []Reply{failing(true, true), absent}, want: lock.Result{Outcome: lock.Absent}, count: 1},
		{name: "one was held", kind: lock.ForceRelease, answers: []Reply{done, held, done}, want: lock.Result{Outcome: lock.Done, WasHeld: true}},
	}
	for _, test := range tests {
		got := sum(lock.Command{Kind: test.kind, Count: test.count}, test.answers).Result
		if got.Outcome != test.want.Outcome || got.Taken != test.want.Taken || got.Transient != test.want.Transient ||
			got.Unsure != test.want.Unsure || got.WasHeld != test.want.WasHeld || !errors.Is(got.Err, test.want.Err) {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// A part that rejects the release permanently ends the tries of the MultiLock. A part that has failed to release
// must not stay held because of that, and Close must know of the keys that stay.
func TestMultiLock_RetriesTheOtherReleases(t *testing.T) {
	releasing := func(v Reply) *fake { return &fake{answers: map[lock.CommandKind]Reply{lock.Release: v}} }
	for _, test := range []struct {
		parts   []*fake
		c       lock.Command
		retried []bool
	}{
		{[]*fake{releasing(failing(false, false)), releasing(failing(true, false)), {}}, lock.Command{}, []bool{true, true, false}},
		{[]*fake{releasing(failing(true, true)), releasing(failing(true, false)), {}}, lock.Command{}, []bool{false, false, false}}, // all are tried again
		// A remaining hold count means that the hold continues: no part may be freed.
		{[]*fake{releasing(failing(false, false)), releasing(failing(true, false)), {}}, lock.Command{Count: 1}, []bool{false, false, false}},
		{[]*fake{releasing(failing(false, false)), releasing(failing(true, false)), {}}, lock.Command{Shared: 1}, []bool{false, false, false}},
	} {
		test.c.Kind = lock.Release
		ranAll(t, test.parts, test.c, time.Now().Add(time.Minute))
		for i, part := range test.parts {
			if part.retried != test.retried[i] {
				t.Errorf("part %d is retried: %v, want %v", i, part.retried, test.retried[i])
			}
		}
	}
}

// A lost part ends a renewal even if the reply of another is late. A failed one does not.
func TestMultiLock_ReportsALossAtOnce(t *testing.T) {
	for _, test := range []struct {
		kind  lock.CommandKind
		reply Reply
		soon  bool
	}{
		{lock.Renew, outcome(lock.Absent), true}, {lock.Renew, failing(true, true), false}, {lock.Release, outcome(lock.Absent), false},
	} {
		late, other := &fake{late: true}, &fake{answers: map[lock.CommandKind]Reply{test.kind: test.reply}}
		var replies []Reply
		(&multiLock{parts: []lockPart{late, other}}).run(lock.Command{Kind: test.kind, Count: 1}, time.Now().Add(time.Minute), func(r Reply) { replies = append(replies, r) })
		if soon := len(replies) == 1; soon != test.soon {
			t.Errorf("command %v, answered %v: %d replies before that of the other", test.kind, test.reply.Outcome, len(replies))
		}
		late.pending[0]()
		if len(replies) != 1 || replies[0].Outcome != test.reply.Outcome {
			t.Errorf("command %v, answered %v: %+v", test.kind, test.reply.Outcome, replies)
		}
	}
}

// The cleanup of a MultiLock is certain if the cleanup of each part is certain.
func TestMultiLock_CleanUpIsCertainWhenEachPartIs(t *testing.T) {
	for what, test := range map[string]struct {
		parts []lockPart
		want  bool
	}{
		"each is certain": {[]lockPart{&fake{}, &fake{}}, true}, "one fails": {[]lockPart{&fake{}, &fake{stays: true}, &fake{}}, false},
	} {
		var ended []bool
		(&multiLock{parts: test.parts}).cleanUp(lock.Command{Kind: lock.Release}, func(certain bool) { ended = append(ended, certain) })
		if !slices.Equal(ended, []bool{test.want}) {
			t.Errorf("%s: ended with %v, want once with %v", what, ended, test.want)
		}
	}
}

// With many concurrent answers, the judge decides once, and knows the last answer.
func TestCollect_ActsOnce(t *testing.T) {
	const n = 64
	for enough := 1; enough <= n; enough *= 2 {
		calls, acts, lasts := 0, 0, 0
		g := &collect[int]{n: n, judge: func(answers []int, last bool) (func(), bool) {
			if calls++; len(answers) != calls {
				t.Errorf("call %d has %d answers", calls, len(answers))
			}
			if last {
				lasts++
			}
			if len(answers) < enough {
				return nil, false
			}
			return func() { acts++ }, true
		}}
		var all sync.WaitGroup
		var late atomic.Int64
		for i := range n {
			all.Go(func() {
				if g.add(i) {
					late.Add(1)
				}
			})
		}
		all.Wait()
		if late := int(late.Load()); late != n-enough {
			t.Errorf("enough with %d of %d: %d are late", enough, n, late)
		}
		want := 0
		if enough == n {
			want = 1
		}
		if acts != 1 || calls != enough || lasts != want {
			t.Errorf("enough with %d: acted %d times in %d calls, %d of them the last", enough, acts, calls, lasts)
		}
	}
}

// client is a client with only a mode.
type client struct {
	rueidis.Client
	mode rueidis.ClientMode
}

func (c client) Mode() rueidis.ClientMode { return c.mode }

// One script takes neighbours on one server, and in a cluster the parts in one slot. The order of two parts is the same
// in every MultiLock. A RedLock is a batch of its own.
func TestBatches_AreBySlot(t *testing.T) {
	serverOf := func(mode rueidis.ClientMode) *Server {
		return NewServer(clock(0), redisclient.New(client{mode: mode}, 0), Config{})
	}
	one, two := serverOf(rueidis.ClientModeStandalone), serverOf(rueidis.ClientModeStandalone)
	cluster := serverOf(rueidis.ClientModeCluster)
	for what, test := range map[string]struct {
		parts []MemberSpec
		want  [][]int
	}{
		"one server":  {[]MemberSpec{{Server: one, Name: "a"}, {Server: one, Name: "b"}}, [][]int{{0, 1}}},
		"two servers": {[]MemberSpec{{Server: one, Name: "a"}, {Server: two, Name: "a"}, {Server: one, Name: "b"}}, [][]int{{0}, {1}, {2}}},
		// As {m, n} is taken in that order, so is {a, m, n}.
		"neighbours": {
			[]MemberSpec{{Server: two, Name: "a"}, {Server: one, Name: "m"}, {Server: two, Name: "n"}, {Server: two, Name: "o"}}, [][]int{{0}, {1}, {2, 3}},
		},
		"a RedLock": {
			[]MemberSpec{{Server: one, Name: "a"}, {Server: one, Name: "b", Majority: []*Server{one, two}}, {Server: one, Name: "c"}}, [][]int{{0, 2}, {1}},
		},
		"a cluster":              {[]MemberSpec{{Server: cluster, Name: "{x}1"}, {Server: cluster, Name: "{y}1"}, {Server: cluster, Name: "{x}2"}}, [][]int{{1}, {0, 2}}},
		"a cluster and a server": {[]MemberSpec{{Server: cluster, Name: "a"}, {Server: one, Name: "b"}}, [][]int{{1}, {0}}},
	} {
		if got := Batches(test.parts); !slices.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
	}
}
