// Package monitoring_test tests what operators see: metrics, logs, traces.
package monitoring_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// measured is a System whose metrics a test reads.
type measured struct {
	*locktest.Site
	reader *metric.ManualReader
}

func openMeasured(t *testing.T, url string, cfg lockkeeper.Config) measured {
	reader := metric.NewManualReader()
	cfg.Meter = metric.NewMeterProvider(metric.WithReader(reader)).Meter("lockkeeper")
	return measured{locktest.Open(t, url, cfg), reader}
}

// sums returns the sums of all metrics, by name and values of the attributes; for a histogram, the number of values.
func (m measured) sums(t *testing.T) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	locktest.OK(t, m.reader.Collect(t.Context(), &all))
	sums := map[string]int64{}
	add := func(name string, attributes attribute.Set, n int64) {
		for _, a := range attributes.ToSlice() { // sorted by their keys
			name += " " + a.Value.Emit()
		}
		sums[name] += n
	}
	for _, scope := range all.ScopeMetrics {
		for _, one := range scope.Metrics {
			switch data := one.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(one.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(one.Name, p.Attributes, int64(p.Count))
				}
			}
		}
	}
	return sums
}

// expect waits until the metrics have these values.
func (m measured) expect(t *testing.T, want map[string]int64) {
	t.Helper()
	var wrong map[string][2]int64
	defer func() {
		for name, n := range wrong {
			t.Errorf("%s is %d, want %d", name, n[0], n[1])
		}
	}()
	redistest.Eventually(t, "the metrics", func() bool {
		got := m.sums(t)
		wrong = map[string][2]int64{}
		for name, n := range want {
			if got[name] != n {
				wrong[name] = [2]int64{got[name], n}
			}
		}
		return len(wrong) == 0
	})
}

// A lock is counted from its request to its end, in every way of granting it.
func TestMetrics_CountLocksFromRequestToEnd(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, locktest.NoPolling)
	cfg := locktest.NoPolling
	cfg.QueueLimit, cfg.HandOffLimit = 1, 30*time.Second
	m := openMeasured(t, k.Server.URL(), cfg)
	plain := m.Lock(k.LockName)

	first := locktest.Acquire(t, plain)
	again := locktest.AcquireIn(t, first.Context(), plain)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, plain)
	granted := locktest.AcquireSoon(t.Context(), plain)
	locktest.AwaitWaiters(t, plain, 1)
	if _, err := plain.Acquire(t.Context()); err == nil {
		t.Error("a request beyond the queue limit was granted")
	}
	want := map[string]int64{
		"lockkeeper.holds plain": 1, "lockkeeper.waiters plain": 1, "lockkeeper.actors": 1,
		"lockkeeper.grants plain redis": 1, "lockkeeper.grants plain reentry": 1,
		"lockkeeper.refusals plain held": 1, "lockkeeper.refusals plain queue_full": 1,
		"lockkeeper.wait.duration plain granted": 2, "lockkeeper.wait.duration plain refused": 2,
		"lockkeeper.redis.calls done acquire": 2, "lockkeeper.redis.call.duration done acquire": 2, "lockkeeper.hold.duration plain": 0,
	}
	m.expect(t, want)

	locktest.Release(t, again)
	locktest.Release(t, first)
	handedOff := locktest.Got(t, granted).Hold
	maps.Copy(want, map[string]int64{"lockkeeper.waiters plain": 0, "lockkeeper.hold.duration plain": 1, "lockkeeper.wait.duration plain granted": 3,
		"lockkeeper.grants plain hand_off": 1})
	m.expect(t, want)
	locktest.Release(t, handedOff)

	fenced := locktest.NewKey(t, k.Server)
	redistest.Eventually(t, "a transfer", func() bool { // sometimes the lock is freed instead
		other := locktest.Acquire(t, s.FencedLock(fenced.LockName))
		granted = locktest.AcquireSoon(t.Context(), m.FencedLock(fenced.LockName))
		fenced.AwaitListener(t)
		m.expect(t, map[string]int64{"lockkeeper.subscriptions": 1, "lockkeeper.waiters fenced": 1, "lockkeeper.holds fenced": 0})
		locktest.Release(t, other)
		locktest.Release(t, locktest.Got(t, granted).Hold)
		return m.sums(t)["lockkeeper.grants fenced transfer"] > 0
	})
	fair := locktest.Acquire(t, m.FairLock(k.LockName))
	locktest.Stop(t, m)
	maps.Copy(want, map[string]int64{
		"lockkeeper.holds plain": 0, "lockkeeper.holds fenced": 0, "lockkeeper.holds fair": 0, "lockkeeper.waiters fenced": 0,
		"lockkeeper.subscriptions": 0, "lockkeeper.actors": 0, "lockkeeper.grants fair redis": 1, "lockkeeper.hold.duration plain": 2,
		"lockkeeper.hold.duration fair": 1, "lockkeeper.losses fair closed": 0, "lockkeeper.missed": 0,
	})
	m.expect(t, want)
	if fair.Err() == nil {
		t.Error("Close has left a hold")
	}
}

// Losses and their causes are counted, and so are broken pub/sub connections.
func TestMetrics_CountLossesAndReconnects(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	m := openMeasured(t, proxy.URL(), lockkeeper.Config{Watchdog: 4 * time.Second, Renewal: 100 * time.Millisecond})
	m.SkipCloseCheck = true
	deleted, expired, held := locktest.NewKey(t, server), locktest.NewKey(t, server), locktest.NewKey(t, server)
	byOwner := locktest.Acquire(t, m.FencedLock(deleted.LockName))
	cutOff := locktest.Acquire(t, m.Lock(expired.LockName))
	held.TakeAs(t, locktest.Redisson, time.Minute)
	waiting := locktest.AcquireSoon(t.Context(), m.Lock(held.LockName))
	held.AwaitListener(t)

	redistest.Eventually(t, "a renewal", func() bool { return m.sums(t)["lockkeeper.renewals renewed"] > 0 })
	server.Do(t, "DEL", deleted.Name)
	locktest.EndedBy(t, byOwner, messages.Reason_REASON_GONE)
	m.expect(t, map[string]int64{"lockkeeper.losses fenced gone": 1, "lockkeeper.renewals gone": 1, "lockkeeper.at_risk plain": 0, "lockkeeper.reconnects": 0})
	proxy.Cut()
	m.expect(t, map[string]int64{"lockkeeper.reconnects": 1})
	proxy.Freeze(true)
	locktest.EndedBy(t, cutOff, messages.Reason_REASON_EXPIRED)
	m.expect(t, map[string]int64{"lockkeeper.losses plain expired": 1, "lockkeeper.losses fenced gone": 1, "lockkeeper.holds plain": 0})
	sums := m.sums(t)
	for _, name := range []string{"lockkeeper.at_risk plain", "lockkeeper.renewals unavailable", "lockkeeper.redis.call.duration unavailable renew"} {
		if sums[name] == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	proxy.Heal()
	held.Unlock(t)
	locktest.Release(t, locktest.Got(t, waiting).Hold)
}

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}

// A request for permits is counted once, whatever its number and its end; other requests are not counted.
func TestMetrics_CountSemaphoreRequestsOnce(t *testing.T) {
	t.Parallel()
	k, ctx := locktest.NewKey(t, redistest.Start(t)), locktest.Within(t)
	cfg := locktest.NoPolling
	cfg.QueueLimit, cfg.HandOffLimit = 1, 30*time.Second
	m := openMeasured(t, k.Server.URL(), cfg)
	s := m.Semaphore(k.LockName)
	locktest.Must(s.TrySetPermits(ctx, 3, 0))(t)
	locktest.OK(t, s.Acquire(ctx, 2))
	locktest.IsError(t, s.TryAcquire(ctx, 2), lockkeeper.ErrHeld)
	waiter := locktest.Go(func() error { return s.Acquire(ctx, 2) })
	want := map[string]int64{
		"lockkeeper.waiters semaphore": 1, "lockkeeper.grants semaphore redis": 1, "lockkeeper.refusals semaphore held": 1,
		"lockkeeper.wait.duration semaphore granted": 1, "lockkeeper.wait.duration semaphore refused": 1,
	}
	m.expect(t, want)
	locktest.IsError(t, s.Acquire(ctx, 1), lockkeeper.ErrQueueFull)
	locktest.IsError(t, m.Latch(k.LockName).Wait(ctx), lockkeeper.ErrInvalid) // refused before it reaches a pool
	locktest.OK(t, s.Release(ctx, 2))
	locktest.OK(t, locktest.Await(t, "the permits", waiter))
	locktest.Must(s.Drain(ctx))(t)
	m.expect(t, map[string]int64{
		"lockkeeper.waiters semaphore": 0, "lockkeeper.grants semaphore redis": 1, "lockkeeper.grants semaphore hand_off": 1,
		"lockkeeper.refusals semaphore queue_full": 1, "lockkeeper.refusals semaphore held": 1, "lockkeeper.refusals latch invalid": 1,
		"lockkeeper.wait.duration semaphore granted": 2, "lockkeeper.wait.duration semaphore refused": 2,
		"lockkeeper.wait.duration latch refused": 0, "lockkeeper.holds semaphore": 0, "lockkeeper.grants plain redis": 0,
	})
}

// A waiter of a latch is counted until the latch opens, or until the wait or the System ends.
func TestMetrics_CountLatchWaiters(t *testing.T) {
	t.Parallel()
	k, ctx := locktest.NewKey(t, redistest.Start(t)), locktest.Within(t)
	m := openMeasured(t, k.Server.URL(), locktest.NoPolling)
	l := m.Latch(k.LockName)
	wait := func(ctx context.Context) <-chan error {
		return locktest.Go(func() error { return l.Wait(ctx) })
	}
	closed := func() {
		t.Helper()
		if set, err := l.TrySetCount(ctx, 1); !set || err != nil {
			t.Fatal(set, err)
		}
	}
	closed()
	leaving, leave := context.WithCancel(ctx)
	stays, leaves := wait(ctx), wait(leaving)
	m.expect(t, map[string]int64{"lockkeeper.waiters latch": 2})
	leave()
	m.expect(t, map[string]int64{"lockkeeper.waiters latch": 1, "lockkeeper.refusals latch cancelled": 1})
	locktest.OK(t, l.CountDown(ctx))
	locktest.OK(t, locktest.Await(t, "the latch", stays))
	m.expect(t, map[string]int64{
		"lockkeeper.waiters latch": 0, "lockkeeper.grants latch redis": 1,
		"lockkeeper.wait.duration latch granted": 1, "lockkeeper.wait.duration latch refused": 1,
	})
	closed()
	last := wait(ctx)
	m.expect(t, map[string]int64{"lockkeeper.waiters latch": 1})
	locktest.Stop(t, m)
	m.expect(t, map[string]int64{"lockkeeper.waiters latch": 0, "lockkeeper.refusals latch closed": 1, "lockkeeper.actors": 0})
	locktest.IsError(t, locktest.Await(t, "the end", last), lockkeeper.ErrClosed)
	if err := locktest.Await(t, "the end of the wait", leaves); err == nil {
		t.Error("a wait that was cancelled has succeeded")
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text := locktest.Must(os.ReadFile("../../docs/" + name))(t)
	return string(text)
}

// prometheus returns the names of the metrics in docs/operate.md, and of their attributes, as the exporter for
// Prometheus spells them.
func prometheus(t *testing.T) (metrics map[string]bool) {
	metrics = map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| `(lockkeeper\\.[a-z_.]+)` \\| ([a-z -]+(?:, s)?) \\| (.*?) ?\\|")
	for _, m := range row.FindAllStringSubmatch(read(t, "operate.md"), -1) {
		name := strings.ReplaceAll(m[1], ".", "_")
		switch m[2] {
		case "counter":
			metrics[name+"_total"] = true
		case "up-down counter":
			metrics[name] = true
		case "histogram, s":
			metrics[name+"_seconds_bucket"], metrics[name+"_seconds_count"], metrics[name+"_seconds_sum"] = true, true, true
		default:
			t.Errorf("%s is a %q", m[1], m[2])
		}
		for _, attribute := range regexp.MustCompile(`\w+`).FindAllString(m[3], -1) {
			metrics["lockkeeper_"+attribute] = true
		}
	}
	return metrics
}

// The dashboard loads. It and the alerting rules query all metrics that are measured, and no others.
func TestDashboard_QueriesOnlyExistingMetrics(t *testing.T) {
	t.Parallel()
	dashboard, alerts, metrics := read(t, "monitoring/grafana.json"), read(t, "monitoring/alerts.yml"), prometheus(t)
	var panels struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	locktest.OK(t, json.Unmarshal([]byte(dashboard), &panels))
	asked := map[string]bool{}
	name := regexp.MustCompile(`\blockkeeper_[a-z_]+`)
	for _, panel := range panels.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", panel.Title)
		}
	}
	for what, text := range map[string]string{"the dashboard": dashboard, "an alert": alerts} {
		for _, n := range name.FindAllString(text, -1) {
			if asked[n] = true; !metrics[n] {
				t.Errorf("%s queries %s, which does not exist", what, n)
			}
		}
	}
	for n := range metrics {
		if !asked[n] && !strings.HasSuffix(n, "_sum") && !asked[strings.TrimSuffix(n, "_count")+"_bucket"] {
			t.Errorf("neither the dashboard nor an alert queries %s", n)
		}
	}
}
