package observe

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The table in docs/operate.md has every metric as it is made. The module grains makes its own.
func TestMetrics_AreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented string
	for line := range strings.Lines(string(text)) {
		grains := strings.HasPrefix(line, "| `lockkeeper.grains.")
		if strings.HasPrefix(line, "| `lockkeeper.") && !grains && strings.Count(line, "|") == 5 {
			documented += line
		}
	}
	var made string
	for _, d := range described {
		attributes := map[string]bool{kindAttribute: d.kinded, scriptAttribute: d.script, d.what: d.what != ""}
		var names []string
		for _, name := range []string{kindAttribute, scriptAttribute, wayAttribute, reasonAttribute, resultAttribute} {
			if attributes[name] {
				names = append(names, "`"+strings.TrimPrefix(name, "lockkeeper.")+"` ")
			}
		}
		form := [...]string{counter: "counter", upDown: "up-down counter", seconds: "histogram, s"}[d.form]
		made += fmt.Sprintf("| `lockkeeper.%s` | %s | %s| %s |\n", d.name, form, strings.ReplaceAll(strings.Join(names, ", "), " , ", ", "), d.text)
	}
	if documented != made {
		t.Errorf("docs/operate.md has\n%s\nand should have\n%s", documented, made)
	}
}

// Each reason has its own number among the words, and no way or result has it.
func TestWords_BeginWithTheReasons(t *testing.T) {
	for number, name := range messages.Reason_name {
		if got := word(number).String(); got != reasonWord(machine.Reason(number)) {
			t.Errorf("%s has the word %s", name, got)
		}
	}
	if byRedis.String() != "redis" {
		t.Errorf("the first word behind the reasons is %v", byRedis)
	}
}

type countingMeter struct {
	noop.Meter
	add func(name string, n int64, attributes attribute.Set)
}

func (m countingMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return countingCounter{add: func(n int64, a attribute.Set) { m.add(name, n, a) }}, nil
}

func (m countingMeter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return countingHistogram{add: func(a attribute.Set) { m.add(name, 1, a) }}, nil
}

type countingCounter struct {
	noop.Int64Counter
	add func(n int64, attributes attribute.Set)
}

func (c countingCounter) Add(_ context.Context, n int64, options ...metric.AddOption) {
	c.add(n, metric.NewAddConfig(options).Attributes())
}

type countingHistogram struct {
	noop.Float64Histogram
	add func(attributes attribute.Set)
}

func (c countingHistogram) Record(_ context.Context, _ float64, options ...metric.RecordOption) {
	c.add(metric.NewRecordConfig(options).Attributes())
}

// Whatever happens while the meter blocks is counted when it moves again; of the values of
// histograms a bounded number is kept, and the others are counted. Of many waits there is a sample.
func TestMeter_ThatBlocksMissesNothing(t *testing.T) {
	entered, gate := make(chan struct{}, 1), make(chan struct{})
	counted := map[string]int64{}
	var once sync.Once
	h := host.New(nil, slog.New(slog.DiscardHandler))
	m := newMetrics(countingMeter{add: func(name string, n int64, a attribute.Set) {
		once.Do(func() { entered <- struct{}{}; <-gate })
		counted[name+" "+a.Encoded(attribute.DefaultEncoder())] += n
	}}, h)
	const kind = messages.Kind_KIND_READ_WRITE
	o := &Observer{metrics: m}
	l := o.Lock("")
	const n = 2 * maxValues
	o.Refused(99, machine.Invalid)
	<-entered
	for i := range n {
		l.measureAnswer(Request{Kind: kind}, 0, &machine.Answer{Kind: machine.Granted, HandedOff: i%2 == 0})
		l.measureLoss(kind, machine.QueueFull)
		l.measureLoss(kind, machine.Closed)
		l.giveMeasured()
	}
	const sampled = fewValues + 6*fewValues/2 // n is fewValues, doubled six times
	const scripts = maxValues / sampled       // with the waits they are too many
	for range n {
		for i := range scripts {
			m.called(fmt.Sprint("script", i), done, 1)
		}
	}
	close(gate)
	redistest.Eventually(t, "the meter to have everything", h.Flush)
	labels := "lockkeeper.kind=read_write,lockkeeper."
	for what, want := range map[string]int64{
		"lockkeeper.grants " + labels + "way=hand_off": n / 2, "lockkeeper.grants " + labels + "way=redis": n / 2,
		"lockkeeper.losses " + labels + "reason=queue_full": n, "lockkeeper.losses " + labels + "reason=closed": 0,
		"lockkeeper.wait.duration " + labels + "result=granted":                           sampled,
		"lockkeeper.redis.calls lockkeeper.result=done,lockkeeper.script=script0":         n,
		"lockkeeper.redis.call.duration lockkeeper.result=done,lockkeeper.script=script0": sampled - sampled/scripts,
		"lockkeeper.missed ": sampled,
		"lockkeeper.refusals lockkeeper.kind=unknown,lockkeeper.reason=invalid": 1,
	} {
		if counted[what] != want {
			t.Errorf("%s: %d were counted, want %d", what, counted[what], want)
		}
	}
}

// A meter gets once more what it panics at, and a sum with the next flush, too. No other measurement is missed over that.
func TestMeter_ThatPanicsMissesNothing(t *testing.T) {
	const wait, granted, lost = "lockkeeper.wait.duration", "lockkeeper.grants", "lockkeeper.losses"
	for when, c := range map[string]struct {
		panics func(name string, call, flush int) bool
		want   map[string]int64
	}{
		"once":                    {func(_ string, call, _ int) bool { return call == 1 }, map[string]int64{wait: 3, granted: 3, lost: 3}},
		"for a while":             {func(name string, _, flush int) bool { return name == granted && flush < 2 }, map[string]int64{wait: 3, granted: 3, lost: 3}},
		"always at one histogram": {func(name string, _, _ int) bool { return name == wait }, map[string]int64{granted: 3, lost: 3, "lockkeeper.missed": 2}},
	} {
		t.Run(when, func(t *testing.T) {
			calls, flush := 0, 0
			counted := map[string]int64{}
			h := host.New(nil, slog.New(slog.DiscardHandler))
			m := newMetrics(countingMeter{add: func(name string, n int64, _ attribute.Set) {
				if calls++; c.panics(name, calls, flush) {
					panic("from the meter")
				}
				counted[name] += n
			}}, h)
			l := (&Observer{metrics: m}).Lock("")
			for ; flush < 3; flush++ {
				l.measureAnswer(Request{}, 0, &machine.Answer{Kind: machine.Granted})
				l.measureLoss(0, machine.QueueFull)
				l.giveMeasured()
				redistest.Eventually(t, "the meter to have everything", h.Flush)
			}
			if !maps.Equal(counted, c.want) {
				t.Errorf("counted %v, want %v", counted, c.want)
			}
		})
	}
}
