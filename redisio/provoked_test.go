package redisio

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// run runs a script and waits for its reply.
func run(t *testing.T, r *Redis, script *scripts.Script, keys []string, args ...string) Reply {
	t.Helper()
	in := newInbox()
	r.Run(Call{Script: script, Keys: keys, Args: args, Deadline: soon(), To: in})
	return in.await(t, 0)
}

func acquire(t *testing.T, r *Redis, key string) Reply {
	t.Helper()
	return run(t, r, scripts.Acquire, []string{key}, "a", "1", "30000")
}

func release(t *testing.T, r *Redis, key string) Reply {
	t.Helper()
	return run(t, r, scripts.Release, []string{key}, "a", "0", "30000", Channel(key))
}

// refused expects that the script is refused, and as certainly as it says that it
// has changed nothing.
func refused(t *testing.T, s *redistest.Server, client rueidis.Client, want class) {
	t.Helper()
	key := redistest.Name(t)
	expect(t, t.Name(), acquire(t, open(t, client), key).Err, want)
	if n, err := s.Do(t, "EXISTS", key).AsInt64(); err == nil && n != 0 {
		t.Error("the script has run")
	}
}

func do(t *testing.T, s *redistest.Server, words ...string) {
	t.Helper()
	if err := s.Do(t, words...).Error(); err != nil {
		t.Fatalf("%s: %v", words, err)
	}
}

func TestWrongType(t *testing.T) {
	s := redistest.Shared(t)
	key := redistest.Name(t)
	do(t, s, "SET", key, "x")
	r := open(t, connect(t, s.URL()))
	expect(t, "acquire", acquire(t, r, key).Err, hinted("choose another name"))
	expect(t, "release", release(t, r, key).Err, hinted("choose another name"))
}

func TestScriptThatDoesNotCompile(t *testing.T) {
	r := open(t, connect(t, redistest.Shared(t).URL()))
	expect(t, "nonsense", run(t, r, lua("this is nonsense", number), nil).Err, lasting)
}

func TestNoScripts(t *testing.T) {
	s := redistest.Start(t, "--rename-command", "EVALSHA", "")
	refused(t, s, connect(t, s.URL()), lasting)
}

func TestReadOnlyReplica(t *testing.T) {
	s := redistest.Start(t, "--replicaof", "127.0.0.1 1")
	refused(t, s, connect(t, s.URL()), passing)
}

func TestReplicaWithoutItsMaster(t *testing.T) {
	s := redistest.Start(t, "--replicaof", "127.0.0.1 1", "--replica-serve-stale-data", "no")
	refused(t, s, connect(t, s.URL()), passing)
}

func TestTooFewReplicas(t *testing.T) {
	s := redistest.Start(t, "--min-replicas-to-write", "1")
	refused(t, s, connect(t, s.URL()), passing)
}

// A full Redis takes no new locks, but those that are held can be renewed and released.
func TestOutOfMemory(t *testing.T) {
	s := redistest.Start(t)
	client := connect(t, s.URL())
	r := open(t, client)
	held := redistest.Name(t)
	if reply := acquire(t, r, held); reply.Err != nil {
		t.Fatal(reply.Err)
	}
	do(t, s, "CONFIG", "SET", "maxmemory", "1")
	refused(t, s, client, passing)
	if reply := run(t, r, scripts.Renew, []string{held}, "a", "30000"); reply.Err != nil || reply.N[0] != 1 {
		t.Errorf("renew: %+v", reply)
	}
	if reply := release(t, r, held); reply != (Reply{}) {
		t.Errorf("release: %+v", reply)
	}
}

func TestSnapshotsFail(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := redistest.Start(t, "--save", "3600 1", "--dir", dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	do(t, s, "BGSAVE")
	redistest.Eventually(t, "the snapshot to fail", func() bool { return s.Do(t, "SET", "k", "v").Error() != nil })
	refused(t, s, connect(t, s.URL()), passing)
}

// keepBusy keeps the server busy with a script until the result is called. The server
// must have been started with a short lua-time-limit.
func keepBusy(t *testing.T, s *redistest.Server) (end func()) {
	t.Helper()
	client, done := connect(t, s.URL()), make(chan error)
	go func() {
		done <- client.Do(t.Context(), client.B().Eval().Script("while true do end").Numkeys(0).Build()).Error()
	}()
	redistest.Eventually(t, "the server to be busy", func() bool { return s.Do(t, "PING").Error() != nil })
	return func() {
		do(t, s, "SCRIPT", "KILL")
		if err := <-done; err == nil {
			t.Error("the script was not killed")
		}
	}
}

func TestBusyWithAScript(t *testing.T) {
	s := redistest.Start(t, "--lua-time-limit", "10")
	client := connect(t, s.URL())
	end := keepBusy(t, s)
	expect(t, "busy", acquire(t, open(t, client), "k").Err, passing)
	end()
	if n, err := s.Do(t, "EXISTS", "k").AsInt64(); err != nil || n != 0 {
		t.Error("the refused script has run", err)
	}
}

func TestLoading(t *testing.T) {
	s := redistest.Start(t, "--enable-debug-command", "yes",
		"--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
	client := connect(t, s.URL())
	do(t, s, "DEBUG", "POPULATE", "100000")
	reload := connect(t, s.URL())
	done := make(chan error)
	go func() { done <- reload.Do(t.Context(), reload.B().Arbitrary("DEBUG", "RELOAD").Build()).Error() }()
	redistest.Eventually(t, "the server to load", func() bool { return s.Do(t, "PING").Error() != nil })
	expect(t, "loading", acquire(t, open(t, client), "k").Err, passing)
	s.Kill(t)
	<-done
}

func TestTooManyClients(t *testing.T) {
	s := redistest.Start(t, "--maxclients", "1")
	do(t, s, "PING") // takes the only place
	client, err := Connect(s.URL())
	if err == nil {
		client.Close()
		t.Fatal("connected")
	}
	// The connection may be cut before Redis's words are read.
	if sorted := Sort(err); !sorted.Transient {
		t.Errorf("%v", err)
	}
}

// A client that is closed under a call leaves it open whether the script has run.
