package scripts_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// waiter returns the i-th client of a benchmark.
func waiter(i int) string { return fmt.Sprintf("%08x-6b1d-4a53-9a5e-2f4b7c1d0e88", i) }

// full are scripts without what they do in the usual case instead of the wait queue.
var full = map[*scripts.Script]*scripts.Script{
	scripts.Acquire: with(scripts.Acquire, "held_by = confirm_entry(", "held_by = (function() end)("),
	scripts.Release: with(scripts.Release, "and transfer_to_first(", "and (function() end)("),
}

// with returns a script with another text in one place.
func with(s *scripts.Script, old, text string) *scripts.Script {
	if strings.Count(s.Source, old) != 1 {
		panic(fmt.Sprintf("%s does not have %q once", s.Name, old))
	}
	return scripts.New(s.Name, strings.Replace(s.Source, old, text, 1), s.Reply)
}

// BenchmarkWaitQueue measures how long Redis works on a script while n clients wait, without the way there and back.
func BenchmarkWaitQueue(b *testing.B) {
	server := redistest.Start(b)
	for _, n := range []int{1, 32, 200, 1000, 2000} {
		transfer := func(b *testing.B, instead map[*scripts.Script]*scripts.Script) {
			q := fill(b, server, n)
			q.instead = instead
			holder := n
			for i := range b.N {
				q.run(b, "EVALSHA", scripts.Release, fmt.Sprintf("owner=%s:1 lease=30000", waiter(holder)), "0")
				q.run(b, "EVAL", scripts.Acquire, fmt.Sprintf("owner=%s:1 entry=1.%d+listens", waiter(holder), i+2), "[")
				holder = (holder + 1) % (n + 1)
			}
		}
		b.Run(fmt.Sprint("transfer-", n), func(b *testing.B) { transfer(b, nil) })
		b.Run(fmt.Sprint("transfer-full-", n), func(b *testing.B) { transfer(b, full) })
		b.Run(fmt.Sprint("yield-", n), func(b *testing.B) {
			q := fill(b, server, n)
			holder := n
			for i := range b.N {
				q.run(b, "EVALSHA", scripts.Yield, fmt.Sprintf("owner=%s:1 entry=1.%d+listens", waiter(holder), i+2), "[1 0]")
				holder = (holder + 1) % (n + 1)
			}
		})
		refused := func(b *testing.B, instead map[*scripts.Script]*scripts.Script) {
			q := fill(b, server, n)
			q.instead = instead
			for i := range b.N {
				q.run(b, "EVALSHA", scripts.Acquire, fmt.Sprintf("owner=%s:1 entry=1.%d+listens", waiter(0), i+2), "[")
			}
		}
		b.Run(fmt.Sprint("refused-", n), func(b *testing.B) { refused(b, nil) })
		b.Run(fmt.Sprint("refused-full-", n), func(b *testing.B) { refused(b, full) })
		b.Run(fmt.Sprint("try-", n), func(b *testing.B) {
			q := fill(b, server, n)
			for range b.N {
				q.run(b, "EVALSHA", scripts.Acquire, fmt.Sprintf("owner=%s:1", waiter(n+1)), "[")
			}
		})
	}
}

// BenchmarkFairQueue measures the same for a fair lock. A transfer is two scripts: the holder releases the lock and waits
// again, and the next waiter takes it.
func BenchmarkFairQueue(b *testing.B) {
	server := redistest.Start(b)
	for _, n := range []int{1, 32, 1000} {
		sync := func(b *testing.B, q *queueBench, command string, i int, more, want string) {
			q.run(b, command, scripts.SyncQueue, fmt.Sprintf("client=%s listed=%[1]s:1 %s", waiter(i), more), want)
		}
		fill := func(b *testing.B) *queueBench {
			q := newLock(b, server)
			for i := range n + 1 {
				sync(b, q, "EVAL", i, "", "[")
			}
			q.measure(b)
			return q
		}
		b.Run(fmt.Sprint("transfer-", n), func(b *testing.B) {
			q := fill(b)
			for i := range b.N {
				holder, next := i%(n+1), (i+1)%(n+1)
				sync(b, q, "EVALSHA", holder, "releases="+waiter(holder)+":1", "[0 ")
				sync(b, q, "EVALSHA", next, "", "[1 ")
			}
		})
		b.Run(fmt.Sprint("refused-", n), func(b *testing.B) {
			q := fill(b)
			for range b.N {
				sync(b, q, "EVALSHA", n, "", "[0 ")
			}
		})
	}
}

// queueBench is a lock with a wait queue.
type queueBench struct {
	rueidis.Client
	lock    string
	instead map[*scripts.Script]*scripts.Script // which scripts EVALSHA runs in place of others
}

var locksOfBenches atomic.Int64

// newLock returns a lock that was not used before, and a connection for it.
func newLock(b *testing.B, server *redistest.Server) *queueBench {
	b.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	return &queueBench{Client: client, lock: fmt.Sprint("lock", locksOfBenches.Add(1))}
}

// fill takes a lock, and lets n clients wait for it. The measuring begins then.
func fill(b *testing.B, server *redistest.Server, n int) *queueBench {
	b.Helper()
	q := newLock(b, server)
	listener, giveBack := q.Dedicate()
	b.Cleanup(giveBack)
	for i := range n + 1 {
		if err := listener.Do(context.Background(), listener.B().Subscribe().Channel("lockkeeper_turn:"+waiter(i)).Build()).Error(); err != nil {
			b.Fatal(err)
		}
	}
	q.run(b, "EVAL", scripts.Acquire, fmt.Sprintf("owner=%s:1", waiter(n)), "(nil)")
	for i := range n {
		q.run(b, "EVAL", scripts.Acquire, fmt.Sprintf("owner=%s:1 entry=1.1+ttl1h+listens", waiter(i)), "[")
	}
	q.measure(b)
	return q
}

// measure loads all scripts, and begins to measure those that EVALSHA runs.
func (q *queueBench) measure(b *testing.B) {
	b.Helper()
	for _, s := range slices.AppendSeq(slices.Clone(scripts.All), maps.Values(full)) {
		if err := q.Do(context.Background(), q.B().ScriptLoad().Script(s.Source).Build()).Error(); err != nil {
			b.Fatal(err)
		}
	}
	if err := q.Do(context.Background(), q.B().ConfigResetstat().Build()).Error(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	b.Cleanup(func() {
		stats, err := q.Do(context.Background(), q.B().Info().Section("commandstats").Build()).ToString()
		if _, rest, ok := strings.Cut(stats, "cmdstat_evalsha:"); ok && err == nil {
			_, rest, _ = strings.Cut(rest, "usec_per_call=")
			number, _, _ := strings.Cut(rest, ",")
			micros, _ := strconv.ParseFloat(number, 64)
			b.ReportMetric(micros, "redis-µs/script")
		}
	})
}

func (q *queueBench) run(b *testing.B, command string, s *scripts.Script, args, want string) {
	b.Helper()
	keys, argv := call(s, q.lock, args)
	script := cmp.Or(q.instead[s], s).SHA
	if command == "EVAL" {
		script = s.Source
	}
	words := append([]string{script, strconv.Itoa(len(keys))}, append(keys, argv...)...)
	got := text(q.Do(context.Background(), q.B().Arbitrary(command).Args(words...).Build()).ToMessage())
	if !strings.HasPrefix(got, want) {
		b.Fatalf("%s replies %s, want %s", s.Name, got, want)
	}
}
