package redistest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

var shared struct {
	mu      sync.Mutex
	servers []*Server
}

// Shared returns the server that the tests of a package share; the first call starts it.
// Each test uses names of its own ([Name]). A test that kills or pauses a server, or counts
// its calls, should [Start] its own.
//
// The package's TestMain must stop it with [Main].
func Shared(t testing.TB) *Server {
	t.Helper()
	return SharedServers(t, 1)[0]
}

// SharedServers returns n independent servers that the tests of a package share; the first is the server of [Shared].
func SharedServers(t testing.TB, n int) []*Server {
	t.Helper()
	servers, err := startShared(n)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return servers
}

func startShared(n int) ([]*Server, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for len(shared.servers) < n {
		s, err := start(nil)
		if err != nil {
			return nil, err
		}
		shared.servers = append(shared.servers, s)
	}
	return slices.Clone(shared.servers[:n]), nil
}

// Main is the whole TestMain of a package whose tests use a server: it runs the
// tests, stops the shared server, fails if goroutines are left over, and exits.
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
func Main(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(runner{m}, options...)
}

type runner struct{ m *testing.M }

func (r runner) Run() int {
	defer func() {
		for _, s := range shared.servers {
			s.Stop()
		}
	}()
	return r.m.Run()
}

// SharedURL is the URL of the shared server, for examples, which have no testing.TB. It
// panics if the server cannot be started.
func SharedURL() string {
	servers, err := startShared(1)
	if err != nil {
		panic(fmt.Sprintf("redistest: %v", err))
	}
	return servers[0].URL()
}
