// Fair shows a lock that is granted in the order in which it was asked for, over several
// processes. A plain lock is passed on within a process first, since that is fast; a fair
// one costs a round trip for each grant, and nobody overtakes.
//
//	go run ./examples/fair
//
// needs nothing but Go: the Redis is inside the program. With -redis redis://…
// the same happens on a real one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/embedded"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/program"
	"github.com/lockkeeper-go/lockkeeper/internal/quiet"
)

const (
	prefix    = "fair-example:"
	patience  = 20 * time.Second // how long anything may take before it has gone wrong
	processes = 3
	rounds    = 3
)

func main() { program.Main("fair", play) }

// granted is what became of one who asked.
type granted struct {
	who string
	err error
}

func play(redis *embedded.Redis, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var desks []*lockkeeper.Lock // the same lock, seen from each process
	for range processes {
		locks, err := lockkeeper.New(quiet.ActorSystem(), redis, lockkeeper.Config{KeyPrefix: prefix})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, locks.Close(context.WithoutCancel(ctx))) }()
		desks = append(desks, locks.FairLock("desk"))
	}

	first, err := desks[0].Acquire(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "somebody has the lock, and others come, one after the other:")
	served := make(chan granted)
	var came []string
	var leave context.CancelFunc
	for i := range processes * rounds {
		who := fmt.Sprintf("%c%d", 'A'+i%processes, i/processes+1) // A1 is the first of process A
		wait, cancel := context.WithCancel(ctx)
		defer cancel()
		if who == "B2" {
			leave = cancel
		}
		go ask(wait, desks[i%processes], who, served)
		came = append(came, who)
		if err := until(ctx, desks[0], len(came)); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "  came     %s\n", strings.Join(came, " "))

	// Who gives up leaves no gap.
	leave()
	if gone := <-served; gone.who != "B2" || !errors.Is(gone.err, context.Canceled) {
		return fmt.Errorf("%s: %w", gone.who, gone.err)
	}
	came = slices.DeleteFunc(came, func(who string) bool { return who == "B2" })
	if err := until(ctx, desks[0], len(came)); err != nil {
		return err
	}
	fmt.Fprintf(out, "  left     B2\n")

	if err := first.Release(ctx); err != nil {
		return err
	}
	var order []string
	for range came {
		one := <-served
		if one.err != nil {
			return fmt.Errorf("%s: %w", one.who, one.err)
		}
		order = append(order, one.who)
	}
	fmt.Fprintf(out, "  served   %s\n", strings.Join(order, " "))
	if !slices.Equal(order, came) {
		return errors.New("that is another order")
	}
	return nil
}

// ask waits for the lock. It tells of the grant while it holds the lock, so that what is
// told is in the order of the grants.
func ask(ctx context.Context, desk *lockkeeper.Lock, who string, served chan<- granted) {
	hold, err := desk.Acquire(ctx)
	served <- granted{who, err}
	if err == nil {
		_ = hold.Release(context.WithoutCancel(ctx)) // if it fails, the next is not served in time
	}
}

// until waits until so many stand in the queue, over all processes.
func until(ctx context.Context, desk *lockkeeper.Lock, n int) error {
	for {
		status, err := desk.Inspect(ctx)
		switch {
		case err != nil:
			return err
		case status.Subscribers == n:
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}
