//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
)

// The test binary is a service of this name if this variable is set.
const serviceEnv = "LOCKKEEPER_TEST_SERVICE"

// ofEach is how many locks of each kind a service holds.
const ofEach = 24

// testService is a service that holds locks, with a console, metrics and a log.
type testService struct {
	sys    *lockkeeper.System
	reader *metric.ManualReader
	holds  map[string]*lockkeeper.Hold
}

// runService runs a testService. It prints its URL and its client UUID, holds its locks until its standard input ends,
// and logs JSON to its standard error.
func runService(name string) {
	s := testService{reader: metric.NewManualReader(), holds: map[string]*lockkeeper.Hold{}}
	journal := console.NewJournal()
	s.sys = must(lockkeeper.Open(context.Background(), redisOf(os.Environ()), lockkeeper.WithConfig(journal.Attach(lockkeeper.Config{
		Application: name, Watchdog: 2 * time.Minute, LongWait: 100 * time.Millisecond,
		Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil)), Meter: metric.NewMeterProvider(metric.WithReader(s.reader)).Meter("lockkeeper"),
	}))))
	s.hold(name)
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", console.Handler(s.sys, console.WithJournal(journal), console.WithInterval(0))))
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { check(json.NewEncoder(w).Encode(s.sums())) })
	mux.HandleFunc("/wait", func(_ http.ResponseWriter, r *http.Request) {
		for _, lock := range s.contended() {
			go func() { _, _ = lock.Acquire(context.Background()) }() // to the end of the process
		}
	})
	mux.HandleFunc("/ensure", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, s.holds[r.FormValue("lock")].Ensure(r.Context(), 117*time.Second)) // of 120: renews unless it has just been renewed
	})
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() { check(http.Serve(listener, mux)) }()
	fmt.Printf("http://%v %s\n", listener.Addr(), s.sys.ID())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
	}
	os.Exit(0)
}

// contended returns locks of the service a for which other services wait.
func (s *testService) contended() []*lockkeeper.Lock {
	return []*lockkeeper.Lock{s.sys.Lock("a-plain-0"), s.sys.FairLock("a-fair-0"), s.sys.ReadWriteLock("a-write-0").Write()}
}

func (s *testService) hold(name string) {
	ctx := context.Background()
	for i := range ofEach {
		of := func(kind string) string { return fmt.Sprintf("%s-%s-%d", name, kind, i) }
		for kind, form := range kinds.Forms {
			s.holds[of(kind)] = must(s.sys.LockOf(form.Of(of(kind))).Acquire(ctx))
		}
		must(lockkeeper.MultiLock(s.sys.Lock(of("multi")+"x"), s.sys.FencedLock(of("multi")+"y")).Acquire(ctx))
		must(s.sys.ExpirableSemaphore(of("permits")).TrySetPermits(ctx, 2))
		must(s.sys.ExpirableSemaphore(of("permits")).Acquire(ctx))
	}
	must(s.sys.FencedLock(name + "-fenced-0").Acquire(s.holds[name+"-fenced-0"].Context()))
	must(s.sys.ReadWriteLock("shared").Read().Acquire(ctx))
	must(s.sys.Semaphore(name+"-semaphore").TrySetPermits(ctx, 3, 0))
	must(s.sys.Latch(name+"-latch").TrySetCount(ctx, 3))
}

// sums returns the sums of the counters, by name, and by name and values of the attributes.
func (s *testService) sums() map[string]int64 {
	var all metricdata.ResourceMetrics
	check(s.reader.Collect(context.Background(), &all))
	sums := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, one := range scope.Metrics {
			data, _ := one.Data.(metricdata.Sum[int64])
			for _, p := range data.DataPoints {
				name := one.Name
				sums[name] += p.Value
				for _, a := range p.Attributes.ToSlice() { // sorted by their keys
					name += " " + a.Value.Emit()
				}
				sums[name] += p.Value
			}
		}
	}
	return sums
}
