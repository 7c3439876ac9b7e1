package host

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// logHandler keeps the lines, after it has done what the test wants it to do.
type logHandler struct {
	slog.Handler
	before func(line string)

	mu    sync.Mutex
	lines []string
}

func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	if h.before != nil {
		h.before(r.Message)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	text := []string{r.Message}
	r.Attrs(func(a slog.Attr) bool { text = append(text, a.String()); return true })
	h.lines = append(h.lines, strings.Join(text, " "))
	return nil
}

func (h *logHandler) logged() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

func testHost(before func(line string)) (*Host, *logHandler) {
	handler := &logHandler{before: before}
	return New(nil, slog.New(handler)), handler
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatalf("not within 10s: %s", what)
	}
}

// A handler that blocks delays no caller. The lines come in their order; those for which
// there was no room are counted, and the log says so when it moves again.
func TestLog_ThatBlocksDelaysNoCaller(t *testing.T) {
	entered, gate := make(chan struct{}, 1), make(chan struct{})
	h, log := testHost(func(line string) {
		if line == "first" {
			entered <- struct{}{}
			<-gate
		}
	})
	h.Warn("first")
	await(t, "the handler is called", entered)
	for range queueLimit {
		h.Warn("one more")
	}
	for range 3 {
		h.Error("too many")
	}
	began := time.Now()
	h.Flush()
	if took := time.Since(began); took < CloseGrace {
		t.Errorf("flushed after %v, with the handler blocked", took)
	}
	close(gate)
	await(t, "the queue is empty", h.logs.emptied())
	want := append([]string{"first", "log lines were dropped: the log handler is slower than they come, blocks or panics lines=3"}, slices.Repeat([]string{"one more"}, queueLimit)...)
	if got := log.logged(); !slices.Equal(got, want) {
		t.Errorf("logged %d lines, beginning with %q; want %d", len(got), got[:min(3, len(got))], len(want))
	}
}

// A handler that panics, or ends the goroutine, costs its line, and no other.
func TestLog_ThatPanicsCostsOneLine(t *testing.T) {
	for how, misbehave := range map[string]func(){"panics": func() { panic("the handler") }, "exits": runtime.Goexit} {
		t.Run(how, func(t *testing.T) {
			h, log := testHost(func(line string) {
				if line == "bad" {
					misbehave()
				}
			})
			for _, line := range []string{"a", "bad", "b", "c"} {
				h.Warn(line)
			}
			h.Flush()
			told := func(line string) bool { return strings.HasPrefix(line, "log lines were dropped") }
			got := log.logged()
			if n := slices.IndexFunc(got, told); n < 0 || !slices.Equal(slices.DeleteFunc(got, told), []string{"a", "b", "c"}) {
				t.Errorf("logged %q", got)
			}
		})
	}
}

// A measurement waits for others, but not when many wait, and not at the end.
func TestMeasurements_WaitForOthers(t *testing.T) {
	h, _ := testHost(nil)
	h.meter.batchDelay = time.Hour
	ran := make(chan struct{}, queueLimit)
	measure := func() { h.Measure(func() { ran <- struct{}{} }) }
	for range queueLimit/4 - 1 {
		measure()
	}
	if len(ran) > 0 {
		t.Error("the first measurements did not wait for more")
	}
	measure()
	for range queueLimit / 4 {
		await(t, "many measurements", ran)
	}
	await(t, "the end of the goroutine", h.meter.emptied())
	h.Measure(measure)
	h.Flush()
	await(t, "the last measurement, which came while others were made", ran)

	entered, gate := make(chan struct{}), make(chan struct{})
	h.Measure(func() { entered <- struct{}{}; <-gate })
	h.meter.flushNow()
	await(t, "a measurement that takes a while", entered)
	measure()
	close(gate)
	for waits := false; !waits; {
		select {
		case <-ran:
			t.Fatal("what came while others were made did not wait for more")
		default:
			h.meter.mu.Lock()
			waits = h.meter.timer != nil
			h.meter.mu.Unlock()
		}
	}
	h.Flush()
	await(t, "what came meanwhile", ran)
}
