//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

const benchHelp = `usage: lockkeeper bench [-redis URL] [-prefix P] [--json] [-for 1s]

Measures plain locks against this Redis from this machine: a round trip (PING), acquire and release
of a free lock, the transfer from one System to another that waits (from the release
to the grant), and the grants of 64 goroutines of one process that contend for one lock. It puts load
on the server meanwhile, and leaves no keys there. Its locks begin with lockkeeper_bench.

` + accessHelp + `  -for 1s        how long to measure each, 100ms to 1m

Two Systems of one process share its processors: a transfer between two machines may be faster or
slower. Compare with docs/performance.md only on like machines.

The exit code is 0. 64: the command line is wrong. 69: Redis cannot be reached, or refuses, or the
measurement was interrupted.

  lockkeeper bench -redis rediss://redis.example.org
`

// contenders is the number of goroutines that contend for one lock.
const contenders = 64

// benchOptions are the command line of bench.
type benchOptions struct {
	access
	span time.Duration
}

func (o *benchOptions) flags() *flag.FlagSet {
	flags := o.access.flags("bench")
	flags.DurationVar(&o.span, "for", time.Second, "")
	return flags
}

// measurement is one result of bench.
type measurement struct {
	What string `json:"what"`
	N    int    `json:"n"`
	// P50 and P99 are in ms.
	P50 float64 `json:"p50,omitempty"`
	P99 float64 `json:"p99,omitempty"`
	// PerSecond is set for the measurement of grants, which has no times.
	PerSecond float64 `json:"per_second,omitempty"`
}

// timed returns the measurement of an operation that took these times.
func timed(what string, times []time.Duration) measurement {
	m := measurement{What: what, N: len(times)}
	if slices.Sort(times); m.N > 0 {
		at := func(share int) float64 { return float64(times[(m.N-1)*share/100].Microseconds()) / 1000 }
		m.P50, m.P99 = at(50), at(99)
	}
	return m
}

// bench runs the subcommand bench.
func bench(args []string, env environment) int {
	o := benchOptions{access: access{environment: env}}
	code, ok := o.parse(o.flags(), args, benchHelp, func() error {
		if o.span < 100*time.Millisecond || o.span > time.Minute {
			return errors.New("-for must be 100ms to 1m")
		}
		return o.none()
	})
	if !ok {
		return code
	}
	return o.with(func(ctx context.Context, client rueidis.Client) (int, error) {
		all, err := o.measure(ctx, client)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return 0, err
		}
		if o.json {
			return 0, printEach(o.access, all)
		}
		return 0, o.table("WHAT\tN\tP50 MS\tP99 MS\tPER SECOND", func(row func(cells ...any)) {
			for _, m := range all {
				if m.PerSecond > 0 {
					row(m.What, m.N, "", "", fmt.Sprintf("%.0f", m.PerSecond))
				} else {
					row(m.What, m.N, fmt.Sprintf("%.3f", m.P50), fmt.Sprintf("%.3f", m.P99), "")
				}
			}
		})
	})
}

// measure takes all measurements, one after another.
func (o *benchOptions) measure(ctx context.Context, client rueidis.Client) (all []measurement, err error) {
	var systems [2]*lockkeeper.System
	var name string
	defer func() { // after Close: an entry of the wait queue outlives the wait by a moment
		if name == "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		inspector := inspect.Inspector{Client: client, Prefix: o.prefix}
		for _, lock := range []string{name, name + ":64"} {
			for _, key := range []string{keyspace.WaitQueue(o.prefix + lock), keyspace.WaitOrder(o.prefix + lock)} {
				err = cmp.Or(err, client.Do(ctx, inspector.Command("DEL", key)).Error())
			}
		}
	}()
	for i := range systems {
		if systems[i], err = lockkeeper.Open(ctx, o.redis, lockkeeper.WithConfig(lockkeeper.Config{
			KeyPrefix: o.prefix, Application: "lockkeeper bench", Anonymous: i > 0,
		})); err != nil {
			return nil, err
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
			defer cancel()
			err = cmp.Or(err, systems[i].Close(ctx))
		}()
	}
	name = "lockkeeper_bench:" + systems[0].ID()
	here, there := systems[0].Lock(name), systems[1].Lock(name)

	var trips, acquires, releases, passes []time.Duration
	err = o.again(ctx, func() error {
		began := time.Now()
		err := client.Do(ctx, client.B().Ping().Build()).Error()
		trips = append(trips, time.Since(began))
		if err != nil {
			return redisio.Classify(err)
		}
		return nil
	})
	err = cmp.Or(err, o.again(ctx, func() error {
		began := time.Now()
		hold, err := here.Acquire(ctx)
		if err != nil {
			return err
		}
		granted := time.Now()
		err = hold.Release(ctx)
		acquires, releases = append(acquires, granted.Sub(began)), append(releases, time.Since(granted))
		return err
	}))
	err = cmp.Or(err, o.again(ctx, func() error {
		took, err := transfer(ctx, here, there)
		passes = append(passes, took)
		here, there = there, here
		return err
	}))
	if err != nil {
		return nil, err
	}
	grants, took, err := o.contend(ctx, systems[0].Lock(name+":64"))
	return []measurement{
		timed("round trip", trips), timed("acquire", acquires), timed("release", releases), timed("transfer between Systems", passes),
		{What: fmt.Sprintf("grants, %d goroutines", contenders), N: grants, PerSecond: float64(grants) / took.Seconds()},
	}, err
}

// again runs f for the time of the measurement, or until f fails.
func (o *benchOptions) again(ctx context.Context, f func() error) (err error) {
	for end := time.Now().Add(o.span); err == nil && time.Now().Before(end); {
		err = cmp.Or(context.Cause(ctx), f())
	}
	return err
}

// transfer makes one System release a lock for which another waits, and returns the time from the release to the grant.
func transfer(ctx context.Context, from, to *lockkeeper.Lock) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	first, err := from.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	var granted time.Time
	done := make(chan error, 1)
	go func() {
		second, err := to.Acquire(ctx)
		if granted = time.Now(); err == nil {
			err = second.Release(ctx)
		}
		done <- err
	}()
	for { // until Redis knows that it waits
		status, inspected := to.Inspect(ctx)
		if inspected != nil || status.Waiters > 0 && status.Subscribers > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	err = cmp.Or(first.Release(ctx), <-done)
	return granted.Sub(began), err
}

// contend acquires and releases one lock in many goroutines, and counts the grants.
func (o *benchOptions) contend(ctx context.Context, lock *lockkeeper.Lock) (grants int, took time.Duration, err error) {
	var all sync.WaitGroup
	var granted atomic.Int64
	errs := make([]error, contenders)
	began := time.Now()
	for i := range contenders {
		all.Go(func() {
			errs[i] = o.again(ctx, func() error {
				hold, err := lock.Acquire(ctx)
				if err != nil {
					return err
				}
				granted.Add(1)
				return hold.Release(ctx)
			})
		})
	}
	all.Wait()
	return int(granted.Load()), time.Since(began), cmp.Or(errs...)
}
