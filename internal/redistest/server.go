package redistest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/rueidis"
)

// Server is a redis-server that a test started.
type Server struct {
	args []string
	dir  string
	port int

	mu      sync.Mutex // guards what follows
	proc    *process   // nil while the server is not running
	client  rueidis.Client
	stopped bool
}

// Start starts a redis-server on a free port of 127.0.0.1 that keeps nothing on
// disk, waits until it answers, and stops it when the test ends. args are further
// options of redis-server, e.g. "--requirepass", "secret".
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := start(args)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(s.Stop)
	return s
}

// start starts a server on a port that is free.
func start(args []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		return nil, err
	}
	s := &Server{args: args, dir: dir}
	if s.port, err = onFreePort(func(port int) (err error) {
		s.proc, err = launch(port, s.dir, s.args)
		return err
	}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// Addr is the server's host:port.
func (s *Server) Addr() string { return net.JoinHostPort(host, strconv.Itoa(s.port)) }

// URL is the server's address as redis://host:port, without a password.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Kill kills the server (SIGKILL) and waits until it has ended. Its data is lost.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}

func (s *Server) kill() {
	if s.proc != nil {
		s.proc.kill()
		s.proc = nil
	}
}

// Restart kills the server, if it still runs, and starts it again, empty, on the
// same port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		t.Fatal("redistest: Restart of a server that was stopped")
	}
	s.kill()
	var err error
	poll(Limit, func() bool {
		s.proc, err = launch(s.port, s.dir, s.args)
		return !errors.Is(err, errPortTaken)
	})
	if err != nil {
		t.Fatalf("redistest: restart on port %d: %v", s.port, err)
	}
	// A client may have just lost its connection.
	if s.client != nil && !poll(Limit, func() bool { return run(s.client, "PING").Error() == nil }) {
		t.Fatalf("redistest: restart on port %d: no answer", s.port)
	}
}

// Pause stops the server's process (SIGSTOP): connections stay open without answers
// until [Server.Resume].
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.signal(t, SigPause)
}

// Resume continues a paused server (SIGCONT).
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.signal(t, SigResume)
}

func (s *Server) signal(t testing.TB, sig os.Signal) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		t.Fatalf("redistest: signal %v: the server does not run", sig)
	}
	if err := s.proc.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("redistest: signal %v: %v", sig, err)
	}
}

// Stop ends the server, paused or not, for good. It may be called repeatedly.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped = true
	s.kill() // before the client is closed, which would wait for a paused server
	if s.client != nil {
		s.client.Close()
	}
	if err := os.RemoveAll(s.dir); err != nil {
		fmt.Fprintf(os.Stderr, "redistest: %v\n", err)
	}
}
