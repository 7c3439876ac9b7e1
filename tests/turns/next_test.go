package turns_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// nextEnv makes the test binary a process that waits for a lock, and prints what happens.
const nextEnv = "LOCKKEEPER_TEST_NEXT"

type task struct {
	URL, Lock      string
	Watchdog, Poll time.Duration
}

// runNext waits for a fenced lock, holds it until it reads a line, releases it, and ends.
func runNext(what string) {
	var e task
	if err := json.Unmarshal([]byte(what), &e); err != nil {
		panic(err)
	}
	ctx := context.Background()
	s, err := lockkeeper.Open(ctx, e.URL, lockkeeper.WithConfig(lockkeeper.Config{Watchdog: e.Watchdog, Poll: e.Poll}))
	if err != nil {
		panic(err)
	}
	orders := bufio.NewReader(os.Stdin)
	fmt.Println("waits as", s.ID())
	hold, err := s.FencedLock(e.Lock).Acquire(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("granted", hold.Token())
	_, _ = orders.ReadString('\n') // or the end of the test
	fmt.Println("was good:", hold.Err() == nil, hold.Release(ctx) == nil)
	os.Exit(0)
}

// process is a process that waits for a lock.
type process struct {
	*exec.Cmd
	stdin  io.Writer
	id     string // the id of its System
	output chan string
}

// startNext starts a process that waits for the lock, and returns when it waits.
func startNext(t *testing.T, url, lock string, cfg lockkeeper.Config) *process {
	t.Helper()
	self := locktest.Must(os.Executable())(t)
	what := locktest.Must(json.Marshal(task{url, lock, cfg.Watchdog, cfg.Poll}))(t)
	p := &process{Cmd: exec.Command(self), output: make(chan string, 3)}
	p.Env, p.Stderr = append(os.Environ(), nextEnv+"="+string(what), "GORACE=atexit_sleep_ms=0"), os.Stderr
	stdin, _ := p.StdinPipe()
	stdout, _ := p.StdoutPipe()
	locktest.OK(t, p.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for out := bufio.NewScanner(stdout); out.Scan(); {
			p.output <- out.Text()
		}
		_ = p.Wait()
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-ended
	})
	p.stdin = stdin
	p.says(t, "waits as %s", &p.id)
	return p
}

// says reads the next line of its output.
func (p *process) says(t *testing.T, format string, into ...any) {
	t.Helper()
	line := locktest.Await(t, "a line of the process", p.output)
	if _, err := fmt.Sscanf(line, format, into...); err != nil {
		t.Fatalf("the process prints %q, want %q", line, format)
	}
}

// granted waits until the process has the lock, and returns its token.
func (p *process) granted(t *testing.T) (token int64) {
	t.Helper()
	p.says(t, "granted %d", &token)
	return token
}

// release makes the process release the lock, and checks that it was still held.
func (p *process) release(t *testing.T) {
	t.Helper()
	locktest.Must(fmt.Fprintln(p.stdin))(t)
	var good, released bool
	if p.says(t, "was good: %t %t", &good, &released); !good || !released {
		t.Errorf("its hold was valid: %v, and released: %v", good, released)
	}
}

// waitsStill checks that the process has not got the lock.
func (p *process) waitsStill(t *testing.T) {
	t.Helper()
	locktest.NotYet(t, p.output, "the process prints a line while another holds the lock")
}

// kill kills the process, and waits until the server notices.
func (p *process) kill(t *testing.T, server *redistest.Server) {
	t.Helper()
	locktest.OK(t, p.Process.Kill())
	server.AwaitSubscribers(t, keyspace.TurnChannel(p.id), 0)
}

// pause stops the process until resume. On a busy machine its threads may run for a while after the signal.
func (p *process) pause(t *testing.T) {
	t.Helper()
	locktest.OK(t, p.Process.Signal(redistest.SigPause))
	redistest.Eventually(t, "the process to be stopped", func() bool {
		state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(p.Process.Pid)).Output()
		return err == nil && strings.HasPrefix(string(state), "T")
	})
}

func (p *process) resume(t *testing.T) {
	t.Helper()
	locktest.OK(t, p.Process.Signal(redistest.SigResume))
}

func TestMain(m *testing.M) {
	if what := os.Getenv(nextEnv); what != "" {
		runNext(what)
	}
	locktest.Overlap()
	locktest.Main(m)
}

// A hold ends by its lease while its release is on its way. The release wakes the next waiter all the same, in every
// kind: no other message does.
func TestNext_LateReleaseWakesIt(t *testing.T) {
	t.Parallel()
	for kind, of := range locktest.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := redistest.Shared(t)
			b := locktest.NewRemote(t, server, locktest.NoPolling)
			a, c := locktest.Open(t, server.URL(), locktest.NoPolling), locktest.Open(t, server.URL(), locktest.NoPolling)
			around := locktest.Blocker(kind)
			first := locktest.Acquire(t, around(a, b.LockName))
			leased := locktest.AcquireSoon(locktest.Within(t), of(b.Site, b.LockName), lockkeeper.WithLease(2*time.Second))
			waits := func(n int64) {
				redistest.Eventually(t, "entries that listen", func() bool { return waiting(t, b.Key, kind) == n })
			}
			waits(1)
			next := locktest.AcquireSoon(locktest.Within(t), around(c, b.LockName))
			waits(2)
			locktest.Release(t, first)
			locktest.Got(t, leased)
			b.Proxy.Freeze(true)
			// A MultiLock that was told when the lease ends may have the lock by then.
			redistest.Eventually(t, "the end of the lease", func() bool { return len(next) > 0 || !b.Exists(t) })
			b.Proxy.Freeze(false)
			locktest.Release(t, locktest.Got(t, next).Hold)
		})
	}
}

// waiting returns how many clients wait for a lock, and listen.
func waiting(t *testing.T, k locktest.Key, kind string) (n int64) {
	t.Helper()
	if kind == "fair" {
		return k.Number(t, "LLEN", keyspace.Queue(k.Name))
	}
	for _, entry := range locktest.Must(k.Do(t, "HVALS", locktest.WaitQueue(kind, k.Name)).AsStrSlice())(t) {
		if words := strings.Fields(entry); len(words) > 7 && (words[7] == "1" || kind == "multi") {
			n++
		}
	}
	return n
}
