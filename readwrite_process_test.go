package lockkeeper_test

// The read/write lock over several real processes.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// tally is what a process under a read/write lock has seen.
type tally struct {
	Reads, Writes int
	// LongestRead and LongestWrite are the longest waits.
	LongestRead, LongestWrite time.Duration
	// Intrusions counts those found inside who should not have been there.
	Intrusions int64
	Errors     []string
}

// enter notes in Redis that a reader or a writer is inside, and counts who should not be.
const enter = `
local others = tonumber(redis.call('GET', KEYS[2]) or 0)
if ARGV[1] == 'write' then
  others = others + tonumber(redis.call('GET', KEYS[1]) or 0)
end
redis.call('INCR', KEYS[ARGV[1] == 'write' and 2 or 1])
return others`

// readAndWrite has readers and writers of one process use a lock for a while. Its
// arguments: URL, lock, time, readers, writers, and the pause between two turns.
func readAndWrite(args []string) error {
	sys, end, err := system(args[0], lockkeeper.Config{})
	if err != nil {
		return err
	}
	defer end()
	state, err := lockkeeper.Connect(args[0])
	if err != nil {
		return err
	}
	defer state.Close()
	name := args[1]
	lasts, err := time.ParseDuration(args[2])
	readers, err2 := strconv.Atoi(args[3])
	writers, err3 := strconv.Atoi(args[4])
	pause, err4 := time.ParseDuration(args[5])
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}

	var mu sync.Mutex
	var seen tally
	turn := func(mode string, lock *lockkeeper.Lock, grants *int, longest *time.Duration) error {
		ctx, asked := context.Background(), time.Now()
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		wait := time.Since(asked)
		inside := map[string]string{"read": name + " readers", "write": name + " writers"}
		others, err := state.Do(ctx, state.B().Eval().Script(enter).Numkeys(2).Key(inside["read"], inside["write"]).Arg(mode).Build()).AsInt64()
		if err != nil {
			return err
		}
		time.Sleep(rand.N(3 * time.Millisecond))
		err = state.Do(ctx, state.B().Decr().Key(inside[mode]).Build()).Error()
		mu.Lock()
		*grants++
		*longest = max(*longest, wait)
		seen.Intrusions += others
		mu.Unlock()
		return errors.Join(err, hold.Release(ctx))
	}
	stop := time.Now().Add(lasts)
	var work sync.WaitGroup
	run := func(n int, mode string, lock *lockkeeper.Lock, grants *int, longest *time.Duration) {
		for range n {
			work.Go(func() {
				for time.Now().Before(stop) {
					if err := turn(mode, lock, grants, longest); err != nil {
						mu.Lock()
						seen.Errors = append(seen.Errors, err.Error())
						mu.Unlock()
						return
					}
					if pause > 0 {
						time.Sleep(rand.N(pause))
					}
				}
			})
		}
	}
	lock := sys.ReadWriteLock(name)
	run(readers, "read", lock.Read(), &seen.Reads, &seen.LongestRead)
	run(writers, "write", lock.Write(), &seen.Writes, &seen.LongestWrite)
	work.Wait()
	return json.NewEncoder(os.Stdout).Encode(seen)
}

// crew is who works in one process.
type crew struct{ readers, writers int }

// together runs crews in processes of their own, and checks what they have seen.
func together(t *testing.T, pause time.Duration, crews ...crew) []tally {
	t.Helper()
	const lasts = 5 * time.Second
	k := newRWKey(t, redistest.Shared(t))
	lines := make(chan said, len(crews))
	for i, c := range crews {
		spawn(t, i, lines, "readwrite", k.server.URL(), k.lock, lasts.String(), fmt.Sprint(c.readers), fmt.Sprint(c.writers), pause.String())
	}
	tallies := make([]tally, len(crews))
	for range crews {
		line := await(t, "the tallies", lines)
		seen := &tallies[line.by.number]
		if err := json.Unmarshal([]byte(line.text), seen); err != nil {
			t.Fatalf("%s: %v", line.text, err)
		}
		t.Logf("process %d: %d reads (longest wait %v), %d writes (longest wait %v)",
			line.by.number, seen.Reads, seen.LongestRead, seen.Writes, seen.LongestWrite)
		if seen.Intrusions > 0 || len(seen.Errors) > 0 {
			t.Errorf("process %d: %d times somebody was inside beside a writer; errors %q", line.by.number, seen.Intrusions, seen.Errors)
		}
	}
	k.awaitNothing(t)
	for _, who := range []string{" readers", " writers"} {
		if left, err := k.do(t, "GET", k.name+who).AsInt64(); err != nil && !rueidis.IsRedisNil(err) || left != 0 {
			t.Errorf("%d%s inside at the end, %v", left, who, err)
		}
	}
	return tallies
}

// Never a writer beside anyone else.
func TestReadWriteOverProcesses(t *testing.T) {
	for i, seen := range together(t, 4*time.Millisecond, crew{4, 2}, crew{4, 2}, crew{4, 2}) {
		if seen.Reads == 0 || seen.Writes == 0 {
			t.Errorf("process %d: %d reads, %d writes", i, seen.Reads, seen.Writes)
		}
	}
}

// Writers get their turns though readers come all the time: there is never a moment
// without one, as far as it is up to them.
func TestReadWriteWritersDoNotStarve(t *testing.T) {
	crews := []crew{{6, 0}, {6, 1}, {6, 0}, {0, 1}}
	for i, seen := range together(t, 0, crews...) {
		switch {
		case crews[i].writers > 0 && (seen.Writes < 10 || seen.LongestWrite > 4*time.Second):
			t.Errorf("process %d: %d writes, and the longest wait was %v", i, seen.Writes, seen.LongestWrite)
		case crews[i].readers > 0 && seen.Reads < 10:
			t.Errorf("process %d: %d reads", i, seen.Reads)
		}
	}
}
