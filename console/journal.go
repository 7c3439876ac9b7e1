package console

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lockkeeper-go/lockkeeper"
)

// Journal records the log and the counts of a System for the console: the last losses and warnings, even while there is
// no viewer. It has no goroutines, and keeps at most 500 events, and 20 events of one lock.
type Journal struct {
	mu     sync.Mutex // guards events
	events []Event

	grants, refusals, losses atomic.Int64
}

// counts are totals since the start of the System.
type counts struct {
	Grants   int64 `json:"grants"`
	Refusals int64 `json:"refusals"`
	Losses   int64 `json:"losses"`
}

// NewJournal returns an empty Journal; one Journal is for one System.
func NewJournal() *Journal { return &Journal{} }

// Attach returns a Config whose Logger and Meter also record in the Journal:
//
//	journal := console.NewJournal()
//	sys, err := lockkeeper.Open(ctx, url, lockkeeper.WithConfig(journal.Attach(config)))
//	handler := console.Handler(sys, console.WithJournal(journal))
//
// Without a config.Logger nothing else is logged: for New, set it to the logger of the actor system.
func (j *Journal) Attach(config lockkeeper.Config) lockkeeper.Config {
	if j == nil {
		return config
	}
	next := slog.DiscardHandler
	if config.Logger != nil {
		next = config.Logger.Handler()
	}
	config.Logger = slog.New(&writer{journal: j, next: next})
	meter := config.Meter
	if meter == nil {
		meter = noop.Meter{}
	}
	config.Meter = &meterOf{Meter: meter, journal: j}
	return config
}

func (j *Journal) count() *counts {
	return &counts{Grants: j.grants.Load(), Refusals: j.refusals.Load(), Losses: j.losses.Load()}
}

func (j *Journal) read() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// writer is a log handler that adds warnings to a journal.
type writer struct {
	journal *Journal
	next    slog.Handler
}

// Enabled implements slog.Handler.
func (w *writer) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || w.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (w *writer) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		e := eventOf(r)
		w.journal.mu.Lock()
		w.journal.events = keep(w.journal.events, e)
		w.journal.mu.Unlock()
	}
	if !w.next.Enabled(ctx, r.Level) {
		return nil
	}
	return w.next.Handle(ctx, r)
}

// maxText bounds the text of an event, in bytes.
const maxText = 1000

// eventOf converts a log record to an event: the message and the reason, and in brackets the process that holds the
// lock and the other attributes.
func eventOf(r slog.Record) Event {
	e := Event{At: r.Time, Text: r.Message, Grave: true}
	var besides []string
	owner, process := "", ""
	r.Attrs(func(a slog.Attr) bool {
		switch text := a.Value.Resolve().String(); a.Key {
		case "owner":
			owner = "owner " + text
		case "application":
			process = "held by " + text
		case "host":
			process += " on " + text
		case "pid":
			process += ", pid " + text
		case "term": // which only this process knows
			process = "held by this process"
			besides = append(besides, "term "+text)
		case "lock":
			e.Lock = text
		case "reason", "detail", "error":
			if text != "" {
				e.Text += ": " + text
			}
		case "stack": // only for the log
		default:
			besides = append(besides, a.Key+" "+text)
		}
		return true
	})
	if holder := cmp.Or(process, owner); holder != "" {
		besides = append([]string{holder}, besides...)
	}
	if len(besides) > 0 {
		e.Text += " (" + strings.Join(besides, ", ") + ")"
	}
	if len(e.Text) > maxText {
		e.Text = strings.ToValidUTF8(e.Text[:maxText], "") + " …"
	}
	return e
}

// WithAttrs implements slog.Handler.
func (w *writer) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &writer{w.journal, w.next.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (w *writer) WithGroup(name string) slog.Handler {
	return &writer{w.journal, w.next.WithGroup(name)}
}

// meterOf is a meter whose counters also count for a journal.
type meterOf struct {
	metric.Meter
	journal *Journal
}

// Int64Counter implements metric.Meter.
func (m *meterOf) Int64Counter(name string, options ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	next, err := m.Meter.Int64Counter(name, options...)
	if err != nil {
		next = noop.Int64Counter{}
	}
	for of, total := range map[string]*atomic.Int64{
		"lockkeeper.grants": &m.journal.grants, "lockkeeper.refusals": &m.journal.refusals, "lockkeeper.losses": &m.journal.losses,
	} {
		if name == of {
			return &counterOf{next, total}, nil
		}
	}
	return next, err
}

type counterOf struct {
	metric.Int64Counter
	total *atomic.Int64
}

// Add implements metric.Int64Counter.
func (c *counterOf) Add(ctx context.Context, n int64, options ...metric.AddOption) {
	c.total.Add(n)
	c.Int64Counter.Add(ctx, n, options...)
}
