package fleet_test

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
)

// link forwards connections to an address. While its hole is locked, it forwards nothing.
type link struct {
	net.Listener
	target string
	hole   sync.RWMutex
	mu     sync.Mutex
	conns  []net.Conn
}

// forward copies what comes.
func (l *link) forward(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.hole.RLock()
		_, failed := to.Write(buffer[:n])
		l.hole.RUnlock()
		if err != nil || failed != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

func newLink(t *testing.T) *link { return newLinkTo(t, fmt.Sprint("127.0.0.1:", freePort(t))) }

func newLinkTo(t *testing.T, target string) *link {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{target: target, Listener: listener}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", l.target)
			if err != nil {
				_ = from.Close()
				continue
			}
			l.mu.Lock()
			l.conns = append(l.conns, from, to)
			l.mu.Unlock()
			go l.forward(to, from)
			go l.forward(from, to)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); l.cut() })
	return l
}

func (l *link) address() string { return l.Addr().String() }

// port returns the port of the target.
func (l *link) port() int {
	_, text, _ := net.SplitHostPort(l.target)
	port, _ := strconv.Atoi(text)
	return port
}

// cut breaks all connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}
