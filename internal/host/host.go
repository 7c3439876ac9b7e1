// Package host runs the code of the host program where it delays no lock.
package host

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"

	"github.com/lockkeeper-go/lockkeeper/internal/printable"
)

// Host runs the code of the host program: its log handler, its meter, its tracer, its subscribers to the event stream.
// Each may block or panic, so it runs on a goroutine that does nothing else, and holders are notified of a loss first.
type Host struct {
	system *actor.ActorSystem
	logger *slog.Logger

	logs, events, meter, spans queue
}

// New returns the Host of an actor system.
func New(system *actor.ActorSystem, logger *slog.Logger) *Host {
	return &Host{system: system, logger: printable.Logger(logger), meter: queue{batchDelay: batchDelay}, spans: queue{batchDelay: batchDelay}}
}

// Log logs a line. The arguments are as for slog, and must not change afterwards.
func (h *Host) Log(level slog.Level, message string, args ...any) {
	h.logs.add(func() { h.logger.Log(context.Background(), level, message, args...) }, h.reportDroppedLogs)
}

// Report logs a line whose arguments take a while to find out. The function args may block and panic, like the handler.
func (h *Host) Report(level slog.Level, message string, args func() []any) {
	h.logs.add(func() { h.logger.Log(context.Background(), level, message, args()...) }, h.reportDroppedLogs)
}

// Warn logs a line of level Warn.
func (h *Host) Warn(message string, args ...any) { h.Log(slog.LevelWarn, message, args...) }

// Error logs a line of level Error.
func (h *Host) Error(message string, args ...any) { h.Log(slog.LevelError, message, args...) }

const droppedLines = "log lines were dropped: the log handler is slower than they come, blocks or panics"

// reportDroppedLogs logs the number of lines that the handler did not take.
func (h *Host) reportDroppedLogs(n int, _ any) {
	h.logger.Warn(droppedLines, "lines", n)
}

// Publish publishes an event on the event stream.
func (h *Host) Publish(event any) { h.Announce(func() { h.system.EventStream.Publish(event) }) }

// Announce calls f, which publishes events, on a goroutine of the Host.
func (h *Host) Announce(f func()) {
	h.events.add(f, h.reportDropped("a subscriber of the event stream"))
}

// Supervisor returns a strategy that decides like of. A strategy of proto.actor publishes each decision before it
// carries it out, on the goroutine of the supervisor or of a timer. A subscriber that blocked there would keep the
// child from going on for good, and a subscriber that panicked would end the process.
func (h *Host) Supervisor(of actor.SupervisorStrategy) actor.SupervisorStrategy {
	events := eventstream.NewEventStream()
	events.Subscribe(h.Publish)
	return supervisor{of, &actor.ActorSystem{EventStream: events}}
}

// supervisor is a strategy of proto.actor, which uses only the event stream of an actor system.
type supervisor struct {
	actor.SupervisorStrategy
	events *actor.ActorSystem
}

// HandleFailure implements actor.SupervisorStrategy.
func (s supervisor) HandleFailure(_ *actor.ActorSystem, by actor.Supervisor, child *actor.PID, statistics *actor.RestartStatistics,
	reason, message any) {
	s.SupervisorStrategy.HandleFailure(s.events, by, child, statistics, reason, message)
}

// Trace calls f, which makes a span, on a goroutine of the Host.
func (h *Host) Trace(f func()) { h.spans.add(f, h.reportDropped("the tracer")) }

// Measure calls f, which records measurements, on a goroutine of the Host, together with other such functions.
func (h *Host) Measure(f func()) { h.meter.add(f, h.reportDropped("the meter")) }

// FlushMeasures starts the functions that were given to Measure now.
func (h *Host) FlushMeasures() { h.meter.flushNow() }

// TryMeasure calls f, and reports whether f returned. A panic is ended, and counts as a missed call. Only functions
// that were given to Measure may call TryMeasure.
func (h *Host) TryMeasure(f func()) bool { return h.meter.try(f, 1) }

func (h *Host) reportDropped(callee string) func(int, any) {
	return func(n int, panicked any) {
		h.Warn(callee+" is slower than its calls come, blocks or panics, and has missed some calls", "missed", n, "panic", panicked)
	}
}

// Call runs a function of the host program, such as the function of an option, on its own goroutine. A panic in the
// function is logged.
func (h *Host) Call(what string, f func()) {
	go func() {
		defer h.Recover(what + " panicked")
		f()
	}()
}

// Recover, deferred, ends a panic and logs it.
func (h *Host) Recover(message string) {
	if panicked := recover(); panicked != nil {
		h.Error(message, "panic", panicked)
	}
}

// CloseGrace is the time that Close waits for the host to take the last log lines, measurements and events.
const CloseGrace = time.Second

// Flush waits until the host has taken everything, for at most CloseGrace, and reports whether it has.
func (h *Host) Flush() bool {
	over := time.NewTimer(CloseGrace)
	defer over.Stop()
	for _, l := range []*queue{&h.meter, &h.spans, &h.events, &h.logs} { // the logs last: the other queues may add to them
		select {
		case <-l.emptied():
		case <-over.C:
			return false
		}
	}
	return true
}
