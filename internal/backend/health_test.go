package backend

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// scriptCalls returns how many scripts a server has run.
func scriptCalls(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	calls := s.Calls(t)
	return calls["evalsha"] + calls["eval"]
}

// term returns a command that takes a lock under a term.
func term(n uint64) lock.Command {
	c := take
	c.Term, c.Seq = n, n
	return c
}

// A frozen server of a RedLock's minority is asked a few times, and not for each request. The others decide meanwhile.
// When it answers again, it votes again, and nothing is left on it.
func TestMajority_SkipsAFrozenMinority(t *testing.T) {
	frozen := redistest.Start(t)
	servers := append(redistest.SharedServers(t, 2), frozen)
	var on []*Server
	for _, s := range servers {
		on = append(on, open(t, s.URL()))
	}
	m := newMajority(on, redistest.Name(t), options())
	key := m.members[0].lock.Key()
	turn := func(n uint64, want lock.Outcome) {
		t.Helper()
		if r := ran(t, m, term(n)); r.Outcome != want {
			t.Fatalf("term %d: %+v", n, r)
		}
		if r := ran(t, m, asRelease(term(n))); r.Outcome != lock.Done {
			t.Fatalf("the release of term %d: %+v", n, r)
		}
	}
	turn(1, lock.Done)
	for _, s := range servers {
		redistest.Eventually(t, "the release everywhere", func() bool { return len(s.Keys(t, key)) == 0 })
	}

	frozen.ResetStats(t)
	frozen.Pause(t)
	replies := make(chan Reply, 1)
	m.run(term(2), time.Now().Add(300*time.Millisecond), func(r Reply) { replies <- r })
	if r := <-replies; r.Outcome != lock.Done {
		t.Fatalf("with a frozen server: %+v", r)
	}
	redistest.Eventually(t, "the silence to be noticed", on[2].isSilent)
	if r := ran(t, m, asRelease(term(2))); r.Outcome != lock.Done {
		t.Fatalf("not released: %+v", r)
	}
	const turns = 100
	for n := range uint64(turns) {
		turn(3+n, lock.Done)
	}
	frozen.Resume(t)
	redistest.Eventually(t, "the server to answer", func() bool { return !on[2].isSilent() })
	if n := scriptCalls(t, frozen); n > turns/2 {
		t.Errorf("a frozen server was sent %d scripts in %d turns", n, turns)
	}
	for _, s := range on {
		redistest.Eventually(t, "all cleanups", s.cleanups.complete)
	}
	if keys := frozen.Keys(t, key); len(keys) > 0 {
		t.Errorf("%v is left", keys)
	}
	if r := ran(t, m, term(1000)); r.Outcome != lock.Done {
		t.Fatalf("a free lock was not taken: %+v", r)
	}
	redistest.Eventually(t, "the vote of the server", func() bool { return len(frozen.Keys(t, key)) == 1 })
	if r := ran(t, m, asRelease(term(1000))); r.Outcome != lock.Done {
		t.Fatalf("not released: %+v", r)
	}
}

// Silent servers are skipped only while the others are a majority. Otherwise all requests would fail until a probe is
// answered.
func TestMajority_AsksASilentMajority(t *testing.T) {
	m := &majority{}
	for range 5 {
		m.members = append(m.members, &member{serverLock: serverLock{server: NewServer(clock(0), nil, Config{})}})
	}
	for silent := range 5 {
		for i, on := range m.members {
			if want := silent <= 2 && i < silent; m.skips(on) != want {
				t.Errorf("with %d silent, server %d is skipped: %v", silent, i, !want)
			}
		}
		m.members[silent].server.health.markSilent()
	}
}

// A MultiLock whose second server is frozen holds the first for a short time once, and then takes nothing until that
// server answers again.
func TestMultiLock_AcquiresNothingWhileAServerIsSilent(t *testing.T) {
	first, frozen := redistest.Start(t), redistest.Start(t)
	name := redistest.Name(t)
	on := []*Server{open(t, first.URL()), open(t, frozen.URL())}
	a := newMultiLock([]MemberSpec{{Server: on[0], Form: forms.Plain, Name: name}, {Server: on[1], Form: forms.Plain, Name: name}}, options())
	taken := func(n uint64) lock.Outcome {
		t.Helper()
		r := ran(t, a, term(n))
		if r.Outcome == lock.Done {
			if released := ran(t, a, asRelease(term(n))); released.Outcome != lock.Done {
				t.Fatalf("the release of term %d: %+v", n, released)
			}
		}
		return r.Outcome
	}
	if o := taken(1); o != lock.Done {
		t.Fatalf("a free lock was not taken: %v", o)
	}
	frozen.Pause(t)
	replies := make(chan Reply, 1)
	a.run(term(2), soon(), func(r Reply) { replies <- r })
	began := time.Now()
	redistest.Eventually(t, "the first to be taken and free again", func() bool {
		return on[1].isSilent() && len(first.Keys(t, name)) == 0
	})
	if took := time.Since(began); took > redistest.Limit/2 {
		t.Errorf("it was held for %v", took)
	}
	if r := <-replies; r.Outcome != lock.Failed || !r.Transient {
		t.Errorf("with a frozen server: %+v", r)
	}
	a.cleanUp(asRelease(term(2)), func(bool) {}) // as the lock does, since the command may still be carried out
	redistest.Eventually(t, "the cleanup of the first", on[0].cleanups.complete)
	before := scriptCalls(t, first)
	for n := range uint64(50) {
		if o := taken(3 + n); o != lock.Failed {
			t.Fatalf("taken although the server is silent: %v", o)
		}
	}
	if n := scriptCalls(t, first) - before; n != 0 {
		t.Errorf("the first server was sent %d scripts", n)
	}
	frozen.Resume(t)
	redistest.Eventually(t, "the lock", func() bool { return taken(uint64(time.Now().UnixMicro())) == lock.Done })
}

// The time that a server has to answer depends on its last answers.
func TestServer_TimeoutFollowsLastAnswers(t *testing.T) {
	s := NewServer(clock(0), nil, Config{})
	deadline := time.Now().Add(time.Minute)
	if got := s.answerBy(time.Now(), deadline); got != deadline {
		t.Errorf("before the first answer: %v", time.Until(got))
	}
	for _, test := range []struct{ took, least, most time.Duration }{
		{time.Millisecond, minTimeout / 2, minTimeout}, {time.Second, 7 * time.Second, 8 * time.Second}, {time.Hour, 50 * time.Second, time.Minute},
	} {
		s.health.noteAnswer(test.took)
		if got := time.Until(s.answerBy(time.Now(), deadline)); got < test.least || got > test.most {
			t.Errorf("after %v: %v", test.took, got)
		}
	}
}

// Servers that are far away vote like near ones, although a majority has answered long before them.
func TestMajority_FarServersVote(t *testing.T) {
	name := redistest.Name(t)
	var on []*Server
	var proxies []*redistest.Proxy
	servers := redistest.SharedServers(t, 3)
	for _, s := range servers {
		proxies = append(proxies, redistest.NewProxy(t, s.Addr()))
		on = append(on, open(t, proxies[len(proxies)-1].URL()))
	}
	proxies[1].Delay(10 * time.Millisecond)
	proxies[2].Delay(150 * time.Millisecond)
	m := newMajority(on, name, options())
	if r := ran(t, newMember(MemberSpec{Server: on[0], Form: forms.Plain, Name: name}, options()), term(1)); r.Outcome != lock.Done { // of another owner
		t.Fatalf("a free lock was not taken: %+v", r)
	}
	for n := range uint64(3) { // first without knowing how far they are
		if r := ran(t, m, term(2+n)); r.Outcome != lock.Done {
			t.Errorf("two of three are free: %+v", r)
		}
		if r := ran(t, m, asRelease(term(2+n))); r.Outcome != lock.Done {
			t.Fatalf("not released: %+v", r)
		}
	}

	// A forced release of nothing frees the server whose owner has died.
	for i, s := range servers {
		if keys := s.Keys(t, name); i > 0 && len(keys) > 0 {
			t.Fatalf("server %d has %v", i, keys)
		}
	}
	if r := ran(t, newMember(MemberSpec{Server: on[2], Form: forms.Plain, Name: name}, options()), term(1)); r.Outcome != lock.Done {
		t.Fatalf("a free lock was not taken: %+v", r)
	}
	force := lock.Command{Kind: lock.ForceRelease, Seq: 100, Lease: time.Minute}
	if r := ran(t, m, force); r.Outcome != lock.Done {
		t.Errorf("the forced release of one of three: %+v", r)
	}
	redistest.Eventually(t, "the far server to be free", func() bool { return len(servers[2].Keys(t, name)) == 0 })
}
