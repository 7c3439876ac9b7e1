package observe

import (
	"log/slog"
	"testing"

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
		l.StepEnded(1, 0, messages.Kind_KIND_PLAIN)
		l.HoldEnded(Request{}, ref, 1)
		l.StepEnded(0, 0, messages.Kind_KIND_PLAIN)
	}); n > 0 {
		t.Errorf("a grant allocates %v times", n)
	}
}
