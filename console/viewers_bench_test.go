//go:build unix

package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

// eventWriter receives a stream of events, and reports each of them.
type eventWriter struct {
	http.ResponseWriter
	flushed chan struct{}
	ended   <-chan struct{}
}

// Flush implements http.Flusher.
func (w *eventWriter) Flush() {
	select {
	case w.flushed <- struct{}{}:
	case <-w.ended:
	}
}

// Write implements http.ResponseWriter. It keeps nothing.
func (w *eventWriter) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkViewers measures the processor time of one refresh and its pages, with 10,000 held locks. There is a refresh
// every 2 s, so the time per operation is not meaningful.
func BenchmarkViewers(b *testing.B) {
	s, _ := locktest.NewOnOwnServer(b, patient("shop"))
	for i := range 10_000 {
		locktest.Acquire(b, s.Lock(fmt.Sprintf("lock-%05d", i)))
	}
	for _, viewers := range []int{1, 50} {
		for what, path := range map[string]string{"same": "/events?q=lock", "different": "/events?q=lock&page=%d"} {
			b.Run(fmt.Sprintf("viewers=%d/queries=%s", viewers, what), func(b *testing.B) {
				h := console.Handler(s.System)
				ctx, cancel := context.WithCancel(b.Context())
				ended := make(chan struct{}, viewers)
				all := make([]*eventWriter, viewers)
				for i := range all {
					all[i] = &eventWriter{httptest.NewRecorder(), make(chan struct{}), ctx.Done()}
					url := "http://localhost" + path
					if what == "different" {
						url = fmt.Sprintf(url, i)
					}
					go func() {
						h.ServeHTTP(all[i], httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil))
						ended <- struct{}{}
					}()
				}
				next := func() {
					for _, w := range all {
						<-w.flushed
					}
				}
				next()
				before := processorTime(b)
				for b.Loop() {
					next()
				}
				b.ReportMetric((processorTime(b)-before)/float64(b.N), "cpu-ms/look")
				cancel()
				for range all {
					<-ended
				}
			})
		}
	}
}

// processorTime returns the processor time of this process, in ms.
func processorTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}
