//go:build !race

package grains

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The meter of Config.Locks gets what the Directory counts, until Leave.
func TestMetrics_AreThoseOfTheDirectory(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	reader := metric.NewManualReader()
	a := f.member(Config{Locks: lockkeeper.Config{Meter: metric.NewMeterProvider(metric.WithReader(reader)).Meter("test")}})
	b := f.member(Config{Place: func(members []Member, _, _ string) Member {
		for _, m := range members {
			if m.Address == a.ActorSystem.Address() {
				return m
			}
		}
		return members[0]
	}})
	redistest.Eventually(t, "two members", func() bool { return len(*b.d.view.Load()) == 2 })
	for i := range 3 {
		b.mustAsk(t, fmt.Sprint(i), "where")
	}
	pid := b.Get("0", "account")
	b.ActorSystem.Root.Send(pid, wrapperspb.String("stop 50ms"))
	redistest.Eventually(t, "the stop", func() bool { return f.count("0", "stopping") == 1 })
	if _, err := b.ActorSystem.Root.RequestFuture(pid, wrapperspb.String("behind"), time.Minute).Result(); err != actor.ErrDeadLetter {
		t.Errorf("what is behind the stop: %v", err)
	}
	redistest.Eventually(t, "the end", func() bool { return f.count("0", "stops") == 1 })
	f.redis.Do(t, "HSET", f.key("entries"), "account/other", b.d.term.Load().member.ID+"#1")
	a.mustAsk(t, "other", "where")
	collect := func() map[string]int64 {
		var data metricdata.ResourceMetrics
		locktest.OK(t, reader.Collect(t.Context(), &data))
		got := map[string]int64{}
		for _, scope := range data.ScopeMetrics {
			for _, m := range scope.Metrics {
				if sum, is := m.Data.(metricdata.Sum[int64]); is && strings.HasPrefix(m.Name, "lockkeeper.grains.") && len(sum.DataPoints) > 0 {
					got[strings.TrimPrefix(m.Name, "lockkeeper.grains.")] = sum.DataPoints[0].Value
				}
			}
		}
		return got
	}
	got := collect()
	if got["unregistered"] > 1 || got["running"] != got["starts"]-1 {
		t.Errorf("the metrics are %v", got)
	}
	for name, want := range map[string]int64{"starts": 3, "terms": 1, "refused": 1, "late": 0} {
		if n, is := got[name]; !is || n != want {
			t.Errorf("%s is %d of %v", name, n, got)
		}
	}
	locktest.Check(t, a.d.Leave(t.Context()))
	if got := collect(); len(got) > 0 {
		t.Errorf("after Leave the metrics are %v", got)
	}
}

// The table in docs/operate.md has every metric as it is made.
func TestMetrics_AreDocumented(t *testing.T) {
	text := locktest.Must(os.ReadFile("../docs/operate.md"))(t)
	for _, one := range instruments {
		row := fmt.Sprintf("| `lockkeeper.grains.%s` | %s | | %s |", one.name, map[bool]string{true: "up-down counter", false: "counter"}[one.upDown], one.text)
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/operate.md should have\n%s", row)
		}
	}
}
