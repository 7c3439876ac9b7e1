package redistest

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// FakeServer is a server that accepts clients and subscriptions, and replies to every script
// and to PUBSUB as the test sets.
type FakeServer struct {
	// Version is its Redis version; a test may change it before the first client.
	Version string

	listener net.Listener

	mu    sync.Mutex
	reply string
	cut   int
}

// NewFakeServer starts a fake server, which ends with the test. Its clients must end before.
func NewFakeServer(t testing.TB) *FakeServer {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatalf("redistest: fake server: %v", err)
	}
	i := &FakeServer{listener: l, Version: "7.2.0"}
	var wg sync.WaitGroup
	wg.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			wg.Go(func() { i.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return i
}

// URL is the server's address as redis://host:port.
func (i *FakeServer) URL() string { return "redis://" + i.listener.Addr().String() }

// Answer sets the reply from now on. If cut is not 0, at most cut bytes of it are sent before
// the connection ends.
func (i *FakeServer) Answer(reply string, cut int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reply, i.cut = reply, cut
}

func (i *FakeServer) serve(conn net.Conn) {
	defer conn.Close()
	for frames := rig.NewReader(conn); ; {
		f, err := frames.Next()
		if err != nil || len(f.Elems) == 0 {
			return
		}
		words, end := f.Words(), false
		reply := "+OK\r\n"
		switch strings.ToUpper(words[0]) {
		case "HELLO":
			reply = "%2\r\n+version\r\n+" + i.Version + "\r\n+proto\r\n:3\r\n"
		case "PING":
			reply = "+PONG\r\n"
		case "CLUSTER":
			reply = "-ERR This instance has cluster support disabled\r\n"
		case "SUBSCRIBE":
			reply = ""
			for n, channel := range words[1:] {
				reply += fmt.Sprintf(">3\r\n+subscribe\r\n$%d\r\n%s\r\n:%d\r\n", len(channel), channel, n+1)
			}
		case "EVAL", "EVALSHA", "PUBSUB":
			i.mu.Lock()
			reply = i.reply
			if end = 0 < i.cut && i.cut < len(reply); end {
				reply = reply[:i.cut]
			}
			i.mu.Unlock()
		}
		if _, err := io.WriteString(conn, reply); err != nil || end {
			return
		}
	}
}
