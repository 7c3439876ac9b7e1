package redisio

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// count counts in a hash how often each call has run, and replies the call's number.
var count = lua("redis.call('HINCRBY', KEYS[1], ARGV[1], 1) return tonumber(ARGV[1])", number)

// counted is call number n of those that count in a hash.
func counted(in *inbox, hash string, n int, deadline time.Time) Call {
	return Call{Script: count, Keys: []string{hash}, Args: []string{strconv.Itoa(n)}, Deadline: deadline, To: in, Seq: uint64(n)}
}

// runs tells how often each call has run.
func runs(t *testing.T, s *redistest.Server, hash string) map[string]int64 {
	t.Helper()
	n, err := s.Do(t, "HGETALL", hash).AsIntMap()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCallsAreBatched(t *testing.T) {
	const calls = 1000
	s := redistest.Shared(t)
	client := &spy{Client: connect(t, s.URL())}
	r, in, hash := open(t, client), newInbox(), redistest.Name(t)
	if reply := run(t, r, count, []string{hash}, "-1"); reply.Err != nil { // the script is known from here on
		t.Fatal(reply.Err)
	}
	before := len(client.sent())
	letGo := client.hold(hash)
	defer letGo()
	for i := range calls {
		r.Run(counted(in, hash, i, soon()))
	}
	redistest.Eventually(t, "all workers to be busy", func() bool { return len(client.sent()) == before+workers })
	letGo()
	for i, reply := range in.awaitAll(t, calls) {
		if reply != (Reply{N: [3]int64{int64(i)}}) {
			t.Fatalf("call %d: %+v", i, reply)
		}
	}
	total := 0
	for _, n := range client.sent()[before:] {
		if total += n; n > maxBatch {
			t.Errorf("a pipeline of %d", n)
		}
	}
	if n := len(client.sent()[before:]); total != calls || n > 2*workers+calls/maxBatch {
		t.Errorf("%d calls went in %d pipelines", total, n)
	}
	for call, n := range runs(t, s, hash) {
		if n != 1 {
			t.Errorf("call %s ran %d times", call, n)
		}
	}
}

// With all the workers of the other lane stuck, and a long queue behind them, an
// urgent call is served at once.
func TestUrgentCallsHaveWorkersOfTheirOwn(t *testing.T) {
	s := redistest.Shared(t)
	client := &spy{Client: connect(t, s.URL())}
	r, in, stuck := open(t, client), newInbox(), redistest.Name(t)
	letGo := client.hold(stuck)
	defer letGo()
	for i := range 10_000 {
		r.Run(counted(in, stuck, i, soon()))
	}
	urgent := newInbox()
	for i := range 3 {
		call := counted(urgent, redistest.Name(t), i, soon())
		call.Urgent = true
		r.Run(call)
		if reply := urgent.await(t, uint64(i)); reply.Err != nil {
			t.Errorf("%+v", reply)
		}
	}
	if n := in.count(); n != 0 {
		t.Errorf("%d calls got through", n)
	}
	letGo()
	in.awaitAll(t, 10_000)
}

// The same on a connection that they share: an urgent call overtakes what is queued.
func TestUrgentCallsOvertakeAFlood(t *testing.T) {
	const flood = 10_000
	for _, trouble := range []struct {
		name       string
		begin, end func(*testing.T, *redistest.Server, *redistest.Proxy)
	}{
		{"slow", func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) { p.Delay(20 * time.Millisecond) },
			func(*testing.T, *redistest.Server, *redistest.Proxy) {}},
		{"paused", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) { s.Pause(t) },
			func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) { s.Resume(t) }},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			s := redistest.Start(t)
			p := redistest.NewProxy(t, s.Addr())
			r := open(t, connect(t, p.URL()))
			run(t, r, count, []string{"h"}, "0")
			in, urgent := newInbox(), newInbox()
			trouble.begin(t, s, p)
			for i := range flood {
				r.Run(counted(in, "h", i, soon()))
			}
			call := counted(urgent, "h", 0, soon())
			call.Urgent = true
			r.Run(call)
			trouble.end(t, s, p)
			if reply := urgent.await(t, 0); reply.Err != nil {
				t.Errorf("%+v", reply)
			}
			if n := in.count(); n > flood/2 {
				t.Errorf("answered only after %d of %d other calls", n, flood)
			}
			in.awaitAll(t, flood)
		})
	}
}

// A call whose deadline passed in the queue is answered, and never sent.
// While Redis does not answer, every call is answered by its deadline.
// Calls that share a pipeline are all waited for as long as the most patient of them.
// However many calls there are, few goroutines carry them; and none when all is closed.
func TestGoroutinesOfThePool(t *testing.T) {
	const calls = 10_000
	s := redistest.Start(t)
	client := connect(t, s.URL())
	r, in := open(t, client), newInbox()
	warmUp(t, client)
	before := runtime.NumGoroutine()
	s.Pause(t)
	for i := range calls {
		call := counted(in, "h", i, soon())
		call.Urgent = i%2 == 0
		r.Run(call)
	}
	if n := runtime.NumGoroutine() - before; n > workers+urgentWorkers+5 {
		t.Errorf("%d goroutines for %d calls", n, calls)
	}
	s.Resume(t)
	in.awaitAll(t, calls)
	r.Close()
	redistest.Eventually(t, "the workers to end", func() bool { return runtime.NumGoroutine() <= before })
}

// warmUp makes the client open all its connections and start their goroutines.
func warmUp(t *testing.T, client rueidis.Client) {
	t.Helper()
	in, r := newInbox(), New(client, 0)
	for i := range 1000 {
		r.Run(counted(in, "warm", i, soon()))
	}
	in.awaitAll(t, 1000)
	r.Close()
}

// A queue that is never empty must not remember the calls that have left it.
func TestQueueDoesNotGrowWithoutEnd(t *testing.T) {
	p := newPool(nil, &reconnector{})
	l := &p.normal
	l.max = 0 // no workers
	var batch []Call
	for range 5 * maxBatch {
		p.submit(Call{})
	}
	for i := range 3000 {
		for range maxBatch {
			p.submit(Call{Seq: uint64(i)})
		}
		batch = p.take(l, batch)
	}
	if n := cap(l.queue); n > 20*maxBatch {
		t.Errorf("room for %d calls, for %d that wait", n, len(l.queue)-l.head)
	}
}
