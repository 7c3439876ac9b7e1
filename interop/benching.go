package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

// bench runs the same benchmarks as the Java driver; see its README.
func (w *worker) bench(request, answer line) error {
	number := func(key string, absent int) int {
		if n, err := strconv.Atoi(request.values[key]); err == nil {
			return n
		}
		return absent
	}
	b := benching{
		locks: w.client(request).locks, kind: request.values["kind"], name: request.values["name"],
		warmup: time.Duration(number("warmup", 0)) * time.Second, lasts: time.Duration(number("seconds", 1)) * time.Second,
	}
	answer.set(fmt.Sprint("seconds=", b.lasts.Seconds()))
	switch request.values["scenario"] {
	case "s1":
		return b.pairs(answer, 1, false, b.oneOf(1))
	case "s2":
		return b.pairs(answer, number("threads", 1), false, b.oneOf(number("keys", 1)))
	case "s3":
		return b.pairs(answer, number("threads", 1), true, b.oneOf(1))
	case "s16":
		return b.pairs(answer, number("threads", 1), true, b.permits(number("permits", 1)))
	case "s5":
		return b.hold(answer, number("keys", 1))
	}
	return fmt.Errorf("unknown scenario: %q", request.values["scenario"])
}

type benching struct {
	locks         *lockkeeper.System
	kind, name    string
	warmup, lasts time.Duration
}

func (b *benching) lock(i int) (*lockkeeper.Lock, error) {
	return open(b.locks, b.kind, fmt.Sprintf("%s:%d", b.name, i))
}

// acquire waits for a lock or a permit.
type acquire func(ctx context.Context) (release func(ctx context.Context) error, err error)

// oneOf distributes the threads over keys locks.
func (b *benching) oneOf(keys int) func(thread int) (acquire, error) {
	return func(thread int) (acquire, error) {
		lock, err := b.lock(thread % keys)
		return func(ctx context.Context) (func(context.Context) error, error) {
			hold, err := lock.Acquire(ctx)
			if err != nil {
				return nil, err
			}
			return hold.Release, nil
		}, err
	}
}

// permits lets the threads share n permits of a semaphore, which expires some time after the benchmark.
func (b *benching) permits(n int) func(thread int) (acquire, error) {
	semaphore := b.locks.Semaphore(b.name)
	release := func(ctx context.Context) error { return semaphore.Release(ctx, 1) }
	return func(thread int) (acquire, error) {
		_, err := semaphore.TrySetPermits(context.Background(), n, time.Minute)
		return func(ctx context.Context) (func(context.Context) error, error) {
			return release, semaphore.Acquire(ctx, 1)
		}, err
	}
}

// pairs acquires and releases for the given time. Latency is the wait for the grant, or the whole pair.
func (b *benching) pairs(answer line, threads int, waitOnly bool, of func(thread int) (acquire, error)) error {
	begin := time.Now().Add(b.warmup)
	end := begin.Add(b.lasts)
	latencies, wrong := make([][]time.Duration, threads), make([]error, threads)
	var working sync.WaitGroup
	for i := range threads {
		acquire, err := of(i)
		if err != nil {
			return err
		}
		working.Go(func() {
			ctx := context.Background()
			for start := time.Now(); start.Before(end); start = time.Now() {
				release, err := acquire(ctx)
				if err != nil {
					wrong[i] = err
					return
				}
				granted := time.Now()
				if wrong[i] = release(ctx); wrong[i] != nil {
					return
				}
				done := time.Now()
				if start.Before(begin) || done.After(end) {
					continue
				}
				if waitOnly {
					done = granted
				}
				latencies[i] = append(latencies[i], done.Sub(start))
			}
		})
	}
	working.Wait()
	fewest, most := math.MaxInt, 0
	for _, l := range latencies {
		fewest, most = min(fewest, len(l)), max(most, len(l))
	}
	answer.set(fmt.Sprint("mingrants=", fewest), fmt.Sprint("maxgrants=", most))
	summarize(answer, slices.Concat(latencies...))
	return errors.Join(wrong...)
}

// hold acquires all keys, holds them, and counts those that are still held. Latency is that of one acquire.
func (b *benching) hold(answer line, keys int) error {
	ctx := context.Background()
	var holds []*lockkeeper.Hold
	var latencies []time.Duration
	for i := range keys {
		lock, err := b.lock(i)
		if err != nil {
			return err
		}
		start := time.Now()
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		holds, latencies = append(holds, hold), append(latencies, time.Since(start))
	}
	time.Sleep(b.warmup + b.lasts)
	held := 0
	for _, hold := range holds {
		if hold.Release(ctx) == nil {
			held++
		}
	}
	summarize(answer, latencies)
	answer.set(fmt.Sprint("ops=", held), fmt.Sprint("lost=", keys-held))
	return nil
}

func summarize(answer line, of []time.Duration) {
	answer.set(fmt.Sprint("ops=", len(of)))
	if len(of) == 0 {
		return
	}
	slices.Sort(of)
	answer.set(fmt.Sprint("p50us=", quantile(of, 50).Microseconds()), fmt.Sprint("p99us=", quantile(of, 99).Microseconds()),
		fmt.Sprint("maxus=", quantile(of, 100).Microseconds()))
}
