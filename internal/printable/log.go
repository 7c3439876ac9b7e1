package printable

import (
	"context"
	"fmt"
	"log/slog"
)

// Logger returns a logger that applies Text to the message and to the values of the attributes, also to errors and
// lists. A value whose text has no hidden characters keeps its type.
func Logger(logger *slog.Logger) *slog.Logger { return slog.New(handler{logger.Handler()}) }

type handler struct{ next slog.Handler }

// Enabled implements slog.Handler.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	shown := slog.NewRecord(r.Time, r.Level, Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		shown.AddAttrs(attribute(a))
		return true
	})
	return h.next.Handle(ctx, shown)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.next.WithAttrs(attributes(attrs))}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.next.WithGroup(name)} }

func attributes(attrs []slog.Attr) []slog.Attr {
	shown := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		shown[i] = attribute(a)
	}
	return shown
}

func attribute(a slog.Attr) slog.Attr {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindGroup:
		value = slog.GroupValue(attributes(value.Group())...)
	case slog.KindString, slog.KindAny:
		text := fmt.Sprint(value.Any())
		if shown := Text(text); shown != text {
			value = slog.StringValue(shown)
		}
	}
	return slog.Attr{Key: a.Key, Value: value}
}
