package printable_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/printable"
)

// hidden is a text with a control character, one that changes the direction of writing, and an invisible one.
const hidden = "a\x1b[2J\u202eb\u2800"

type valuer struct{}

func (valuer) LogValue() slog.Value { return slog.StringValue(hidden) }

// Texts have no hidden characters anywhere in a log record.
func TestLogger_EscapesHiddenCharacters(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	plain := slog.NewTextHandler(&written, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindString && strings.ContainsAny(a.Value.String(), hidden[1:]) &&
			strings.ContainsAny(a.Value.String(), "\x1b\u202e\u2800") {
			t.Errorf("the handler was given %s = %q", a.Key, a.Value)
		}
		if err, is := a.Value.Any().(error); is && err.Error() != "seen" {
			t.Errorf("the handler was given the error %q", err)
		}
		return a
	}})
	log := printable.Logger(slog.New(plain)).With("with", hidden).WithGroup("group")
	log.Warn(hidden, "text", hidden, "error", errors.New(hidden), "list", []string{hidden}, "value", valuer{}, "seen", errors.New("seen"), "n", 7,
		slog.Group("inner", "text", hidden))
	got := written.String()
	if strings.ContainsAny(got, "\x1b\u202e\u2800") || strings.Count(got, `u202e`) != 7 || !strings.Contains(got, "n=7") {
		t.Errorf("logged: %q", got)
	}
}
