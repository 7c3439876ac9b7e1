package redisclient

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "12") // they wait more than they compute
	// When the client checks for a cluster, it leaves this goroutine, which sleeps for a second.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// open returns a Redis that is closed when the test ends.
func open(t testing.TB, client rueidis.Client) *Redis {
	t.Helper()
	r := New(client, 10*time.Millisecond)
	t.Cleanup(r.Close)
	return r
}

func lua(source string, reply scripts.Shape) *scripts.Script {
	return scripts.New("test", source, reply)
}

// number is the shape of a reply of one number.
var number = scripts.Shape{Numbers: 1}

// count counts in a hash how often each call has run, and returns the call's number.
var count = lua("redis.call('HINCRBY', KEYS[1], ARGV[1], 1) return tonumber(ARGV[1])", number)

// counted returns call n of the script count.
func counted(in *inbox, hash string, n int, deadline time.Time) Call {
	return Call{Script: count, Keys: []string{hash}, Args: []string{strconv.Itoa(n)}, Deadline: deadline, To: in, Seq: uint64(n)}
}

// runs returns how often each call has run.
func runs(t *testing.T, s *redistest.Server, hash string) map[string]int64 {
	t.Helper()
	n, err := s.Do(t, "HGETALL", hash).AsIntMap()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// run runs a script and waits for its reply.
func run(t *testing.T, r *Redis, script *scripts.Script, keys []string, args ...string) Reply {
	t.Helper()
	in := newInbox()
	r.Run(Call{Script: script, Keys: keys, Args: args, Deadline: redistest.Soon(), To: in})
	return in.await(t, 0)
}

func acquire(t *testing.T, r *Redis, key string) Reply {
	t.Helper()
	return run(t, r, scripts.Acquire, []string{key}, "a", "1", "30000", keyspace.WaitQueue(key), "", "", "", "0")
}

// inbox is a Receiver that keeps the replies.
type inbox struct {
	mu      sync.Mutex
	replies map[uint64][]Reply
}

func newInbox() *inbox { return &inbox{replies: map[uint64][]Reply{}} }

func (in *inbox) Replied(seq uint64, r Reply) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.replies[seq] = append(in.replies[seq], r)
}

// count returns how many calls have replies.
func (in *inbox) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.replies)
}

// to returns the replies to a call.
func (in *inbox) to(seq uint64) []Reply {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.replies[seq]
}

// await waits for the reply to a call.
func (in *inbox) await(t testing.TB, seq uint64) Reply {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint("reply ", seq), func() bool { return len(in.to(seq)) > 0 })
	return in.to(seq)[0]
}

// awaitAll waits for the replies to the calls 0 … n-1, and expects one for each.
func (in *inbox) awaitAll(t testing.TB, n int) []Reply {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint(n, " replies"), func() bool { return in.count() >= n })
	all := make([]Reply, n)
	for i := range all {
		replies := in.to(uint64(i))
		if len(replies) != 1 {
			t.Fatalf("call %d has %d replies", i, len(replies))
		}
		all[i] = replies[0]
	}
	return all
}

// spy is a client that records the length of each pipeline before it is sent, and can delay it.
type spy struct {
	rueidis.Client

	mu        sync.Mutex
	pipelines []int
	held      string        // a key
	open      chan struct{} // closed when it is held no longer
}

// hold delays pipelines with a key until the result is called.
func (s *spy) hold(key string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := make(chan struct{})
	s.held, s.open = key, open
	return sync.OnceFunc(func() { close(open) })
}

func (s *spy) sent() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pipelines)
}

func (s *spy) look(commands ...rueidis.Completed) {
	s.mu.Lock()
	s.pipelines = append(s.pipelines, len(commands))
	held, open := s.held, s.open
	s.mu.Unlock()
	if open != nil && slices.ContainsFunc(commands, func(c rueidis.Completed) bool { return slices.Contains(c.Commands(), held) }) {
		<-open
	}
}

func (s *spy) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	s.look(command)
	return s.Client.Do(ctx, command)
}

func (s *spy) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	s.look(commands...)
	return s.Client.DoMulti(ctx, commands...)
}
