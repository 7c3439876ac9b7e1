package messages

import (
	"log/slog"
	"strings"
)

// LogValue implements slog.LogValuer: the name in lower case, such as "timed_out".
func (x Reason) LogValue() slog.Value {
	return slog.StringValue(strings.ToLower(strings.TrimPrefix(x.String(), "REASON_")))
}

// LogValue implements slog.LogValuer: the word of docs/operate.md#metrics, such as "plain" or "read_write".
func (x Kind) LogValue() slog.Value {
	return slog.StringValue(strings.ToLower(strings.TrimPrefix(x.String(), "KIND_")))
}
