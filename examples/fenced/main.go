// Fenced shows what a fencing token is for. Two clerks in two processes take boxes from
// one stock, under one lock. The first is paused while it has the lock, as a process can
// be at any moment, and its lease runs out; the second takes over; then the first goes on
// and writes what it has worked out before. No lock can prevent that. Without a guard the
// second clerk's update is lost; a store that looks at the tokens refuses the late one.
//
//	go run ./examples/fenced
//
// needs nothing but Go: the Redis is inside the program. With -redis redis://…
// the same happens on a real one. guard.lua and sql.go are the guards, for Redis and for
// an SQL database: copy them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/embedded"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/program"
	"github.com/lockkeeper-go/lockkeeper/internal/quiet"
)

const (
	prefix   = "fenced-example:"
	patience = 20 * time.Second // how long anything may take before it has gone wrong
	lease    = 500 * time.Millisecond
	boxes    = 100
)

func main() { program.Main("fenced", play) }

// play has the same happen with each store.
func play(redis *embedded.Redis, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Not the counter of tokens, which must never begin anew.
	defer func() {
		err = errors.Join(err, redis.Do(context.WithoutCancel(ctx), redis.B().Del().Key(prefix+"free", prefix+"guarded").Build()).Error())
	}()

	var clerks [2]*clerk
	for i, name := range []string{"anna", "bert"} {
		locks, err := lockkeeper.New(quiet.ActorSystem(), redis, lockkeeper.Config{KeyPrefix: prefix})
		if err != nil {
			return err
		}
		defer locks.Close(context.WithoutCancel(ctx))
		clerks[i] = &clerk{name: name, lock: locks.FencedLock("stock"), out: out}
	}
	anna, bert := clerks[0], clerks[1]

	for _, one := range []struct {
		title   string
		store   store
		refuses bool
	}{
		{"without a guard", unguarded{redis, prefix + "free"}, false},
		{"with the guard in Redis", guarded{redis, prefix + "guarded"}, true},
		{"with the condition in SQL", conditional{&table{rows: map[string]row{"boxes": {}}}, "boxes"}, true},
	} {
		fmt.Fprintf(out, "\n%s, the stock is %d:\n", one.title, boxes)
		if err := one.store.write(ctx, 0, boxes); err != nil {
			return err
		}
		if err := late(ctx, one.store, anna, bert, one.refuses); err != nil {
			return err
		}
	}
	return nil
}

// late plays the case of the late writer.
func late(ctx context.Context, s store, anna, bert *clerk, refuses bool) error {
	// What anna does is right as far as she can know: at each step her hold was good.
	paused, err := anna.lock.Acquire(ctx, lockkeeper.WithLease(lease))
	if err != nil {
		return err
	}
	seen, err := anna.read(ctx, s, paused)
	if err != nil {
		return err
	}
	anna.say("is paused, and her lease of %v runs out", lease)

	if err := bert.take(ctx, s, 20); err != nil { // it waits until the lease is over
		return err
	}

	anna.say("goes on: she takes 10, and writes %d with token %d", seen-10, paused.Token())
	err = s.write(ctx, paused.Token(), seen-10)
	switch {
	case errors.Is(err, errStale) && refuses:
		anna.say("is %v", err)
		if err := anna.take(ctx, s, 10); err != nil { // with a hold that is good
			return err
		}
	case err != nil:
		return err
	case refuses:
		return errors.New("a late writer was not refused")
	}
	left, err := anna.lookAfter(ctx, s)
	switch {
	case err != nil:
		return err
	case left == boxes-10-20:
		fmt.Fprintf(anna.out, "  %d boxes are left, as it should be\n", left)
	case left == boxes-10 && !refuses:
		fmt.Fprintf(anna.out, "  %d boxes are left, and should be %d: bert's update is lost\n", left, boxes-10-20)
	default:
		return fmt.Errorf("%d boxes are left", left)
	}
	return nil
}

// clerk is somebody in a process of its own who takes boxes under the lock.
type clerk struct {
	name string
	lock *lockkeeper.Lock
	out  io.Writer
}

func (c *clerk) say(format string, values ...any) {
	fmt.Fprintf(c.out, "  %-6s"+format+"\n", append([]any{c.name}, values...)...)
}

// take is how it is done: the token goes along with whatever is read and written.
func (c *clerk) take(ctx context.Context, s store, n int) (err error) {
	hold, err := c.lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(context.WithoutCancel(ctx))) }()
	seen, err := c.read(ctx, s, hold)
	if err != nil {
		return err
	}
	c.say("takes %d, and writes %d", n, seen-n)
	return s.write(ctx, hold.Token(), seen-n)
}

func (c *clerk) read(ctx context.Context, s store, hold *lockkeeper.Hold) (int, error) {
	seen, err := s.read(ctx, hold.Token())
	if err == nil {
		c.say("has the lock with token %d, and reads %d", hold.Token(), seen)
	}
	return seen, err
}

// lookAfter tells how many boxes are left in the end.
func (c *clerk) lookAfter(ctx context.Context, s store) (left int, err error) {
	hold, err := c.lock.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, hold.Release(context.WithoutCancel(ctx))) }()
	return s.read(ctx, hold.Token())
}
