//go:build !race

package grains

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	api "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
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

// A member leaves although the meter is held up, by a callback of the host's.
func TestMetrics_HeldUpDelayNoLeave(t *testing.T) {
	t.Parallel()
	f := newFleet(t, redistest.Start(t))
	reader := metric.NewManualReader()
	meter := metric.NewMeterProvider(metric.WithReader(reader)).Meter("test")
	entered, gate := make(chan struct{}, 1), make(chan struct{})
	_, err := meter.Int64ObservableGauge("slow", api.WithInt64Callback(func(context.Context, api.Int64Observer) error {
		entered <- struct{}{}
		<-gate
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	a := f.member(Config{Locks: lockkeeper.Config{Meter: meter}})
	collected, left := make(chan error, 1), make(chan error, 1)
	go func() { collected <- reader.Collect(context.Background(), new(metricdata.ResourceMetrics)) }()
	<-entered
	go func() { left <- a.d.Leave(context.Background()) }()
	select {
	case err = <-left:
	case <-time.After(redistest.Limit):
		err = errors.New("it takes too long")
	}
	close(gate)
	if err := errors.Join(err, <-collected); err != nil {
		t.Error(err)
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
