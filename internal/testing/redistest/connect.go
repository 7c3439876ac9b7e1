package redistest

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Connect returns a client that is closed when the test ends.
func Connect(t testing.TB, url string) rueidis.Client {
	t.Helper()
	client, err := redisio.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// ConnectWith returns a client that the user has opened with options.
func ConnectWith(t testing.TB, addr string, options rueidis.ClientOption) rueidis.Client {
	t.Helper()
	options.InitAddress, options.DisableCache = []string{addr}, true
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// Soon returns a deadline that passes only in a test that fails.
func Soon() time.Time { return time.Now().Add(Limit) }

// KeepBusy keeps the server busy with a script until the result is called. The server
// must have been started with a short lua-time-limit.
func (s *Server) KeepBusy(t testing.TB) (end func()) {
	t.Helper()
	client, done := Connect(t, s.URL()), make(chan error)
	go func() {
		done <- client.Do(t.Context(), client.B().Eval().Script("while true do end").Numkeys(0).Build()).Error()
	}()
	Eventually(t, "the server to be busy", func() bool { return s.Do(t, "PING").Error() != nil })
	return func() {
		s.MustDo(t, "SCRIPT", "KILL")
		if err := <-done; err == nil {
			t.Error("the script was not killed")
		}
	}
}

// FailToSave makes the server refuse to write (MISCONF): the directory for its snapshots is gone.
func (s *Server) FailToSave(t testing.TB) {
	t.Helper()
	dir, err := s.Do(t, "CONFIG", "GET", "dir").AsStrMap()
	if err != nil || os.RemoveAll(dir["dir"]) != nil {
		t.Fatal(err, dir)
	}
	s.MustDo(t, "CONFIG", "SET", "save", "3600 1")
	s.MustDo(t, "BGSAVE")
	Eventually(t, "the snapshot to fail", func() bool { return s.Do(t, "PING").Error() != nil })
}

// User adds a user to the server, and returns the URL with which to log in.
func (s *Server) User(t testing.TB, rules ...string) (url string) {
	t.Helper()
	s.MustDo(t, append(strings.Fields("ACL SETUSER user reset on >secret"), strings.Fields(strings.Join(rules, " "))...)...)
	return "redis://user:secret@" + s.Addr()
}
