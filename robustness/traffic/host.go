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

// Host is how a process treats the library that it hosts: what its logger, its meter, its
// subscriber to proto.actor's event stream and its at-risk functions do.
type Host struct{ Logger, Meter, Events, AtRisk Manner }

// Manner is what a callback does.
type Manner string

// The manners. Who blocks does so for longer than any tolerance of the judge's, and long
// enough for a lease of the watchdog's to end.
const (
	Behaves Manner = ""
	Blocks  Manner = "blocks"
	Panics  Manner = "panics"
)

// RandomHost draws a host: each of its callbacks misbehaves once in two lives.
func RandomHost(random *rand.Rand) Host {
	manners := []Manner{Behaves, Behaves, Blocks, Panics}
	one := func() Manner { return manners[random.IntN(len(manners))] }
	return Host{one(), one(), one(), one()}
}

// act is a call of a callback, in a process whose watchdog's TTL is known.
func (m Manner) act(lease time.Duration) {
	switch m {
	case Blocks:
		time.Sleep(3 * lease)
	case Panics:
		panic("a callback of the host panics on demand")
	}
}

// into sets the callbacks up that belong to a System.
func (h Host) into(config *lockkeeper.Config, actors *actor.ActorSystem) {
	lease := config.Watchdog
	if h.Logger != Behaves {
		config.Logger = slog.New(logging{func() { h.Logger.act(lease) }})
	}
	if h.Meter != Behaves {
		config.Meter = measuring{act: func() { h.Meter.act(lease) }}
	}
	if h.Events != Behaves {
		actors.EventStream.Subscribe(func(event any) {
			if _, ok := event.(*actor.SupervisorEvent); ok {
				h.Events.act(lease)
			}
		})
	}
}

// options are those of every request.
func (h Host) options(lease time.Duration) []lockkeeper.Option {
	if h.AtRisk == Behaves {
		return nil
	}
	return []lockkeeper.Option{lockkeeper.WithAtRisk(func(time.Duration) { h.AtRisk.act(lease) })}
}

// logging is a handler of log lines.
type logging struct{ act func() }

func (logging) Enabled(context.Context, slog.Level) bool { return true }
func (l logging) Handle(context.Context, slog.Record) error {
	l.act()
	return nil
}
func (l logging) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l logging) WithGroup(string) slog.Handler      { return l }

// measuring is a meter.
type measuring struct {
	noop.Meter
	act func()
}

func (m measuring) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counting{act: m.act}, nil
}

func (m measuring) Int64UpDownCounter(string, ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return countingBoth{act: m.act}, nil
}

type counting struct {
	noop.Int64Counter
	act func()
}

func (c counting) Add(context.Context, int64, ...metric.AddOption) { c.act() }

type countingBoth struct {
	noop.Int64UpDownCounter
	act func()
}

func (c countingBoth) Add(context.Context, int64, ...metric.AddOption) { c.act() }
