package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// changing is a log handler that changes the attributes that it is given, as it may.
type changing struct{ slog.Handler }

func (h changing) WithAttrs(attrs []slog.Attr) slog.Handler {
	for i := range attrs {
		attrs[i].Key += "!"
	}
	return changing{h.Handler.WithAttrs(attrs)}
}

func (h changing) WithGroup(name string) slog.Handler { return changing{h.Handler.WithGroup(name)} }

// Each line has its attributes, whatever the host's handler does with the attributes of another line.
func TestHandler_LinesHaveTheirAttributes(t *testing.T) {
	var written bytes.Buffer
	h := NewHandler(slog.New(changing{slog.NewTextHandler(&written, nil)}))
	log := slog.New(h).With("lib", "actors")
	log.Info("one", "n", 6)
	log.WithGroup("to").Warn("two", "n", 7)
	h.Flush()
	for i, want := range []string{"msg=one lib!=actors n=6", "msg=two lib!=actors to.n=7"} {
		if lines := strings.Split(written.String(), "\n"); !strings.HasSuffix(lines[i], want) {
			t.Errorf("logged %q, want %q", lines[i], want)
		}
	}
}

// The text of a value is taken when a line is logged, and not when the host gets it.
func TestHandler_TakesTheTextAtOnce(t *testing.T) {
	var written bytes.Buffer
	h := NewHandler(slog.New(slog.NewTextHandler(&written, nil)))
	list, gate := []int{1}, make(chan struct{})
	h.queue.add(func() { <-gate }, nil)
	slog.New(h).Info("one", "list", list, slog.Group("in", "list", list))
	list[0] = 2
	close(gate)
	h.Flush()
	if want := "list=[1] in.list=[1]\n"; !strings.HasSuffix(written.String(), want) {
		t.Errorf("logged %q, want %q", written.String(), want)
	}
}
