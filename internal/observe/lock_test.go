package observe

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// To measure a grant and its end allocates nothing.
func TestLock_MeasuresWithoutAllocating(t *testing.T) {
	h := host.New(nil, slog.New(slog.DiscardHandler))
	o := New(Config{Host: h, Meter: noop.Meter{}})
	o.metrics.asked = true // the host's queue is not what is tested
	l := o.Lock("orders")
	a := &machine.Answer{Kind: machine.Granted}
	var ref any = a
	if n := testing.AllocsPerRun(1000, func() {
		l.Answered(Request{}, 1, a)
		l.StepEnded(1, 0, messages.Kind_KIND_REENTRANT)
		l.HoldEnded(Request{}, ref, 1)
		l.StepEnded(0, 0, messages.Kind_KIND_REENTRANT)
	}); n > 0 {
		t.Errorf("a grant allocates %v times", n)
	}
}

// Of the holds that Close ends, the first few have a line each, and the others one line together.
func TestLock_LogsFewHoldsThatCloseEnds(t *testing.T) {
	var log bytes.Buffer
	h := host.New(nil, slog.New(slog.NewTextHandler(&log, nil)))
	o := New(Config{Host: h, Now: func() machine.Instant { return 0 }})
	l := o.Lock("orders")
	hold := Hold{Kind: messages.Kind_KIND_FAIR, Client: "c", Term: 7, Age: 1234 * time.Microsecond}
	l.Lost(hold, machine.Gone, "the key is gone", false)
	for range closeLines + 3 {
		l.Lost(hold, machine.Closed, "the system is closing", true)
	}
	o.Closed()
	if !h.Drain() {
		t.Fatal("the log is not written")
	}
	got := log.String()
	const lost = `level=WARN msg="lease lost" lock=orders kind=fair owner=c:7 term=7 age=1ms reason=gone detail="the key is gone"`
	if !strings.Contains(got, lost) {
		t.Errorf("there is no line %q in\n%s", lost, got)
	}
	if n := strings.Count(got, "reason=closed"); n != closeLines || !strings.Contains(got, `msg="Close has ended more holds" more=3`) {
		t.Errorf("%d holds that Close ended have a line:\n%s", n, got)
	}
}
