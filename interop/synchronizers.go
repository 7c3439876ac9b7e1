package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

// synchronize handles a request about a semaphore, an expirable semaphore, or a latch.
func (w *worker) synchronize(request, answer line) error {
	system, name := w.client(request).locks, request.values["name"]
	n := 1
	if text := request.values["n"]; text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			return err
		}
	}
	switch request.word {
	case semaphore.kind:
		return w.semaphore(system.Semaphore(name), request, answer, n)
	case expirable.kind:
		return w.expirable(system.ExpirableSemaphore(name), request, answer, n)
	default:
		return w.latch(system.Latch(name), request, answer, n)
	}
}

func (w *worker) semaphore(s *lockkeeper.Semaphore, request, answer line, n int) error {
	ctx := context.Background()
	switch request.values["op"] {
	case "set":
		done, err := s.TrySetPermits(ctx, n, 0)
		answer.set(fmt.Sprint("done=", done))
		return err
	case "add":
		return s.AddPermits(ctx, n)
	case "drain":
		drained, err := s.Drain(ctx)
		answer.set(fmt.Sprint("n=", drained))
		return err
	case "available":
		available, err := s.Available(ctx)
		answer.set(fmt.Sprint("n=", available))
		return err
	case "acquire", "tryacquire":
		return waited(request, answer, waits, func(options []lockkeeper.WaitOption) error { return s.Acquire(ctx, n, options...) })
	case "release":
		answer.set(at())
		return s.Release(ctx, n)
	case "crowd":
		return w.crowd(request, answer, func() (giveBack func() error, err error) {
			return func() error { return s.Release(ctx, 1) }, s.Acquire(ctx, 1)
		})
	}
	return fmt.Errorf("unknown op: %q", request.values["op"])
}

func (w *worker) expirable(p *lockkeeper.ExpirableSemaphore, request, answer line, n int) error {
	ctx := context.Background()
	switch request.values["op"] {
	case "set":
		done, err := p.TrySetPermits(ctx, n)
		answer.set(fmt.Sprint("done=", done))
		return err
	case "available":
		available, err := p.Available(ctx)
		answer.set(fmt.Sprint("n=", available))
		return err
	case "acquire", "tryacquire":
		return waited(request, answer, options, func(options []lockkeeper.Option) error {
			permit, err := p.Acquire(ctx, append(options, lockkeeper.WithPermits(n))...)
			if err == nil {
				ids := strings.Join(permit.IDs(), ",")
				answer.set("id=" + ids)
				w.taken[ids] = permit
			}
			return err
		})
	case "extend": // only in Go
		if permit := w.taken[request.values["id"]]; permit != nil {
			return extend(request, permit)
		}
		return lockkeeper.ErrNotHeld
	case "release":
		answer.set(at())
		if permit := w.taken[request.values["id"]]; permit != nil {
			delete(w.taken, request.values["id"])
			return permit.Release(ctx)
		}
		for id := range strings.SplitSeq(request.values["id"], ",") {
			if err := p.ReleaseID(ctx, id); err != nil {
				return err
			}
		}
		return nil
	case "crowd":
		return w.crowd(request, answer, func() (giveBack func() error, err error) {
			permit, err := p.Acquire(ctx)
			return func() error { return permit.Release(ctx) }, err
		})
	}
	return fmt.Errorf("unknown op: %q", request.values["op"])
}

func (w *worker) latch(l *lockkeeper.Latch, request, answer line, n int) error {
	ctx := context.Background()
	switch request.values["op"] {
	case "set":
		done, err := l.TrySetCount(ctx, int64(n))
		answer.set(fmt.Sprint("done=", done))
		return err
	case "count":
		count, err := l.Count(ctx)
		answer.set(fmt.Sprint("n=", count))
		return err
	case "down":
		answer.set(at())
		for range n {
			if err := l.CountDown(ctx); err != nil {
				return err
			}
		}
		return nil
	case "wait":
		return waited(request, answer, waits, func(options []lockkeeper.WaitOption) error { return l.Wait(ctx, options...) })
	}
	return fmt.Errorf("unknown op: %q", request.values["op"])
}

// waited makes a call that may wait, with the options of the request, and sets the answer to its result.
func waited[O lockkeeper.Option](request, answer line, read func(request line, verb string) ([]O, error), do func([]O) error) error {
	verb := request.values["op"]
	if verb == "tryacquire" {
		verb = "trylock"
	}
	options, err := read(request, verb)
	if err != nil {
		return err
	}
	began := time.Now()
	err = do(options)
	answer.set(at(), fmt.Sprint("nanos=", time.Since(began).Nanoseconds()), fmt.Sprint("held=", err == nil))
	if errors.Is(err, lockkeeper.ErrHeld) || errors.Is(err, lockkeeper.ErrTimeout) {
		return nil
	}
	return err
}

// crowd acquires a permit again and again, and counts at the key how many are held at the same time.
func (w *worker) crowd(request, answer line, take func() (giveBack func() error, err error)) error {
	rounds, err := strconv.Atoi(request.values["rounds"])
	if err != nil {
		return err
	}
	redis, most := w.client(request).redis, int64(0)
	add := func(n int64) error {
		inside, err := redis.Do(context.Background(), redis.B().Incrby().Key(request.values["key"]).Increment(n).Build()).AsInt64()
		most = max(most, inside)
		return err
	}
	for range rounds {
		giveBack, err := take()
		if err != nil {
			return err
		}
		if err := errors.Join(add(1), add(-1), giveBack()); err != nil {
			return err
		}
	}
	answer.set(fmt.Sprint("most=", most))
	return nil
}
