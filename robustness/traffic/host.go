package traffic

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lockkeeper-go/lockkeeper"
)

// Host is what the callbacks of a process do: its logger, its meter, its subscriber to
// proto.actor's event stream and its at-risk functions.
type Host struct{ Logger, Meter, Events, AtRisk CallbackMode }

// CallbackMode is what a callback does.
type CallbackMode string

// The modes. A callback blocks for longer than any tolerance of the judge, and long enough
// for a lease of the watchdog to end.
const (
	Behaves CallbackMode = ""
	Blocks  CallbackMode = "blocks"
	Panics  CallbackMode = "panics"
)

// RandomHost draws a host, each of whose callbacks misbehaves with probability 1/2.
func RandomHost(random *rand.Rand) Host {
	modes := []CallbackMode{Behaves, Behaves, Blocks, Panics}
	one := func() CallbackMode { return modes[random.IntN(len(modes))] }
	return Host{one(), one(), one(), one()}
}

// run is one call of a callback; lease is the watchdog's TTL.
func (m CallbackMode) run(lease time.Duration) {
	switch m {
	case Blocks:
		time.Sleep(3 * lease)
	case Panics:
		panic("a callback of the host panics on demand")
	}
}

// configure sets up the callbacks of a System.
func (h Host) configure(config *lockkeeper.Config, actors *actor.ActorSystem) {
	lease := config.Watchdog
	if h.Logger != Behaves {
		config.Logger = slog.New(logging{func() { h.Logger.run(lease) }})
	}
	if h.Meter != Behaves {
		config.Meter = measuring{run: func() { h.Meter.run(lease) }}
	}
	if h.Events != Behaves {
		actors.EventStream.Subscribe(func(event any) {
			if _, ok := event.(*actor.SupervisorEvent); ok {
				h.Events.run(lease)
			}
		})
	}
}

// options are the options of every request.
func (h Host) options(lease time.Duration) []lockkeeper.Option {
	if h.AtRisk == Behaves {
		return nil
	}
	return []lockkeeper.Option{lockkeeper.WithAtRisk(func(time.Duration) { h.AtRisk.run(lease) })}
}

// logging is a slog.Handler.
type logging struct{ run func() }

func (logging) Enabled(context.Context, slog.Level) bool { return true }
func (l logging) Handle(context.Context, slog.Record) error {
	l.run()
	return nil
}
func (l logging) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l logging) WithGroup(string) slog.Handler      { return l }

// measuring is a metric.Meter.
type measuring struct {
	noop.Meter
	run func()
}

func (m measuring) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counting{run: m.run}, nil
}

func (m measuring) Int64UpDownCounter(string, ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return countingBoth{run: m.run}, nil
}

type counting struct {
	noop.Int64Counter
	run func()
}

func (c counting) Add(context.Context, int64, ...metric.AddOption) { c.run() }

type countingBoth struct {
	noop.Int64UpDownCounter
	run func()
}

func (c countingBoth) Add(context.Context, int64, ...metric.AddOption) { c.run() }
