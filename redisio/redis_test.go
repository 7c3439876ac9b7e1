package redisio

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "12") // they wait more than they compute
	// When the client checks for a cluster, it leaves this goroutine, which sleeps for a second.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// connect returns a client that is closed when the test ends.
func connect(t testing.TB, url string) rueidis.Client {
	t.Helper()
	client, err := Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// customized returns a client that the user has opened.
func customized(t *testing.T, addr string, options rueidis.ClientOption) rueidis.Client {
	t.Helper()
	options.InitAddress, options.DisableCache = []string{addr}, true
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// open returns a Redis that is closed when the test ends.
func open(t testing.TB, client rueidis.Client) *Redis {
	t.Helper()
	r := New(client, 10*time.Millisecond)
	t.Cleanup(r.Close)
	return r
}

// soon returns a deadline that passes only in a test that fails.
func soon() time.Time { return time.Now().Add(redistest.Limit) }

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
	r.Run(Call{Script: script, Keys: keys, Args: args, Deadline: soon(), To: in})
	return in.await(t, 0)
}

func acquire(t *testing.T, r *Redis, key string) Reply {
	t.Helper()
	return run(t, r, scripts.Acquire, []string{key}, "a", "1", "30000", WaitQueue(key), "", "", "", "0")
}

// do runs a command.
func do(t *testing.T, s *redistest.Server, words ...string) {
	t.Helper()
	if err := s.Do(t, words...).Error(); err != nil {
		t.Fatalf("%s: %v", words, err)
	}
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

// eventCounter is a Listener that counts events: "message c", "subscribed c", "refused c".
type eventCounter struct {
	onSubscribed func(channel string) // may be nil

	mu      sync.Mutex
	events  map[string]int
	refusal *Error
	failure *Error
}

func (e *eventCounter) record(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events[what]++
}

func (e *eventCounter) Message(channel, payload string) {
	e.record("message " + channel)
	e.record("message " + channel + ": " + payload)
}

func (e *eventCounter) Subscribed(channel string) {
	if e.onSubscribed != nil {
		e.onSubscribed(channel)
	}
	e.record("subscribed " + channel)
}

func (e *eventCounter) Refused(channels []string, err *Error) {
	for _, channel := range channels {
		e.record("refused " + channel)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusal = err
}

func (e *eventCounter) Failing(command, server string, err *Error) {
	e.record("failing " + command + " at " + server)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure = err
}

func (e *eventCounter) Recovered(command, server string) {
	e.record("recovered " + command + " at " + server)
}

func (e *eventCounter) count(what string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.events[what]
}

// await waits until an event was reported at least n times.
func (e *eventCounter) await(t testing.TB, what string, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint(what, ", ", n, " times"), func() bool { return e.count(what) >= n })
}

// first is the first channel of all subscriptions in the tests.
const first = "ok, the first"

// subscribe opens subscriptions to channels, which are closed when the test ends.
func subscribe(t *testing.T, client rueidis.Client, channels ...string) (*Subscriptions, *eventCounter) {
	t.Helper()
	return subscribeOver(t, open(t, client), channels...)
}

func subscribeOver(t *testing.T, r *Redis, channels ...string) (*Subscriptions, *eventCounter) {
	t.Helper()
	e := &eventCounter{events: map[string]int{}}
	subs := r.NewSubscriptions(e, first)
	t.Cleanup(subs.Close)
	listen(t, subs, e, channels...)
	return subs, e
}

// listen adds channels, and waits until they are subscribed.
func listen(t *testing.T, subs *Subscriptions, e *eventCounter, channels ...string) {
	t.Helper()
	for _, channel := range channels {
		n := e.count("subscribed " + channel)
		subs.Add(channel)
		e.await(t, "subscribed "+channel, n+1)
	}
}

// publishAndAwait publishes on channels, and waits until the messages are received.
func publishAndAwait(t *testing.T, s *redistest.Server, e *eventCounter, channels ...string) {
	t.Helper()
	for _, channel := range channels {
		n := e.count("message " + channel)
		do(t, s, "PUBLISH", channel, "0")
		e.await(t, "message "+channel, n+1)
	}
}

func awaitSubscribers(t *testing.T, s *redistest.Server, channel string, n int64) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint(n, " subscribers of ", channel), func() bool { return s.Subscribers(t, channel) == n })
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

// Results of Sort.
var (
	passing  = Error{Transient: true}
	doubtful = Error{Transient: true, Unsure: true}
	lasting  = Error{}
)

// hinted returns an error with a part of a hint.
func hinted(hint string) Error { return Error{Hint: hint} }

func expect(t *testing.T, what string, e *Error, want Error) {
	t.Helper()
	switch {
	case e == nil:
		t.Errorf("%s: no error", what)
	case e.Transient != want.Transient || e.Unsure != want.Unsure || (e.Hint == "") != (want.Hint == "") || !strings.Contains(e.Hint, want.Hint):
		t.Errorf("%s: %+v, want %+v", what, e, want)
	case !strings.Contains(e.Error(), e.Hint) || !strings.Contains(e.Error(), e.Unwrap().Error()):
		t.Errorf("%s: hint or cause is not in %q", what, e)
	}
}
