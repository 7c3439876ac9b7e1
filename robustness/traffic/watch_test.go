package traffic

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// stand keeps the thread in the kernel with its goroutine and its processor of Go, as if it were not run.
//
//go:nosplit
func stand(d time.Duration) {
	rest := syscall.NsecToTimespec(int64(d))
	for {
		if _, _, err := syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&rest)), uintptr(unsafe.Pointer(&rest)), 0); err == 0 {
			return
		}
	}
}

// The watch sees that one thread stands still although others run.
func TestWatch_SeesAThreadThatStandsStill(t *testing.T) {
	const long = 300 * time.Millisecond
	path := filepath.Join(t.TempDir(), "history")
	out, err := history.Record(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &round{out: out, file: path}
	r.ctx, r.end = context.WithCancel(t.Context())
	began := make(chan struct{})
	r.workers.Go(func() {
		close(began)
		new(client).watch(r)
	})
	<-began // or the thread may stand still before
	stood := make(chan history.Span)
	go func() {
		from := history.Now()
		stand(long)
		stood <- history.Span{From: from, To: history.Now()}
	}()
	span := <-stood
	r.end()
	r.workers.Wait()
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := history.Read(path, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if seen := p.Stalled(span); seen < long/2 {
		t.Errorf("the watch sees %v of %v", seen, span.To-span.From)
	}
}
