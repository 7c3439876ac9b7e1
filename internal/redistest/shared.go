//go:build unix

package redistest

import (
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

var shared struct {
	mu     sync.Mutex
	server *Server
}

// Shared gives the one server that the tests of a package share, and starts it for
// the first. The tests keep out of each other's way by names of their own ([Name]).
// Whoever kills or pauses a server, or counts its calls, should [Start] its own.
//
// The package's TestMain must end it: by [Main], or by [StopShared] after m.Run.
func Shared(t testing.TB) *Server {
	t.Helper()
	s, err := startShared()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return s
}

func startShared() (*Server, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		s, err := start(nil)
		if err != nil {
			return nil, err
		}
		shared.server = s
	}
	return shared.server, nil
}

// StopShared stops the shared server, if there is one.
func StopShared() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server != nil {
		shared.server.Stop()
		shared.server = nil
	}
}

// Main is the whole TestMain of a package whose tests use a server: it runs the
// tests, stops the shared server, fails if goroutines are left over, and exits.
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
func Main(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(stopShared{m}, options...)
}

type stopShared struct{ m *testing.M }

func (s stopShared) Run() int {
	defer StopShared()
	return s.m.Run()
}

// SharedURL is the URL of the shared server, for examples, which have no testing.TB. It
// panics if the server cannot be started.
func SharedURL() string {
	s, err := startShared()
	if err != nil {
		panic(fmt.Sprintf("redistest: %v", err))
	}
	return s.URL()
}
