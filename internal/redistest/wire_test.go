package redistest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"
)

// wire is a client that pipelines by hand: it sends requests and reads frames.
type wire struct {
	t    *testing.T
	conn net.Conn
	in   *frameReader
}

func dial(t *testing.T, addr string) *wire {
	t.Helper()
	conn := must[net.Conn](t, "dial")(net.Dial("tcp", addr))
	t.Cleanup(func() { conn.Close() })
	return &wire{t: t, conn: conn, in: newFrameReader(conn)}
}

// send sends a request.
func (w *wire) send(words ...string) {
	w.t.Helper()
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	must[int](w.t, "send")(w.conn.Write(b))
}

// ask sends a request, and reads one frame.
func (w *wire) ask(words ...string) string {
	w.t.Helper()
	w.send(words...)
	return must[frame](w.t, words[0])(w.next(Limit)).text()
}

func (w *wire) next(limit time.Duration) (frame, error) {
	_ = w.conn.SetReadDeadline(time.Now().Add(limit))
	return w.in.next()
}

// expect expects these frames, as texts.
func (w *wire) expect(want ...string) {
	w.t.Helper()
	for _, text := range want {
		if f, err := w.next(Limit); err != nil || f.text() != text {
			w.t.Errorf("read %q and %v, want %q", f.text(), err, text)
		}
	}
}

// expectEnd expects that the connection ends, and nothing but pushes before.
func (w *wire) expectEnd() {
	w.t.Helper()
	f, err := w.next(Limit)
	for err == nil && f.kind == '>' {
		f, err = w.next(Limit)
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Errorf("read %q and %v, want the end", f.text(), err)
	}
}

// expectSilence expects that for a while nothing comes and the connection stays.
// The read that timed out is no harm to the next: nothing was read.
func (w *wire) expectSilence() {
	w.t.Helper()
	if f, err := w.next(50 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Errorf("read %q and %v, want nothing", f.text(), err)
	}
}
