//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

const (
	workers = 4
	rounds  = 500
	hangAt  = 50
)

// worker counts in a file, one round at a time under the lock. In the round hangAt it hangs
// for ever while it has the lock, if it is to: "before" or "after" it has counted.
func worker(url, name, file, hang string) {
	ctx := context.Background()
	client := must(lockkeeper.Connect(url))
	// The others wait for what is left of the watchdog's time when a worker is killed.
	locks := must(lockkeeper.New(quiet.ActorSystem(), client, lockkeeper.Config{Watchdog: 2 * time.Second}))
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1)) // all begin at the same time
	for round := 1; round <= rounds; round++ {
		hold := must(locks.Lock(name).Acquire(ctx))
		n := counted(file)
		hangIf(hang == "before" && round == hangAt)
		check(os.WriteFile(file, fmt.Append(nil, n+1), 0o600))
		hangIf(hang == "after" && round == hangAt)
		check(hold.Release(ctx))
	}
	check(locks.Close(ctx))
	client.Close()
}

func hangIf(yes bool) {
	if yes {
		fmt.Println("hangs")
		select {}
	}
}

func counted(file string) int { return must(strconv.Atoi(string(must(os.ReadFile(file))))) }

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Four processes read, add one and write, 500 times each: no update is lost. If one of them
// is killed (kill -9) while it has the lock, the others get it when the lease is over, and
// every round counts that was written.
func TestCounter(t *testing.T) {
	for hang, want := range map[string]int{
		"never":  workers * rounds,
		"before": (workers-1)*rounds + hangAt - 1,
		"after":  (workers-1)*rounds + hangAt,
	} {
		t.Run(hang, func(t *testing.T) {
			t.Parallel()
			server, lock := redistest.Shared(t), redistest.Name(t)
			file := filepath.Join(t.TempDir(), "counter")
			check(os.WriteFile(file, []byte("0"), 0o600))
			var all []*process
			for _, when := range []string{hang, "never", "never", "never"} {
				p := start(t, program(t, "worker", server.URL(), lock, file, when))
				p.expectLine("ready")
				all = append(all, p)
			}
			for _, p := range all {
				fmt.Fprintln(p.stdin)
			}
			if victim := all[0]; hang != "never" {
				all = all[1:]
				victim.expectLine("hangs")
				check(victim.cmd.Process.Kill())
			}
			for _, p := range all {
				p.expectExit(0)
			}
			if n := counted(file); n != want {
				t.Errorf("counted to %d, want %d", n, want)
			}
			expectNothingLeft(t, server, lock)
		})
	}
}
