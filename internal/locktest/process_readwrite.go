package locktest

// The read/write lock over several real processes.

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

// Tally is what a process under a read/write lock has seen.
type Tally struct {
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
	var seen Tally
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
