package locks_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// follower follows a lock, and passes on what it is sent.
type follower struct {
	lock *lockkeeper.Lock
	seen chan *lockkeeper.Changed
}

func (f follower) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		f.lock.Follow(ctx)
	case *lockkeeper.Changed:
		f.seen <- m
	case string:
		panic(m)
	}
}

// An actor is sent the state of a lock and each change of its holder, also after its restart, until it stops or the
// System is closed. Then no goroutine and no subscription is left.
func TestFollow_TellsAnActorOfChanges(t *testing.T) {
	t.Parallel()
	here, there, k := locktest.NewTwo(t, lockkeeper.Config{Application: "followed"})
	f := follower{here.Lock(k.LockName), make(chan *lockkeeper.Changed, 100)}
	spawn := func() *actor.PID {
		return here.Actors.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return f }))
	}
	next := func(is func(*lockkeeper.Changed) bool) (m *lockkeeper.Changed) {
		t.Helper()
		for m == nil || !is(m) {
			m = locktest.Await(t, "the change", f.seen)
			if m.Lock != k.LockName || m.Follow == nil {
				t.Errorf("sent %+v", m)
			}
		}
		return m
	}
	free := func(m *lockkeeper.Changed) bool { return m.Err == nil && !m.Locked }
	held := func(m *lockkeeper.Changed) bool { return m.Err == nil && heldBy(m.Change, there, "here I am") }
	listeners := func(n int64) func() bool {
		return func() bool { return k.Server.Subscribers(t, keyspace.Channel(k.Name)) == n }
	}

	pid := spawn()
	first := next(free)
	hold := locktest.Must(there.Lock(k.LockName).Acquire(locktest.Within(t), lockkeeper.WithNote("here I am")))(t)
	next(held)
	here.Actors.Root.Send(pid, "restart")
	if again := next(held); again.Follow.Equal(first.Follow) {
		t.Error("the restarted actor hears from what the last instance has spawned")
	}
	locktest.Release(t, hold)
	next(free)
	redistest.Eventually(t, "one subscription", listeners(1))
	locktest.Check(t, here.Actors.Root.StopFuture(pid).Wait())
	redistest.Eventually(t, "the end of the subscription", listeners(0))

	pid = spawn()
	follows := next(free).Follow
	locktest.Check(t, here.Close(locktest.Within(t)))
	locktest.IsError(t, next(func(m *lockkeeper.Changed) bool { return m.Err != nil }).Err, lockkeeper.ErrClosed)
	here.AwaitEnd(t, follows)
	locktest.Check(t, here.Actors.Root.StopFuture(pid).Wait())
}
