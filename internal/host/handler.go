package host

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Handler passes log records on to the handler of the host program, on a goroutine that does nothing else. An actor
// system would otherwise log on the goroutine of its caller.
type Handler struct {
	queue *queue
	host  func() slog.Handler // may block or panic
}

// NewHandler returns a Handler in front of the handler of a logger.
func NewHandler(logger *slog.Logger) *Handler {
	return &Handler{queue: &queue{}, host: logger.Handler}
}

// Flush waits until the host has taken all records, for at most CloseGrace.
func (h *Handler) Flush() {
	over := time.NewTimer(CloseGrace)
	defer over.Stop()
	select {
	case <-h.queue.emptied():
	case <-over.C:
	}
}

// Enabled implements slog.Handler. The handler of the host is asked later; lines for debugging would cost too much.
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler. The host gets the text of a value that may change.
func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	fixed := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		fixed.AddAttrs(unchanging(a))
		return true
	})
	h.queue.add(func() {
		if to := h.host(); to.Enabled(context.Background(), fixed.Level) {
			_ = to.Handle(context.Background(), fixed)
		}
	}, func(n int, _ any) {
		slog.New(h.host()).Warn(droppedLines, "lines", n)
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	fixed := allUnchanging(attrs)
	clone := func() slog.Handler { return h.host().WithAttrs(slices.Clone(fixed)) } // the handler may change them
	return &Handler{queue: h.queue, host: clone}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{queue: h.queue, host: func() slog.Handler { return h.host().WithGroup(name) }}
}

func unchanging(a slog.Attr) slog.Attr {
	switch a.Value = a.Value.Resolve(); a.Value.Kind() {
	case slog.KindAny:
		a.Value = slog.StringValue(fmt.Sprint(a.Value.Any()))
	case slog.KindGroup:
		a.Value = slog.GroupValue(allUnchanging(a.Value.Group())...)
	}
	return a
}

func allUnchanging(attrs []slog.Attr) []slog.Attr {
	fixed := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		fixed[i] = unchanging(a)
	}
	return fixed
}
