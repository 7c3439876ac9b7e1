// Readwrite shows a lock that readers share and that a writer has for itself: how a
// writer becomes a reader without letting go, and that a reader cannot become a writer.
//
//	go run ./examples/readwrite
//
// needs nothing but Go: the Redis is inside the program. With -redis redis://…
// the same happens on a real one.
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
	prefix   = "readwrite-example:"
	patience = 20 * time.Second // how long anything may take before it has gone wrong
)

func main() { program.Main("readwrite", play) }

// story is what the acts share: the same lock, seen from two processes.
type story struct {
	here, there *lockkeeper.ReadWrite
	out         io.Writer
}

func play(redis *embedded.Redis, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var locks [2]*lockkeeper.ReadWrite
	for i := range locks {
		system, err := lockkeeper.New(quiet.ActorSystem(), redis, lockkeeper.Config{KeyPrefix: prefix})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, system.Close(context.WithoutCancel(ctx))) }()
		locks[i] = system.ReadWriteLock("prices")
	}
	s := &story{here: locks[0], there: locks[1], out: out}
	for _, act := range []func(context.Context) error{s.together, s.downgrade, s.noUpgrade} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) say(format string, values ...any) { fmt.Fprintf(s.out, "  "+format+"\n", values...) }

// together: readers in both processes, and then a writer alone.
func (s *story) together(ctx context.Context) error {
	fmt.Fprintln(s.out, "readers share, a writer is alone:")
	var readers []*lockkeeper.Hold
	for _, lock := range []*lockkeeper.ReadWrite{s.here, s.here, s.there} {
		hold, err := lock.Read().Acquire(ctx)
		if err != nil {
			return err
		}
		readers = append(readers, hold)
	}
	status, err := s.here.Read().Inspect(ctx)
	if err != nil {
		return err
	}
	s.say("%d readers in %d processes", len(readers), status.Holders)

	if err := refused(s.there.Write().TryAcquire(ctx)); err != nil {
		return fmt.Errorf("a writer beside readers: %w", err)
	}
	written := make(chan error, 1)
	var writer *lockkeeper.Hold
	go func() {
		var err error
		writer, err = s.there.Write().Acquire(ctx)
		written <- err
	}()
	for _, hold := range readers {
		if err := hold.Release(ctx); err != nil {
			return err
		}
	}
	if err := <-written; err != nil {
		return err
	}
	s.say("a writer, when all of them have left")
	for _, lock := range []*lockkeeper.Lock{s.here.Read(), s.here.Write()} {
		if err := refused(lock.TryAcquire(ctx)); err != nil {
			return fmt.Errorf("somebody beside a writer: %w", err)
		}
	}
	s.say("nobody beside it")
	return writer.Release(ctx)
}

// downgrade: a writer lets readers in, and stays to read what it has written: no other
// writer comes between.
func (s *story) downgrade(ctx context.Context) error {
	fmt.Fprintln(s.out, "a writer becomes a reader:")
	writing, err := s.here.Write().Acquire(ctx)
	if err != nil {
		return err
	}
	// The context says who asks.
	reading, err := s.here.Read().Acquire(writing.Context())
	if err != nil {
		return err
	}
	if err := refused(s.there.Read().TryAcquire(ctx)); err != nil {
		return fmt.Errorf("a reader beside a writer: %w", err)
	}
	s.say("it writes and reads, and nobody else reads")
	if err := writing.Release(ctx); err != nil {
		return err
	}
	other, err := s.there.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	if err := refused(s.there.Write().TryAcquire(ctx)); err != nil {
		return fmt.Errorf("a writer beside readers: %w", err)
	}
	if !reading.Valid() || reading.Context().Err() != nil {
		return fmt.Errorf("it reads no more: %w", reading.Err())
	}
	s.say("it only reads, others read as well, and nobody writes")
	return errors.Join(other.Release(ctx), reading.Release(ctx))
}

// noUpgrade: two readers who both wanted to write would wait for each other.
func (s *story) noUpgrade(ctx context.Context) error {
	fmt.Fprintln(s.out, "a reader does not become a writer:")
	reading, err := s.here.Read().Acquire(ctx)
	if err != nil {
		return err
	}
	_, err = s.here.Write().Acquire(reading.Context())
	if !errors.Is(err, lockkeeper.ErrReentry) {
		return fmt.Errorf("a reader wanted to write: %w", err)
	}
	s.say("%v", err)
	return reading.Release(ctx)
}

// refused checks that a try was refused since somebody else has the lock.
func refused(hold *lockkeeper.Hold, err error) error {
	switch {
	case err == nil:
		return errors.Join(errors.New("was granted"), hold.Release(context.Background()))
	case errors.Is(err, lockkeeper.ErrHeld):
		return nil
	}
	return err
}
