package owners

import (
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/delivery"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// newWatcher returns a Watcher, and the actors of whose end it notifies.
func newWatcher(t *testing.T) (by Watcher, terminated <-chan *actor.PID) {
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	system := actor.NewActorSystem(actor.WithDeadLetterThrottleInterval(10*time.Millisecond),
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	t.Cleanup(system.Shutdown)
	told := make(chan *actor.PID, 10)
	watcher := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, is := ctx.Message().(*actor.Terminated); is {
			told <- m.Who
		}
	}))
	return Watcher{
		Post: &delivery.Post{System: system, Host: host.New(nil, logger)}, Rules: &request.Rules{Actors: system},
		PID: watcher, Numbers: new(atomic.Uint64),
	}, told
}

// An actor that is no longer registered counts as gone only after timeout, since it may still be handling its Stopped.
// An actor that is registered is never missed, nor is an actor on another node.
func TestRemoveMissing_WaitsForTheTimeout(t *testing.T) {
	by, _ := newWatcher(t)
	system := by.Rules.Actors
	hangs, mayEnd := make(chan struct{}), make(chan struct{})
	defer close(mayEnd)
	stops := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, is := ctx.Message().(*actor.Stopped); is {
			close(hangs)
			<-mayEnd
		}
	}))
	lives := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	set := new(Set)
	dies := set.Acquire(by, stops, by.Rules.Process(stops))
	set.Acquire(by, lives, by.Rules.Process(lives))
	set.Acquire(by, actor.NewPID("other:1", "remote"), nil)
	system.Root.Stop(stops)
	<-hangs

	const timeout = 30 * time.Second
	for _, check := range []struct {
		at   time.Duration
		gone bool
	}{{at: time.Second}, {at: 20 * time.Second}, {at: 30 * time.Second}, {at: 40 * time.Second, gone: true}, {at: 99 * time.Second}} {
		gone := set.RemoveMissing(by, check.at, timeout)
		if (len(gone) == 1 && gone[0] == dies) != check.gone || len(gone) > 1 {
			t.Errorf("after %v: %d owners have gone, expected %v", check.at, len(gone), check.gone)
		}
	}
	if set.Find(stops, nil) != nil || set.Find(lives, nil) == nil || !set.InUse() {
		t.Error("the wrong owners are left")
	}
}

// Of three lives of a name, the first may still be handling its Stopped when the second has ended.
func TestTerminated_IsAboutTheLifeThatSaysSo(t *testing.T) {
	by := Watcher{Rules: &request.Rules{Actors: actor.NewActorSystem()}}
	t.Cleanup(by.Rules.Actors.Shutdown)
	life := func(n machine.Owner) *Owner {
		return &Owner{ID: n, PID: by.Rules.Actors.NewLocalPID("phoenix"), uses: 1}
	}
	first, second, third := life(1), life(2), life(3)
	set := &Set{byPID: map[pidKey]*Owner{pidKeyOf(third.PID): third}, replaced: map[pidKey][]*Owner{pidKeyOf(third.PID): {first, second}}}
	for _, notice := range []struct {
		who  *actor.PID
		gone *Owner
	}{{second.PID, second}, {by.Rules.Actors.NewLocalPID("phoenix"), first}, {third.PID, third}} {
		if gone := set.RemoveTerminated(by, notice.who); gone != notice.gone {
			t.Errorf("%+v has gone, expected %+v", gone, notice.gone)
		}
	}
}

// stopper is an actor that reaches its Stopped, and ends that when it may.
type stopper struct {
	pid             *actor.PID
	stopped, mayEnd chan struct{}
}

func (by Watcher) newStopper(t *testing.T, child *actor.Props) *stopper {
	s := &stopper{stopped: make(chan struct{}), mayEnd: make(chan struct{})}
	var err error
	s.pid, err = by.Rules.Actors.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			if child != nil {
				ctx.Spawn(child)
			}
		case *actor.Stopped:
			close(s.stopped)
			<-s.mayEnd
		}
	}), "phoenix")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func await[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came in time")
	}
	return v
}

// An actor that waits for its children to stop says each time that it is watched that it has terminated. All of these
// notices may be read when the actor is handling its Stopped: it still has its locks.
func TestTerminated_MayComeBeforeStopped(t *testing.T) {
	for how, watched := range map[string]int{"once": 1, "twice": 2} {
		t.Run(how, func(t *testing.T) {
			by, terminated := newWatcher(t)
			stopping, mayStop := make(chan struct{}), make(chan struct{})
			s := by.newStopper(t, actor.PropsFromFunc(func(ctx actor.Context) {
				if _, is := ctx.Message().(*actor.Stopping); is {
					close(stopping)
					<-mayStop
				}
			}))
			by.Rules.Actors.Root.Stop(s.pid)
			await(t, stopping)
			set := new(Set)
			owner := set.Acquire(by, s.pid, by.Rules.Process(s.pid))
			early := []*actor.PID{await(t, terminated)}
			for len(early) < watched {
				set.EndUse(by, owner)
				set.Forget(by)
				owner = set.Acquire(by, s.pid, by.Rules.Process(s.pid))
				early = append(early, await(t, terminated))
			}
			close(mayStop)
			await(t, s.stopped)
			for _, notice := range early {
				if set.RemoveTerminated(by, notice) != nil {
					t.Error("it has gone before it has stopped")
				}
			}
			close(s.mayEnd)
			for set.RemoveTerminated(by, await(t, terminated)) != owner {
				if set.Find(s.pid, nil) == nil {
					t.Fatal("another owner has gone")
				}
			}
		})
	}
}

// newLives starts two lives of a name. The set has forgotten the first one, which is stopping.
func (by Watcher) newLives(t *testing.T, set *Set) (first, second *stopper) {
	t.Helper()
	first = by.newStopper(t, nil)
	set.EndUse(by, set.Acquire(by, first.pid, by.Rules.Process(first.pid)))
	by.Rules.Actors.Root.Stop(first.pid)
	await(t, first.stopped)
	set.Forget(by)
	return first, by.newStopper(t, nil)
}

// The first life of a name is no longer watched, but is stopping then, and does not learn of that. Its notice comes
// when the second life is handling its Stopped.
func TestTerminated_MayBeOfAForgottenLife(t *testing.T) {
	by, terminated := newWatcher(t)
	set := new(Set)
	first, second := by.newLives(t, set)
	owner := set.Acquire(by, second.pid, by.Rules.Process(second.pid))
	by.Rules.Actors.Root.Stop(second.pid)
	await(t, second.stopped)
	close(first.mayEnd)
	if set.RemoveTerminated(by, await(t, terminated)) != nil {
		t.Error("the second life has gone before it has stopped")
	}
	close(second.mayEnd)
	for set.RemoveTerminated(by, await(t, terminated)) != owner {
		if set.Find(second.pid, nil) == nil {
			t.Fatal("another owner has gone")
		}
	}
}

// The lock actor may crash after it has asked, and gets the last notice once more: that is no answer.
func TestTerminated_AgainIsNoAnswer(t *testing.T) {
	by, terminated := newWatcher(t)
	set, stopper := new(Set), by.newStopper(t, nil)
	owner := set.Acquire(by, stopper.pid, by.Rules.Process(stopper.pid))
	by.Rules.Actors.Root.Stop(stopper.pid)
	await(t, stopper.stopped)
	set.RemoveTerminated(by, stopper.pid)
	for marker, times := await(t, terminated), 0; times < 3; times++ {
		if set.RemoveTerminated(by, marker) != nil {
			t.Fatal("the owner has gone before it has stopped")
		}
	}
	close(stopper.mayEnd)
	for set.RemoveTerminated(by, await(t, terminated)) != owner {
		if set.Find(stopper.pid, nil) == nil {
			t.Fatal("another owner has gone")
		}
	}
}

// The notice of a forgotten life may come even after the second life was asked whether it has stopped: it is no answer.
func TestTerminated_OfAForgottenLifeIsNoAnswer(t *testing.T) {
	by, terminated := newWatcher(t)
	set := new(Set)
	first, second := by.newLives(t, set)
	owner := set.Acquire(by, by.Rules.Actors.NewLocalPID(second.pid.Id), by.Rules.Process(second.pid))
	by.Rules.Actors.Root.Stop(second.pid)
	await(t, second.stopped)
	notice := by.Rules.Actors.NewLocalPID(second.pid.Id) // from before, and then the marker
	for range 2 {
		if set.RemoveTerminated(by, notice) != nil {
			t.Fatal("the second life has gone before it was asked")
		}
		if owner.asker == nil {
			notice = await(t, terminated)
		}
	}
	close(first.mayEnd)
	if set.RemoveTerminated(by, await(t, terminated)) != nil {
		t.Error("the second life has gone by the notice of the first")
	}
	asker := owner.asker
	close(second.mayEnd)
	for set.RemoveTerminated(by, await(t, terminated)) != owner {
		if set.Find(second.pid, nil) == nil {
			t.Fatal("another owner has gone")
		}
	}
	if _, is := by.Rules.Actors.ProcessRegistry.GetLocal(asker.Id); is {
		t.Error("the question stays")
	}
}

// newQuestion starts an owner that is asked whether it has stopped while it handles its Stopped.
func (by Watcher) newQuestion(t *testing.T, set *Set, terminated <-chan *actor.PID) (*stopper, *Owner) {
	t.Helper()
	stopper := by.newStopper(t, nil)
	owner := set.Acquire(by, stopper.pid, by.Rules.Process(stopper.pid))
	by.Rules.Actors.Root.Stop(stopper.pid)
	await(t, stopper.stopped)
	set.RemoveTerminated(by, stopper.pid)
	set.RemoveTerminated(by, await(t, terminated)) // the marker
	if owner.asker == nil {
		t.Fatal("the owner was not asked")
	}
	return stopper, owner
}

func TestForget_WithdrawsTheQuestion(t *testing.T) {
	by, terminated := newWatcher(t)
	set := new(Set)
	stopper, owner := by.newQuestion(t, set, terminated)
	set.EndUse(by, owner)
	set.Forget(by)
	if _, is := by.Rules.Actors.ProcessRegistry.GetLocal(owner.asker.Id); is {
		t.Error("the question stays")
	}
	close(stopper.mayEnd)
}

// The lock actor may have been given up when the answer comes: then it forgets no owner.
func TestTerminated_EndsTheQuestion(t *testing.T) {
	by, terminated := newWatcher(t)
	stopper, owner := by.newQuestion(t, new(Set), terminated)
	close(stopper.mayEnd)
	await(t, terminated)
	if _, is := by.Rules.Actors.ProcessRegistry.GetLocal(owner.asker.Id); is {
		t.Error("the question stays")
	}
}
