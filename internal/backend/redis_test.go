package backend

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// connect connects to a Redis until the end of the test.
func connect(t *testing.T, url string) *redisclient.Redis {
	t.Helper()
	client, err := redisio.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	redis := redisclient.New(client, 0)
	t.Cleanup(func() {
		redis.Close()
		client.Close()
	})
	return redis
}

// open returns a Server on a Redis until the end of the test.
func open(t *testing.T, url string) *Server {
	t.Helper()
	s := NewServer(clock(0), connect(t, url), Config{})
	t.Cleanup(func() { s.Close(nil) })
	return s
}

func options() *protocol.Options {
	return &protocol.Options{Client: uuid.NewString(), WaiterTimeout: time.Second}
}

func soon() time.Time { return time.Now().Add(redistest.Limit) }

// take is a command that takes a lock.
var take = lock.Command{Kind: lock.Acquire, Seq: 12, Term: 7, Count: 1, Lease: time.Minute, Tokens: 1}

// ran returns the reply of a part to a command.
func ran(t *testing.T, p lockPart, c lock.Command) Reply {
	t.Helper()
	replies := make(chan Reply, 1)
	p.run(c, soon(), func(r Reply) { replies <- r })
	return <-replies
}

// ExpectTakenAndReleased checks that a part is taken in its mode, and is released in the background.
func ExpectTakenAndReleased(t *testing.T, of MemberSpec) {
	t.Helper()
	redis := redistest.Shared(t)
	of.Server, of.Name = open(t, redis.URL()), redistest.Name(t)
	m := newMember(of, options())
	if r := ran(t, m, take); r.Outcome != lock.Done || len(r.Tokens) > 0 != of.Fenced {
		t.Fatalf("a free lock was not taken: %+v", r)
	}
	mode := make(chan machine.Mode, 1)
	m.inspect(soon(), func(v protocol.View, _ error) { mode <- v.Mode })
	if got := <-mode; got != of.Mode {
		t.Errorf("held in mode %v, want %v", got, of.Mode)
	}
	m.retryRelease(take)
	redistest.Eventually(t, "the release", func() bool { return len(redis.Keys(t, of.Name)) == 0 })
}

// The cleanup of a RedLock is certain when no majority has the lock: one server may be down. A server that never
// granted the lock is not asked.
func TestMajority_CleanUpIsCertainWithoutAMajority(t *testing.T) {
	redis := redistest.Shared(t)
	for states, want := range map[string]bool{
		"held held held": true, "held held broken": true, "held broken broken": false,
		"held held down": true, "free broken broken": false, "other's other's broken": true,
	} {
		t.Run(states, func(t *testing.T) {
			var on [3]*Server
			var proxies [3]*redistest.Proxy
			for i := range on {
				proxies[i] = redistest.NewProxy(t, redis.Addr())
				on[i] = NewServer(clock(0), connect(t, proxies[i].URL()), Config{KeyPrefix: string(rune('a' + i))})
				defer on[i].Close(nil)
			}
			m := newMajority(on[:], redistest.Name(t), options())
			for i, state := range strings.Fields(states) {
				one := m.members[i]
				if state != "free" && state != "other's" {
					if r := ran(t, one, take); r.Outcome != lock.Done {
						t.Fatalf("a free lock was not taken: %+v", r)
					}
					one.granted.Store(take.Term)
				}
				switch state {
				case "broken", "other's":
					redis.Do(t, "SET", one.lock.Key(), "not a lock")
				case "down":
					proxies[i].Refuse(true)
					proxies[i].Cut()
				}
			}
			ended := make(chan bool, 1)
			m.cleanUp(asRelease(take), func(certain bool) { ended <- certain })
			redistest.Eventually(t, "the end", func() bool { return len(ended) > 0 })
			if certain := <-ended; certain != want {
				t.Errorf("certain: %v, want %v", certain, want)
			}
		})
	}
}

// A command whose lease a server has lost restores it there, unless a later command was sent, which may have set a
// longer lease.
func TestMajority_HealsWithTheLastCommandOnly(t *testing.T) {
	redis := redistest.Shared(t)
	earlier := lock.Command{Kind: lock.Renew, Seq: 13, Term: 7, Count: 1, Lease: time.Minute}
	later := lock.Command{Kind: lock.Renew, Seq: 14, Term: 7, Count: 1, Lease: time.Hour}
	for what, test := range map[string]struct {
		last  lock.Command
		lease time.Duration
	}{"last": {earlier, earlier.Lease}, "earlier": {later, later.Lease}} {
		t.Run(what, func(t *testing.T) {
			name, s := redistest.Name(t), open(t, redis.URL())
			m := newMajority([]*Server{s}, name, options())
			one := m.members[0]
			set := func(c lock.Command) lock.Outcome {
				replies := make(chan Reply, 1)
				one.set(c, soon(), func(r Reply) { replies <- r })
				return (<-replies).Outcome
			}
			if got := set(earlier); got != lock.Absent {
				t.Fatalf("a renewal of a lock that is free: %v", got)
			}
			if test.last.Seq == later.Seq && (ran(t, one, take).Outcome != lock.Done || set(later) != lock.Done) {
				t.Fatal("the later command has failed")
			}
			m.heal(earlier, []vote{{outcome(lock.Absent), one}})
			redistest.Eventually(t, "the reply to each command", func() bool {
				one.unanswered.mu.Lock()
				defer one.unanswered.mu.Unlock()
				return len(one.unanswered.underWay) == 0
			})
			r := ran(t, newMember(MemberSpec{Server: s, Form: forms.Plain, Name: name}, options()), take)
			if r.Outcome != lock.Refused || r.TTL > test.lease || r.TTL < test.lease-redistest.Limit {
				t.Errorf("%v, ttl %v", r.Outcome, r.TTL)
			}
		})
	}
}

// A lease of two holds is restored in two steps. A later command that comes in between has the last word.
func TestMajority_HealUndoesNoLaterCommand(t *testing.T) {
	redis := redistest.Shared(t)
	proxy := redistest.NewProxy(t, redis.Addr())
	name, s := redistest.Name(t), open(t, proxy.URL())
	m := newMajority([]*Server{s}, name, options())
	one := m.members[0]
	earlier := lock.Command{Kind: lock.Acquire, Seq: 13, Term: 7, Count: 2, Lease: time.Minute}
	later := lock.Command{Kind: lock.Acquire, Seq: 14, Term: 7, Count: 2, Lease: time.Hour}
	set := func(c lock.Command) <-chan Reply {
		replies := make(chan Reply, 1)
		one.set(c, soon(), func(r Reply) { replies <- r })
		return replies
	}
	if got := (<-set(earlier)).Outcome; got != lock.Absent {
		t.Fatalf("a re-entry of a lock that is free: %v", got)
	}
	proxy.Delay(20 * time.Millisecond)
	m.heal(earlier, []vote{{outcome(lock.Absent), one}})
	<-set(later)
	redistest.Eventually(t, "the reply to each command", func() bool {
		one.unanswered.mu.Lock()
		defer one.unanswered.mu.Unlock()
		return len(one.unanswered.underWay) == 0
	})
	r := ran(t, newMember(MemberSpec{Server: s, Form: forms.Plain, Name: name}, options()), take)
	if r.Outcome != lock.Refused || r.TTL < later.Lease-redistest.Limit {
		t.Errorf("%v, ttl %v", r.Outcome, r.TTL)
	}
}

// TestMain stops the shared redis-server and finds goroutines that were left behind.
func TestMain(m *testing.M) { redistest.Main(m) }

// clock is a System with a fixed time.
type clock machine.Instant

func (c clock) Now() machine.Instant { return machine.Instant(c) }

// A server that is down gets a few releases at a time, those that have waited longest first, and none whose TTL is
// over.
func TestCleanups_TakesTheLongestWaitingFirst(t *testing.T) {
	const now = time.Hour
	k := &NewServer(clock(now), nil, Config{}).cleanups
	k.running = true // no timer
	tried, ended := "", ""
	replies := map[string]Reply{"1": failing(true, true), "3": outcome(lock.Absent), "5": failing(false, false)}
	for i := range 10 {
		name, until := strconv.Itoa(i), now+time.Minute
		if i%2 == 0 {
			until = now
		}
		try := func(_ time.Time, done func(failed, transient bool)) {
			tried += name
			done(replies[name].failed(), replies[name].Transient)
		}
		k.add(cleanup{try: try, until: until, done: func(certain bool) {
			if ended += name; certain == (name == "5") {
				t.Errorf("%s ended, certain: %v", name, certain)
			}
		}})
	}
	k.send(k.take(6), func(confirmed bool) {
		if !confirmed {
			t.Error("nothing was confirmed")
		}
	})
	if tried != "135" || ended != "02345" {
		t.Errorf("tried %s, and %s have ended", tried, ended)
	}
	if until := time.Duration(k.server.leftoversExpireAt.Load()); until != now+time.Minute {
		t.Errorf("keys whose release has failed permanently are left until %v", until)
	}
	replies["1"], replies["7"], replies["9"] = Reply{}, failing(true, false), Reply{}
	k.send(k.take(5), func(bool) {})
	if tried != "135791" || ended != "023456891" {
		t.Errorf("then tried %s, and %s have ended", tried, ended)
	}
	if k.complete() {
		t.Error("complete, with one left")
	}
	k.take(1)
	if k.complete() {
		t.Error("complete, with one in progress")
	}
}

// While a server is down, a few releases are sent at a time, however many there are.
func TestCleanups_SendsFewAtATime(t *testing.T) {
	k := &NewServer(clock(0), nil, Config{}).cleanups
	k.running = true // no timer
	var waiting []func(failed, transient bool)
	for range 10 * cleanupBatch {
		k.add(cleanup{try: func(_ time.Time, done func(failed, transient bool)) { waiting = append(waiting, done) }, until: time.Hour})
	}
	for range 3 {
		k.sendRound()
		if len(waiting) != cleanupBatch {
			t.Fatalf("%d are in progress, want %d", len(waiting), cleanupBatch)
		}
		for _, done := range waiting {
			done(true, true)
		}
		k.timer.Stop()
		waiting = nil
	}
	if len(k.queue) != 10*cleanupBatch {
		t.Errorf("%d are left", len(k.queue))
	}
}

// A cleanup ends as uncertain when its server is closed before it was confirmed.
func TestServer_ClosedRetriesNothing(t *testing.T) {
	s := NewServer(clock(0), nil, Config{})
	ended := 0
	s.cleanups.add(cleanup{
		try:   func(_ time.Time, done func(failed, transient bool)) { done(true, true) },
		until: time.Hour,
		done: func(certain bool) {
			if ended++; certain {
				t.Error("the release failed, and is reported as certain")
			}
		},
	})
	s.Close(nil)
	if ended != 1 || s.Released() {
		t.Errorf("ended %d times; released %v", ended, s.Released())
	}
}
