//go:build unix

package redistest

import (
	"errors"
	"io"
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
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{t: t, conn: conn, in: newFrameReader(conn)}
}

func (w *wire) send(words ...string) {
	w.t.Helper()
	w.sendRaw(request(words...))
}

func (w *wire) sendRaw(b []byte) {
	w.t.Helper()
	if _, err := w.conn.Write(b); err != nil {
		w.t.Fatal(err)
	}
}

// read reads one frame, as its text.
func (w *wire) read() string {
	w.t.Helper()
	w.conn.SetReadDeadline(time.Now().Add(Limit))
	f, err := w.in.next()
	if err != nil {
		w.t.Fatal(err)
	}
	return f.text()
}

func (w *wire) roundTrip(words ...string) string {
	w.t.Helper()
	w.send(words...)
	return w.read()
}

func (w *wire) expect(want string) {
	w.t.Helper()
	if got := w.read(); got != want {
		w.t.Errorf("read %q, want %q", got, want)
	}
}

// expectEnd expects that the connection ends, and nothing before.
func (w *wire) expectEnd() {
	w.t.Helper()
	w.conn.SetReadDeadline(time.Now().Add(Limit))
	f, err := w.in.next()
	if err == nil {
		w.t.Errorf("read %q, want the end", f.text())
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Error("the connection did not end")
	}
}

// expectSilence expects that for a while nothing comes and the connection stays.
// The read that timed out is no harm to the next: nothing was read.
func (w *wire) expectSilence() {
	w.t.Helper()
	w.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	f, err := w.in.next()
	switch {
	case err == nil:
		w.t.Errorf("read %q, want nothing", f.text())
	case errors.Is(err, io.EOF) || !errors.Is(err, os.ErrDeadlineExceeded):
		w.t.Errorf("the connection ended: %v", err)
	}
}
