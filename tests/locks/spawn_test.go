package locks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// spawner is an actor that spawns works. It runs the functions that it is sent.
func spawner(s *locktest.Site) (do func(func(actor.Context)), pid *actor.PID, done chan *lockkeeper.Done) {
	done = make(chan *lockkeeper.Done, 10)
	pid = s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case func(actor.Context):
			m(ctx)
		case *lockkeeper.Done:
			done <- m
		}
	}))
	return func(f func(actor.Context)) { s.Actors.Root.Send(pid, f) }, pid, done
}

// The works of one actor exclude each other, and each ends with one Done.
func TestSpawn_RunsOneWorkAtATime(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	lock, spawned, begun, results := s.Lock(k.LockName), make(chan []*actor.PID), make(chan int, 3), make(chan func() error)
	do, _, done := spawner(s)
	do(func(ctx actor.Context) {
		var works []*actor.PID
		for i := range 4 {
			works = append(works, lock.Spawn(ctx, func(ctx context.Context) error {
				begun <- i
				locktest.ExpectValid(t, lockkeeper.HoldFrom(ctx))
				return (<-results)()
			}))
		}
		spawned <- works
	})
	works := locktest.Await(t, "four works", spawned)
	ends := func(i int, want string) {
		t.Helper()
		if d := locktest.Await(t, "the end of a work", done); !d.Work.Equal(works[i]) ||
			d.Lock != k.LockName || !strings.HasSuffix(fmt.Sprint(d.Err), want) {
			t.Errorf("it ends with %+v, want %s", d, want)
		}
	}
	first := locktest.Await(t, "a work", begun)
	s.AwaitWaiters(t, k, 3)
	withdrawn := (first + 1) % 4
	s.Actors.Root.Stop(works[withdrawn])
	ends(withdrawn, "is stopped: the request was withdrawn")

	results <- func() error { return nil }
	ends(first, "<nil>")
	second := locktest.Await(t, "the next work", begun)
	results <- func() error { return errWork }
	ends(second, errWork.Error())
	third := locktest.Await(t, "the last work", begun)
	results <- func() error { panic("crash") }
	ends(third, "the work has panicked: crash")
	k.IsFree(t)
}

// The sender of a request for work gets the answer, even if the actor ends or the answer function panics.
func TestRespond_AnswersEverySender(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	begun := make(chan bool, 3)
	pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if answer, ok := ctx.Message().(func(error) any); ok {
			s.Lock(k.LockName).Respond(ctx, func(ctx context.Context) error {
				begun <- true
				<-ctx.Done()
				return context.Cause(ctx)
			}, answer)
		}
	}))
	client, other, root := s.Probe(t), s.Probe(t), s.Actors.Root
	root.RequestWithCustomSender(pid, func(err error) any { return err }, client.Pid)
	locktest.Await(t, "the work", begun)
	root.RequestWithCustomSender(pid, func(error) any { panic("crash") }, other.Pid)
	root.Send(pid, func(err error) any { return err }) // without a sender
	s.AwaitWaiters(t, k, 2)
	locktest.Check(t, root.StopFuture(pid).Wait())
	if err := locktest.Next[error](t, client); !errors.Is(err, lockkeeper.ErrStopped) {
		t.Errorf("the client is answered %v", err)
	}
	if failed := locktest.Next[*messages.Failed](t, other); failed.Reason != messages.Reason_REASON_CRASHED {
		t.Errorf("the other is answered %v", failed)
	}
	k.AwaitFree(t) // a grant to the withdrawn request is given back
}

// An actor that is stopping still receives messages: works that it spawns then must not keep it from stopping.
func TestSpawn_DoesNotKeepItsActorFromStopping(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	do, pid, _ := spawner(s)
	begun, mayEnd, spawned := make(chan bool, 2), make(chan struct{}), make(chan bool)
	work := func(ctx context.Context) error {
		begun <- true
		<-ctx.Done()
		<-mayEnd
		return nil
	}
	do(func(ctx actor.Context) { s.Lock(k.LockName).Spawn(ctx, work) })
	locktest.Await(t, "the work", begun)
	stopped := s.Actors.Root.StopFuture(pid)
	do(func(ctx actor.Context) {
		s.Lock(k.LockName+" too").Spawn(ctx, work)
		close(spawned)
	})
	locktest.Await(t, "another work", spawned)
	close(mayEnd)
	locktest.Check(t, stopped.Wait())
}

// Ask waits for the one answer, until its context or the actor ends, and leaves nothing behind.
func TestAsk_ReturnsOneAnswer(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	asked, processes := make(chan bool, 1), 0
	pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case string:
			ctx.Respond(m + " to you")
			ctx.Respond("once more")
		case int:
			asked <- true
		case func():
			m()
		}
	}))
	processes = s.Processes()
	if answer, err := lockkeeper.Ask(t.Context(), s.Actors.Root, pid, "hello"); answer != "hello to you" || err != nil {
		t.Errorf("answered %v, %v", answer, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-asked; cancel(errWork) }()
	if answer, err := lockkeeper.Ask(ctx, s.Actors.Root, pid, 1); err != errWork {
		t.Errorf("not answered, but %v, %v", answer, err)
	}
	if now := s.Processes(); now != processes {
		t.Errorf("%d processes, and before %d", now, processes)
	}

	// A stopping actor drops its mail, and notifies only its watchers.
	busy, mayEnd := make(chan bool), make(chan bool)
	s.Actors.Root.Send(pid, func() { busy <- true; <-mayEnd })
	locktest.Await(t, "a long message", busy)
	dropped := locktest.Go(func() error {
		_, err := lockkeeper.Ask(t.Context(), s.Actors.Root, pid, "hello")
		return err
	})
	redistest.Eventually(t, "the question", func() bool { return s.Processes() == processes+1 })
	stopped := s.Actors.Root.StopFuture(pid)
	close(mayEnd)
	locktest.Check(t, stopped.Wait())
	if err := locktest.Await(t, "the end of the question", dropped); err != actor.ErrDeadLetter {
		t.Errorf("of an actor that stops: %v", err)
	}
	if answer, err := lockkeeper.Ask(t.Context(), s.Actors.Root, pid, "hello"); err != actor.ErrDeadLetter {
		t.Errorf("of an actor that has stopped: %v, %v", answer, err)
	}
}

// proto.actor says that an actor has terminated while it waits for its children to stop. It still answers then.
func TestAsk_WaitsForTheChildrenOfItsActor(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	stopping, mayStop := make(chan struct{}), make(chan struct{})
	var later *actor.PID
	pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, is := ctx.Message().(*actor.Stopping); is {
					close(stopping)
					<-mayStop
				}
			}))
		case string:
			later = ctx.Sender()
		case int:
			ctx.Send(later, m)
		}
	}))
	s.Actors.Root.Stop(pid)
	locktest.Await(t, "the child to stop", stopping)
	type reply struct {
		answer any
		err    error
	}
	ask := func() <-chan reply {
		processes := s.Processes()
		replies := locktest.Go(func() reply {
			answer, err := lockkeeper.Ask(t.Context(), s.Actors.Root, pid, "hello")
			return reply{answer, err}
		})
		redistest.Eventually(t, "the question", func() bool { return s.Processes() == processes+1 })
		return replies
	}
	replies := ask()
	s.Actors.Root.Send(pid, 1)
	if got := locktest.Await(t, "the answer", replies); got != (reply{answer: 1}) {
		t.Errorf("answered %v", got)
	}
	replies = ask()
	close(mayStop)
	if got := locktest.Await(t, "the end of the question", replies); got != (reply{err: actor.ErrDeadLetter}) {
		t.Errorf("of an actor that has stopped: %v", got)
	}
}

// proto.actor tells no watcher of an actor that panics over its Stopped.
func TestAsk_EndsWithAnActorThatPanicsWhenStopped(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	asked := make(chan any, 1)
	pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case string:
			asked <- m
		case *actor.Stopped:
			panic("the host's own code")
		}
	}))
	ended := locktest.Go(func() error {
		_, err := lockkeeper.Ask(t.Context(), s.Actors.Root, pid, "hello")
		return err
	})
	locktest.Await(t, "the question", asked)
	s.Actors.Root.Stop(pid)
	if err := locktest.Await(t, "the end of the question", ended); err != actor.ErrDeadLetter {
		t.Error(err)
	}
}

// An actor stops or restarts only after its work has ended and the lock is free.
func TestSpawn_EndsBeforeItsActor(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *locktest.Site, pid *actor.PID, ended func()){
		"stopped": func(s *locktest.Site, pid *actor.PID, ended func()) {
			if err := s.Actors.Root.StopFuture(pid).Wait(); err != nil {
				panic(err)
			}
			ended()
		},
		"crashed": func(s *locktest.Site, pid *actor.PID, ended func()) {
			s.Actors.Root.Send(pid, func(actor.Context) { panic("crash") })
			s.Actors.Root.Send(pid, func(actor.Context) { ended() }) // after the restart
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := locktest.New(t, lockkeeper.Config{})
			do, pid, done := spawner(s)
			stopping, mayEnd, ended := make(chan error), make(chan struct{}), make(chan struct{})
			do(func(ctx actor.Context) {
				s.Lock(k.LockName).Spawn(ctx, func(ctx context.Context) error {
					stopping <- nil
					<-ctx.Done()
					stopping <- context.Cause(ctx)
					<-mayEnd
					return errWork
				})
			})
			locktest.Await(t, "the work", stopping)
			go end(s, pid, func() { close(ended) })
			if cause := locktest.Await(t, "the end of the context", stopping); !errors.Is(cause, lockkeeper.ErrStopped) {
				t.Errorf("the context ends with %v", cause)
			}
			k.HeldBy(t, s, "1")
			locktest.NotYet(t, ended, "the actor has not waited for its work")
			close(mayEnd)
			locktest.Await(t, "the end of the actor", ended)
			k.IsFree(t)
			if name == "crashed" {
				if d := locktest.Await(t, "the Done after the restart", done); !errors.Is(d.Err, errWork) {
					t.Errorf("the work ended with %v", d.Err)
				}
			}
		})
	}
}
