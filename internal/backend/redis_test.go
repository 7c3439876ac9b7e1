package backend

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// connect is the Redis at that address until the end of the test.
func connect(t *testing.T, url string) *redisio.Redis {
	t.Helper()
	client, err := redisio.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	redis := redisio.New(client, 0)
	t.Cleanup(func() {
		redis.Close()
		client.Close()
	})
	return redis
}

// open is a Server on the Redis at that address until the end of the test.
func open(t *testing.T, url string) *Server {
	t.Helper()
	s := NewServer(clock(0), connect(t, url), Config{})
	t.Cleanup(func() { s.Close(nil) })
	return s
}

func options() *protocol.Options {
	return &protocol.Options{Client: uuid.NewString(), WaiterTimeout: time.Second}
}

// inbox is a Receiver that keeps what comes.
type inbox struct {
	replies chan Reply
	// lent takes a call, unless it is nil.
	lent func(redisio.Call)
}

func (in *inbox) Replied(seq uint64, r Reply) {
	if seq != take.Seq {
		r.Err = errDown
	}
	in.replies <- r
}

func (in *inbox) Lend(_ lock.CommandKind, call redisio.Call) bool {
	if in.lent == nil {
		return false
	}
	in.lent(call)
	return true
}

func soon() time.Time { return time.Now().Add(redistest.Limit) }

// take is a command that takes a lock.
var take = lock.Command{Kind: lock.Acquire, Seq: 12, Term: 7, Count: 1, Lease: time.Minute, Tokens: 1}

// taken is a lock on a Redis that is held, and its key.
func taken(t *testing.T, s *Server) (b Backend, key string) {
	t.Helper()
	key = redistest.Name(t)
	in := &inbox{replies: make(chan Reply, 1)}
	b = Single(s, protocol.Reentrant, key, options(), in)
	b.Run(take, soon())
	if r := <-in.replies; r.Outcome != lock.Done || r.Err != nil {
		t.Fatalf("%+v", r)
	}
	return b, key
}

// ran is the reply of a part to a command.
func ran(t *testing.T, p part, c lock.Command) Reply {
	t.Helper()
	replies := make(chan Reply, 1)
	p.run(c, soon(), func(r Reply) { replies <- r })
	return <-replies
}

// A call that the Receiver takes over is run by nobody else, and answered like any other. A
// renewal is none that could be lent.
func TestLentCalls(t *testing.T) {
	s := open(t, redistest.Shared(t).URL())
	var calls []redisio.Call
	in := &inbox{replies: make(chan Reply, 3), lent: func(call redisio.Call) { calls = append(calls, call) }}
	b := Single(s, protocol.Reentrant, redistest.Name(t), options(), in)
	b.Run(take, soon())
	renewal := take
	renewal.Kind, renewal.Hurry = lock.Renew, true
	b.Run(renewal, soon())
	s.redis.Drain(nil)
	if r := <-in.replies; r.Outcome != lock.Absent {
		t.Errorf("renewed before it is taken: %+v", r)
	}
	if len(calls) != 1 || len(in.replies) > 0 {
		t.Fatalf("%d calls were lent, want the acquire alone; %d more replies", len(calls), len(in.replies))
	}
	s.redis.RunHere(&calls[0])
	if r := <-in.replies; r.Outcome != lock.Done || r.Err != nil {
		t.Errorf("the lent call: %+v", r)
	}
}

// A part of any kind is taken as it is asked for, and what it holds is released in the background.
func TestParts(t *testing.T) {
	redis := redistest.Shared(t)
	s := open(t, redis.URL())
	for name, of := range map[string]Part{
		"plain": {}, "fenced": {Fenced: true}, "fair": {Kind: protocol.Fair},
		"write": {Kind: protocol.ReadWrite}, "read": {Kind: protocol.ReadWrite, Mode: lock.Shared},
	} {
		t.Run(name, func(t *testing.T) {
			of.Server, of.Name = s, redistest.Name(t)
			m := newMember(of, options())
			if r := ran(t, m, take); r.Outcome != lock.Done || len(r.Tokens) > 0 != of.Fenced {
				t.Fatalf("%+v", r)
			}
			mode := make(chan lock.Mode, 1)
			m.inspect(soon(), func(v protocol.View, _ error) { mode <- v.Mode })
			if got := <-mode; got != of.Mode {
				t.Errorf("held in mode %v, want %v", got, of.Mode)
			}
			m.retryRelease(take)
			redistest.Eventually(t, "the release", func() bool { return len(redis.Keys(t, of.Name)) == 0 })
		})
	}
}

// Those parts are busy that somebody else holds, and no others.
func TestBusyParts(t *testing.T) {
	s := open(t, redistest.Shared(t).URL())
	_, key := taken(t, s)
	free, busy := Part{Server: s, Name: redistest.Name(t)}, Part{Server: s, Name: key}
	for what, p := range map[string]part{
		"one": newMember(busy, options()), "the second of a batch": newAll([]Part{free, busy}, options()),
	} {
		r := ran(t, p, take)
		if r.Outcome != lock.Refused || !slices.Equal(r.Busy, []Channel{{s, redisio.Channel(key)}}) {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// A release that the server does not take is sent until it does, and then that is told.
func TestCleanUpGoesOn(t *testing.T) {
	redis := redistest.Shared(t)
	proxy := redistest.NewProxy(t, redis.Addr())
	s := open(t, proxy.URL())
	b, key := taken(t, s)
	proxy.Refuse(true)
	proxy.Cut()
	ended := make(chan bool, 1)
	b.CleanUp(asRelease(take), func(certain bool) { ended <- certain })
	redistest.Eventually(t, "a try that fails", func() bool {
		s.cleanups.mu.Lock()
		defer s.cleanups.mu.Unlock()
		return len(s.cleanups.queue) == 1
	})
	if len(ended) > 0 || s.Released() {
		t.Error("it is done with, and the lock is held")
	}
	proxy.Refuse(false)
	if certain := <-ended; !certain || !s.Released() || len(redis.Keys(t, key)) > 0 {
		t.Errorf("certain: %v, and the keys are %q", certain, redis.Keys(t, key))
	}
}

// A release that the server refuses for good is left behind, and Released knows.
func TestCleanUpRefusedForGood(t *testing.T) {
	redis := redistest.Shared(t)
	s := open(t, redis.URL())
	b, key := taken(t, s)
	redis.Do(t, "SET", key, "no lock")
	ended := make(chan bool, 1)
	b.CleanUp(asRelease(take), func(certain bool) { ended <- certain })
	if <-ended || s.Released() {
		t.Error("it counts as released")
	}
}

// Close sends once more what is left, and says whether that has helped.
func TestCloseSendsWhatIsLeft(t *testing.T) {
	redis := redistest.Shared(t)
	for what, away := range map[string]bool{"there": false, "away": true} {
		t.Run(what, func(t *testing.T) {
			proxy := redistest.NewProxy(t, redis.Addr())
			s := open(t, proxy.URL())
			m := newMember(Part{Server: s, Name: redistest.Name(t)}, options())
			if r := ran(t, m, take); r.Outcome != lock.Done {
				t.Fatalf("%+v", r)
			}
			proxy.Refuse(away)
			if away {
				proxy.Cut()
			}
			m.retryRelease(take)
			s.Close(nil)
			if left := len(redis.Keys(t, m.lock.Key)) > 0; left != away || s.Released() == away {
				t.Errorf("left: %v, released: %v", left, s.Released())
			}
		})
	}
}

// A RedLock is cleaned up when no majority has it any more: one server may be away. A server
// that never granted it is not asked.
func TestMajorityIsCleanedUp(t *testing.T) {
	redis := redistest.Shared(t)
	for states, want := range map[string]bool{
		"held held held": true, "held held broken": true, "held broken broken": false,
		"held held away": true, "free broken broken": false, "other's other's broken": true,
	} {
		t.Run(states, func(t *testing.T) {
			var on [3]*Server
			var way [3]*redistest.Proxy
			for i := range on {
				way[i] = redistest.NewProxy(t, redis.Addr())
				on[i] = NewServer(clock(0), connect(t, way[i].URL()), Config{KeyPrefix: string(rune('a' + i))})
				defer on[i].Close(nil)
			}
			m := newMajority(on[:], redistest.Name(t), options())
			for i, state := range strings.Fields(states) {
				one := m.members[i]
				if state != "free" && state != "other's" {
					if r := ran(t, one, take); r.Outcome != lock.Done {
						t.Fatalf("%+v", r)
					}
					one.granted.Store(take.Term)
				}
				switch state {
				case "broken", "other's":
					redis.Do(t, "SET", one.lock.Key, "no lock")
				case "away":
					way[i].Refuse(true)
					way[i].Cut()
				}
			}
			ended := make(chan bool, 1)
			m.cleanUp(asRelease(take), func(certain bool) { ended <- certain })
			select {
			case certain := <-ended:
				if certain != want {
					t.Errorf("certain: %v, want %v", certain, want)
				}
			case <-time.After(redistest.Limit):
				t.Error("it does not end")
			}
		})
	}
}
