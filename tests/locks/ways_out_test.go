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
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// endings are the ways in which work ends, each with a text that its error contains.
var endings = map[string]struct {
	end   work
	words string
}{
	"nil":     {func(context.Context) error { return nil }, ""},
	"error":   {func(context.Context) error { return errWork }, errWork.Error()},
	"cause":   {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, ""},
	"panic":   {func(context.Context) error { panic("crash") }, "crash"},
	"goexit":  {func(context.Context) error { runtime.Goexit(); return nil }, "runtime.Goexit"},
	"goexits": {func(ctx context.Context) error { <-ctx.Done(); runtime.Goexit(); return nil }, "runtime.Goexit"},
}

// An api runs work under a lock. It sends the error that it reports, or errOnlyLogged if it cannot report an error. The
// end of ctx ends the work.
type api func(ctx context.Context, s *locktest.Site, lock *lockkeeper.Lock, do work, reports chan<- error)

var errOnlyLogged = errors.New("reported only in the log")

// reporting sends what a call returns, or errOnlyLogged if it does not return.
func reporting(call func() error, reports chan<- error) {
	report := errOnlyLogged
	defer func() {
		_ = recover()
		reports <- report
	}()
	report = call()
}

var apis = map[string]api{
	"Do": func(ctx context.Context, _ *locktest.Site, lock *lockkeeper.Lock, do work, reports chan<- error) {
		reporting(func() error { return lock.Do(ctx, do) }, reports)
	},
	"Elect": func(ctx context.Context, _ *locktest.Site, lock *lockkeeper.Lock, do work, reports chan<- error) {
		reporting(func() error { return lock.Elect(ctx, do) }, reports)
	},
	"Lead": func(ctx context.Context, _ *locktest.Site, lock *lockkeeper.Lock, do work, reports chan<- error) {
		resign := lock.Lead(do)
		<-ctx.Done()
		reports <- resign(context.Background())
	},
	"LeaderProps": func(ctx context.Context, s *locktest.Site, lock *lockkeeper.Lock, do work, reports chan<- error) {
		pid := s.Actors.Root.Spawn(lock.LeaderProps(func(term context.Context) *actor.Props {
			return actor.PropsFromFunc(func(c actor.Context) {
				if _, ok := c.Message().(*actor.Started); ok {
					go reporting(func() error { return do(term) }, make(chan error, 1))
				}
			})
		}))
		<-ctx.Done()
		_ = s.Actors.Root.StopFuture(pid).Wait()
		reports <- errOnlyLogged
	},
	"Spawn": func(ctx context.Context, s *locktest.Site, lock *lockkeeper.Lock, do work, reports chan<- error) {
		spawn(ctx, s, reports, func(c actor.Context) *actor.PID { return lock.Spawn(c, do) })
	},
	"Respond": func(ctx context.Context, s *locktest.Site, lock *lockkeeper.Lock, do work, reports chan<- error) {
		spawn(ctx, s, reports, func(c actor.Context) *actor.PID {
			return lock.Respond(c, do, func(err error) any { return &lockkeeper.Done{Err: err} })
		})
	},
}

// spawn lets an actor run work, withdraws it when ctx ends, and sends the report.
func spawn(ctx context.Context, s *locktest.Site, reports chan<- error, do func(actor.Context) *actor.PID) {
	ended, works := make(chan error, 1), make(chan *actor.PID, 1)
	pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case string:
			works <- do(c)
		case *lockkeeper.Done:
			ended <- m.Err
		}
	}))
	go func() {
		answer, err := lockkeeper.Ask(context.Background(), s.Actors.Root, pid, "work")
		if done, ok := answer.(*lockkeeper.Done); ok {
			ended <- done.Err
		} else if err == nil {
			ended <- fmt.Errorf("Ask: %v", answer)
		}
	}()
	<-ctx.Done()
	s.Actors.Root.Stop(<-works)
	report := <-ended
	s.Actors.Root.Stop(pid)
	reports <- report
}

// However the work ends, and by every API, the lock is released, and the report says so.
func TestWayOut_AlwaysReleases(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	for name, api := range apis {
		for how, ending := range endings {
			if name == "Lead" && how == "panic" {
				continue // it ends the program
			}
			t.Run(name+"/"+how, func(t *testing.T) {
				key := locktest.KeyOf(k.Server, k.LockName+name+how)
				running, reports := make(chan bool, 1000), make(chan error, 1)
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				go api(ctx, s, s.Lock(key.LockName), func(ctx context.Context) error {
					running <- true
					return ending.end(ctx)
				}, reports)
				locktest.Await(t, "the work", running)
				cancel(errCalledOff)
				err := locktest.Await(t, "the report", reports)
				key.AwaitFree(t)
				if errors.Is(err, lockkeeper.ErrNotReleased) || err != errOnlyLogged && !strings.Contains(fmt.Sprint(err), ending.words) {
					t.Errorf("reported: %v", err)
				}
			})
		}
	}
}

var errCalledOff = errors.New("called off")

// However the work ends, and by every API, the report or else the log says that the release is not confirmed.
func TestWayOut_ReportsUnconfirmedRelease(t *testing.T) {
	t.Parallel()
	var log redistest.Log
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.SkipCloseCheck = true
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	running, paused := make(chan bool), make(chan struct{})
	reports := map[string]chan error{}
	for name, api := range apis {
		for how, ending := range endings {
			if name == "Lead" && how == "panic" {
				continue
			}
			way, report := name+" "+how+" "+k.LockName, make(chan error, 1)
			reports[way] = report
			go api(ctx, s, s.Lock(way), func(ctx context.Context) error {
				running <- true
				<-paused
				return ending.end(ctx)
			}, report)
		}
	}
	for range reports {
		locktest.Await(t, "the work", running)
	}
	k.Server.Pause(t)
	close(paused)
	cancel(errCalledOff)
	for way, report := range reports {
		words := strings.Fields(way)
		api, how := words[0], words[1]
		err := locktest.Await(t, "the report of "+way, report)
		onlyLogged := api == "LeaderProps" || slices.Contains([]string{"Do", "Elect"}, api) && how != "nil" && how != "error" && how != "cause"
		if err == errOnlyLogged && !onlyLogged || err != errOnlyLogged && !errors.Is(err, lockkeeper.ErrNotReleased) ||
			!strings.Contains(err.Error(), endings[how].words) && err != errOnlyLogged {
			t.Errorf("%s: %v", way, err)
		}
		redistest.Eventually(t, "a log line for "+way, func() bool {
			return slices.ContainsFunc(strings.Split(log.String(), "\n"), func(line string) bool {
				return strings.Contains(line, "a release is not confirmed") && strings.Contains(line, way)
			})
		})
	}
	k.Server.Resume(t)
}

// If the function that makes an answer ends its goroutine or returns nil, the sender gets an error: nil is no message.
func TestRespond_AnswersWhenTheAnswerFunctionFails(t *testing.T) {
	t.Parallel()
	for word, makes := range map[string]func(error) any{
		"Goexit": func(error) any { runtime.Goexit(); return nil }, "nil": func(err error) any { return err },
	} {
		s, k := locktest.New(t, lockkeeper.Config{})
		pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(string); ok {
				s.Lock(k.LockName).Respond(ctx, func(context.Context) error { return nil }, makes)
			}
		}))
		answer, err := lockkeeper.Ask(locktest.Within(t), s.Actors.Root, pid, "work")
		if failed, ok := answer.(*messages.Failed); !ok || failed.Reason != messages.Reason_REASON_CRASHED ||
			!strings.Contains(failed.Detail, word) {
			t.Errorf("answered %v, %v", answer, err)
		}
		k.AwaitFree(t)
	}
}

// The parent's supervisor restarts all children when one crashes: the work of a Spawn ends, its parent gets a Done, and
// no child stays.
func TestSpawn_RestartOfItsWorkerEndsIt(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	running, done, children := make(chan struct{}, 1), make(chan error, 1), make(chan int, 1)
	all := actor.NewAllForOneStrategy(100, time.Second, func(any) actor.Directive { return actor.RestartDirective })
	parent := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *lockkeeper.Done:
			done <- m.Err
		case string:
			s.Lock(k.LockName).Spawn(ctx, func(ctx context.Context) error {
				running <- struct{}{}
				<-ctx.Done()
				return context.Cause(ctx)
			})
			ctx.Send(ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if ctx.Message() == "crash" {
					panic("as planned")
				}
			})), m)
		case int:
			children <- len(ctx.Children())
		}
	}, actor.WithSupervisor(all)))
	s.Actors.Root.Send(parent, "work")
	locktest.Await(t, "the work", running)
	s.Actors.Root.Send(parent, "crash")
	if err := locktest.Await(t, "a Done", done); err == nil {
		t.Error("the work ended without an error")
	}
	redistest.Eventually(t, "the worker to be gone", func() bool {
		s.Actors.Root.Send(parent, 0)
		return locktest.Await(t, "the number of children", children) <= 3
	})
	locktest.Check(t, s.Actors.Root.StopFuture(parent).Wait())
	k.AwaitFree(t)
}

// A leader whose function ends its goroutine crashes, as after a panic, and its supervisor decides.
func TestLeaderActor_CrashesWhenItsFunctionExits(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	calls := make(chan int, 10)
	n := 0
	pid := s.Actors.Root.Spawn(s.Lock(k.LockName).LeaderProps(func(context.Context) *actor.Props {
		n++
		calls <- n
		if n == 1 {
			runtime.Goexit()
		}
		return actor.PropsFromFunc(func(actor.Context) {})
	}))
	for locktest.Await(t, "a term", calls) != 2 {
	}
	locktest.Check(t, s.Actors.Root.StopFuture(pid).Wait())
	k.AwaitFree(t)
}
