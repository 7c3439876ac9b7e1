package redistest

import (
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// Server is a redis-server that a test started.
type Server struct {
	*rig.Server
	args []string

	mu      sync.Mutex // guards what follows
	client  rueidis.Client
	stopped bool
}

// Start starts a redis-server on a free port of 127.0.0.1 that keeps nothing on
// disk, waits until it answers, and stops it when the test ends. args are further
// options of redis-server, e.g. "--requirepass", "secret".
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := start(args)
	check(t, err)
	t.Cleanup(s.Stop)
	return s
}

func start(args []string) (*Server, error) {
	s, err := rig.Start(rig.Options{Args: args})
	return &Server{Server: s, args: args}, err
}

// keep makes a test stop a server.
func keep(t testing.TB, started *rig.Server) *Server {
	s := &Server{Server: started}
	t.Cleanup(s.Stop)
	return s
}

// Kill kills the server (SIGKILL) and waits until it has ended. Its data is lost.
func (s *Server) Kill(testing.TB) { s.Server.Kill() }

// Restart kills the server, if it still runs, and starts it again, empty, on the
// same port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	check(t, s.Server.Restart())
	s.mu.Lock()
	defer s.mu.Unlock()
	// A client may have just lost its connection.
	if s.client != nil && !rig.Poll(Limit, func() bool { return run(s.client, "PING").Error() == nil }) {
		t.Fatalf("redistest: restart of %s: no answer", s.Addr())
	}
}

// Pause stops the server's process (SIGSTOP): connections stay open without answers
// until [Server.Resume].
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	check(t, s.Signal(SigPause))
}

// Resume continues a paused server (SIGCONT).
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	check(t, s.Signal(SigResume))
}

// Stop ends the server, paused or not, for good. It may be called repeatedly.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.Server.Stop() // before the client is closed, which would wait for a paused server
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}
