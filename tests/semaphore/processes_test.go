package semaphore_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

var calls = flag.Int("latch.calls", 20_000, "how many count-downs the processes of TestLatch_ReleasesAllProcesses make, and as many waits")

const (
	processes = 4
	// workers is how many goroutines of each process count down and wait.
	workers = 500
	// work passes its task to a process of TestLatch_ReleasesAllProcesses: "<URL of Redis> <name> <rounds>".
	work = "LOCKKEEPER_TEST_LATCHES"
)

// atLatches is such a process: round after round, all its workers count a latch down, and wait for it.
func atLatches(what string) error {
	var url, name string
	var rounds int
	if _, err := fmt.Sscan(what, &url, &name, &rounds); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	client, err := lockkeeper.Connect(url)
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := lockkeeper.New(locktest.QuietActorSystem(), client, lockkeeper.Config{Idle: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	failures := make(chan error, 1)
	note := func(err error) {
		if err != nil {
			select {
			case failures <- err:
				cancel()
			default:
			}
		}
	}
	for round := range rounds {
		l := s.Latch(fmt.Sprint(name, round))
		_, err := l.TrySetCount(ctx, processes*workers) // only the first one sets it; the latch stays closed until all have counted down
		note(err)
		var all sync.WaitGroup
		for i := range workers {
			all.Go(func() {
				if i%2 == 0 {
					note(l.CountDown(ctx))
				} else {
					id := fmt.Sprint(os.Getpid(), " ", i)
					note(l.CountDownOnce(ctx, id))
				}
				note(l.Wait(ctx))
			})
		}
		all.Wait()
	}
	note(s.Close(ctx))
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}

// All goroutines that count down and wait in several processes are released, and everything left in Redis expires.
func TestLatch_ReleasesAllProcesses(t *testing.T) {
	k := locktest.NewKey(t, redistest.Start(t))
	self := locktest.Must(os.Executable())(t)
	rounds := *calls / (processes * workers)
	k.Server.ResetStats(t)
	began := time.Now()
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			c := exec.CommandContext(t.Context(), self)
			c.Env = append(os.Environ(), fmt.Sprint(work, "=", k.Server.URL(), " ", k.LockName, " ", rounds))
			if text, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
	all.Wait()
	stats := k.Server.Calls(t)
	n := rounds * processes * workers
	t.Logf("%d count-downs and %d waits in %v, with %d scripts",
		n, n, time.Since(began).Round(time.Millisecond), stats["evalsha"]+stats["eval"])
	left := slices.DeleteFunc(k.Server.Keys(t, "*"), func(key string) bool {
		return strings.HasPrefix(key, "lockkeeper_calls:") && k.Number(t, "PTTL", key) > 0
	})
	if len(left) > 0 {
		t.Errorf("left in Redis: %q", left)
	}
	if channels := k.Server.Channels(t); len(channels) > 0 {
		t.Errorf("there are still subscribers of %q", channels)
	}
}
