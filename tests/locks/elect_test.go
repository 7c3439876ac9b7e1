package locks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

// A leader that is told to stop hands over at once, one that has lost the lock is a candidate
// again, and one whose work has ended is none any more.
func TestElect(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, locktest.NoPolling)
	type term struct {
		ctx context.Context
		end chan error // what ends the work, but for its context
	}
	campaign := func(site *locktest.Site) (terms chan term, stop context.CancelFunc, ended chan error) {
		ctx, stop := context.WithCancel(context.Background())
		t.Cleanup(stop)
		terms, ended = make(chan term), make(chan error, 1)
		go func() {
			ended <- site.Lock(k.LockName).Elect(ctx, func(ctx context.Context) error {
				now := term{ctx, make(chan error)}
				terms <- now
				select {
				case err := <-now.end:
					return err
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
		}()
		return terms, stop, ended
	}
	anna, stopAnna, annaEnded := campaign(s)
	first := locktest.Await(t, "the first leader", anna)
	other := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	bert, _, bertEnded := campaign(other)
	k.AwaitListener(t)

	stopAnna()
	second := locktest.Await(t, "the next leader", bert)
	if err := locktest.Await(t, "the end of the first", annaEnded); !errors.Is(err, context.Canceled) || first.ctx.Err() == nil {
		t.Errorf("the leader that was told to stop: %v", err)
	}

	locktest.Force(t, other, k)
	locktest.Await(t, "the loss", second.ctx.Done())
	third := locktest.Await(t, "another term", bert)
	if cause := context.Cause(second.ctx); !errors.Is(cause, lockkeeper.ErrLost) || third.ctx.Err() != nil {
		t.Errorf("the context of the term that was lost: %v, of the next: %v", cause, third.ctx.Err())
	}
	third.end <- errWork
	if err := locktest.Await(t, "the end of the work", bertEnded); err != errWork {
		t.Errorf("the work has ended, and Elect with %v", err)
	}
	k.IsFree(t)
}

// A candidate waits while Redis is away, and gives up what cannot be.
func TestElectGivesUp(t *testing.T) {
	t.Parallel()
	s, k := locktest.Alone(t, lockkeeper.Config{})
	k.Server.Kill(t)
	nothing := func(context.Context) error { return nil }
	elected := make(chan error, 1)
	go func() { elected <- s.Lock(k.LockName).Elect(locktest.Within(t), nothing, lockkeeper.WithWait(0)) }()
	locktest.Refused(t, lockkeeper.ErrUnavailable, s.Lock("another"))
	k.Server.Restart(t)
	if err := locktest.Await(t, "the election", elected); err != nil {
		t.Errorf("a candidate while Redis is away: %v", err)
	}
	k.Do(t, "SET", "text", "no lock")
	locktest.IsError(t, s.Lock("text").Elect(locktest.Within(t), nothing), lockkeeper.ErrRejected)
	locktest.Stop(t, s)
	locktest.IsError(t, s.Lock(k.LockName).Elect(locktest.Within(t), nothing), lockkeeper.ErrClosed)
}
