package locks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Without the lock, Do does not run the work.
func TestDo_SkipsWorkWithoutTheLock(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	defer s.Release(t, s.Acquire(t, k))
	err := s.Lock(k.LockName).Do(locktest.Within(t), func(context.Context) error {
		t.Error("the work was done without the lock")
		return nil
	}, lockkeeper.WithWait(0))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
}

// A loss cancels the context of the work, and Do returns the loss, once, whatever the work returns.
func TestDo_ReportsALossOnce(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	for _, result := range []func(ctx context.Context) error{
		func(context.Context) error { return nil }, context.Cause, func(context.Context) error { return errWork },
	} {
		var returned error
		err := s.Lock(k.LockName).Do(locktest.Within(t), func(ctx context.Context) error {
			locktest.ForceRelease(t, s.Lock(k.LockName), true)
			locktest.Await(t, "the loss", ctx.Done())
			returned = result(ctx)
			return returned
		})
		locktest.IsError(t, err, lockkeeper.ErrLost)
		if returned != nil && !errors.Is(err, returned) || strings.Count(err.Error(), lockkeeper.ErrLost.Error()) != 1 {
			t.Errorf("the work returned %v, Do: %v", returned, err)
		}
	}
}

// A leader that resigns has handed over when resign returns, whatever error its work returns.
func TestLead_HandsOverWhenItResigns(t *testing.T) {
	t.Parallel()
	var log redistest.Log
	cfg := locktest.NoPolling
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s, k := locktest.New(t, cfg)
	leads := make(chan string)
	lead := func(name string, result error) func(context.Context) error {
		return s.Lock(k.LockName).Lead(func(ctx context.Context) error {
			leads <- name
			<-ctx.Done()
			return result
		})
	}
	for _, result := range []error{nil, context.Canceled, errWork} {
		leader := lead("leader", result)
		locktest.Await(t, "the leader", leads)
		standby := lead("standby", nil)
		s.AwaitWaiters(t, k, 1)
		if err := leader(locktest.Within(t)); err != nil && err != errWork || (err == errWork) != (result == errWork) {
			t.Errorf("its work returned %v: it resigns with %v", result, err)
		}
		locktest.Await(t, "the standby", leads)
		third := lead("third", nil)
		s.AwaitWaiters(t, k, 1)
		for _, resign := range []func(context.Context) error{third, standby} {
			if err := resign(locktest.Within(t)); err != nil {
				t.Errorf("it resigns with %v", err)
			}
		}
		k.IsFree(t)
	}
}

// A leader whose work fails is a candidate again, and logs it. One whose work is done is not.
func TestLead_LeadsAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	var log redistest.Log
	s, k := locktest.New(t, lockkeeper.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	leads := make(chan func() error)
	resign := s.Lock(k.LockName).Lead(func(context.Context) error { return (<-leads)() })
	for _, end := range []func() error{
		func() error { return errWork },
		func() error { runtime.Goexit(); return nil },
		func() error { return nil },
	} {
		select {
		case leads <- end:
		case <-locktest.Within(t).Done():
			t.Fatal("it does not lead again")
		}
	}
	redistest.Eventually(t, "its last line", func() bool { return strings.Contains(log.String(), "does not lead again") })
	locktest.OK(t, resign(locktest.Within(t)))
	k.IsFree(t)
	locktest.Stop(t, s)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], errWork.Error()) ||
		!strings.Contains(lines[1], "runtime.Goexit") || strings.Contains(lines[2], "ERROR") {
		t.Errorf("logged:\n%s", log.String())
	}
}

// A leader that resigns before it leads again reports why it has failed.
func TestLead_ReportsTheLastFailure(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	failed := make(chan bool, 1000)
	resign := s.Lock(k.LockName).Lead(func(context.Context) error { failed <- true; return errWork })
	locktest.Await(t, "the failure", failed)
	if err := resign(locktest.Within(t)); err != errWork {
		t.Errorf("it resigns with %v", err)
	}
}

// resign returns nil only if the work returned nil or the end of its own context. It returns any other error, also
// while Redis does not confirm the release.
func TestLead_ResignReturnsTheErrorOfTheWork(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{})
	s.SkipCloseCheck = true
	elsewhere, cancel := context.WithCancel(context.Background())
	cancel()
	works := map[string]struct {
		result func(ctx context.Context) error
		says   []error // what the error of resign wraps; none if it is nil
	}{
		"nil":               {func(context.Context) error { return nil }, nil},
		"its error":         {func(ctx context.Context) error { return ctx.Err() }, nil},
		"its cause":         {context.Cause, nil},
		"its cause wrapped": {func(ctx context.Context) error { return fmt.Errorf("the work: %w", context.Cause(ctx)) }, nil},
		"another error":     {func(context.Context) error { return errWork }, []error{errWork}},
		"joined after":      {func(ctx context.Context) error { return errors.Join(ctx.Err(), errWork) }, []error{errWork, context.Canceled}},
		"joined before":     {func(ctx context.Context) error { return errors.Join(errWork, context.Cause(ctx)) }, []error{errWork}},
		"two wrapped":       {func(ctx context.Context) error { return fmt.Errorf("%w: %w", errWork, ctx.Err()) }, []error{errWork}},
		"another context":   {func(context.Context) error { return fmt.Errorf("save: %w", elsewhere.Err()) }, []error{context.Canceled}},
	}
	for _, confirmed := range []bool{true, false} {
		leads, paused := make(chan bool, len(works)), make(chan bool)
		resigned := map[string]chan error{}
		for what, work := range works {
			resign := s.Lock(k.LockName + what).Lead(func(ctx context.Context) error {
				leads <- true
				<-ctx.Done()
				<-paused
				return work.result(ctx)
			})
			ended := make(chan error, 1)
			resigned[what] = ended
			locktest.Await(t, "the leader", leads)
			go func() { ended <- resign(context.Background()) }()
		}
		if !confirmed {
			k.Server.Pause(t)
		}
		close(paused)
		for what, ended := range resigned {
			err := locktest.Await(t, "the end of "+what, ended)
			says := works[what].says
			if !confirmed {
				says = append(slices.Clone(says), lockkeeper.ErrNotReleased)
			}
			if (err == nil) != (len(says) == 0) || slices.ContainsFunc(says, func(e error) bool { return !errors.Is(err, e) }) {
				t.Errorf("the work returned %s, the release is confirmed: %v: it resigns with %v", what, confirmed, err)
			}
		}
	}
	k.Server.Resume(t)
}

// A candidate waits while Redis is unreachable, and returns permanent errors.
func TestElect_WaitsOnlyForTransientErrors(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{})
	k.Server.Kill(t)
	nothing := func(context.Context) error { return nil }
	elected := locktest.Go(func() error { return s.Lock(k.LockName).Elect(locktest.Within(t), nothing, lockkeeper.WithWait(0)) })
	locktest.ExpectRefused(t, lockkeeper.ErrUnavailable, s.Lock("another"))
	k.Server.Restart(t)
	if err := locktest.Await(t, "the election", elected); err != nil {
		t.Errorf("a candidate while Redis is away: %v", err)
	}
	k.Do(t, "SET", "text", "no lock")
	locktest.IsError(t, s.Lock("text").Elect(locktest.Within(t), nothing), lockkeeper.ErrRejected)
	locktest.Stop(t, s)
	locktest.IsError(t, s.Lock(k.LockName).Elect(locktest.Within(t), nothing), lockkeeper.ErrClosed)
}
