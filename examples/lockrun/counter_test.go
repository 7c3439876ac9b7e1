//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The test binary itself is the worker, when this variable is set.
const workerEnv = "LOCKRUN_TEST_WORKER"

const (
	workers  = 4
	rounds   = 500
	watchdog = 2 * time.Second // of which the others wait out what is left when a worker is killed
)

// worker counts in a file, one round at a time under the lock. In the round hangAt it
// hangs for ever while it has the lock, before or after it has counted.
func worker() int {
	var url, lock, file, hang string
	var hangAt int
	if _, err := fmt.Sscan(os.Getenv(workerEnv), &url, &lock, &file, &hang, &hangAt); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // all begin at the same time
	if err := count(url, lock, file, func(when string, round int) {
		if hang == when && hangAt == round {
			fmt.Println("hangs")
			select {}
		}
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func count(url, name, file string, pass func(when string, round int)) (err error) {
	ctx := context.Background()
	client, err := lockkeeper.Connect(url)
	if err != nil {
		return err
	}
	defer client.Close()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}))
	locks, err := lockkeeper.New(system, client, lockkeeper.Config{Watchdog: watchdog})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(ctx)) }()
	lock := locks.Lock(name)
	for round := 1; round <= rounds; round++ {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		pass("before", round)
		if err := addOne(file); err != nil {
			return err
		}
		pass("after", round)
		fmt.Println("counted")
		if err := hold.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// addOne reads the number in the file, and writes the next one, in one write: a kill
// leaves the one or the other.
func addOne(file string) error {
	n, err := counted(file)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%10d", n+1)
	return err
}

func counted(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(text)))
}

// startWorkers starts the workers, of which the first may hang.
func startWorkers(t *testing.T, hang string, hangAt int) (server *redistest.Server, lock, file string, all []*running) {
	t.Helper()
	server, lock = redistest.Shared(t), redistest.Name(t)
	file = filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(file, []byte("         0"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range workers {
		command := exec.Command(binary)
		command.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %s %d", workerEnv, server.URL(), lock, file, hang, hangAt))
		all = append(all, start(t, command))
		hang = "never"
	}
	for _, p := range all {
		p.expectLine("ready")
	}
	for _, p := range all {
		fmt.Fprintln(p.stdin)
	}
	return server, lock, file, all
}

// Four processes read, add one and write, 500 times each: no update is lost.
func TestCounter(t *testing.T) {
	server, lock, file, all := startWorkers(t, "never", 0)
	for _, p := range all {
		p.expectExit(0)
		if len(p.lines) != rounds {
			t.Errorf("a worker counted %d times", len(p.lines))
		}
	}
	if n, err := counted(file); n != workers*rounds || err != nil {
		t.Errorf("counted to %d, want %d; %v", n, workers*rounds, err)
	}
	expectFree(t, server, lock)
}

// A worker is killed (kill -9) while it has the lock. The others get it when the lease
// is over, and every round counts that was acknowledged, or one more: the last of the
// killed worker, if that was written.
func TestCounterWithAKill(t *testing.T) {
	for when, unacknowledged := range map[string]int{"before": 0, "after": 1} {
		t.Run(when, func(t *testing.T) {
			const hangAt = 50
			server, lock, file, all := startWorkers(t, when, hangAt)
			victim, others := all[0], all[1:]
			for range hangAt - 1 {
				victim.expectLine("counted")
			}
			victim.expectLine("hangs")
			before, err := counted(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := victim.command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			redistest.Eventually(t, "the others go on", func() bool {
				n, err := counted(file)
				return err == nil && n > before
			})
			if took := time.Since(killed); took > watchdog+5*time.Second { // which a slow machine needs
				t.Errorf("the others went on after %v, and the lease was %v", took, watchdog)
			}
			for _, p := range others {
				p.expectExit(0)
			}
			if n, err := counted(file); n != len(others)*rounds+hangAt-1+unacknowledged || err != nil {
				t.Errorf("counted to %d, of which %d are acknowledged; %v", n, len(others)*rounds+hangAt-1, err)
			}
			expectFree(t, server, lock)
		})
	}
}
