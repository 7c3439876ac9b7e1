package kinds_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// The lock actor of a waiter is given up. It removes the entry in the wait queue, which Redis adds after the cleanup.
func TestWaitQueue_ActorGivenUpRemovesLateEntry(t *testing.T) {
	t.Parallel()
	plain := func(s *locktest.Site, name string) *lockkeeper.Lock { return s.Lock(name) }
	for kind, of := range map[string]struct {
		lock, waits func(s *locktest.Site, name string) *lockkeeper.Lock
		queue       string
	}{
		"plain": {plain, plain, "lockkeeper_wait_queue"},
		"write": {
			func(s *locktest.Site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Write() },
			func(s *locktest.Site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Write() }, "lockkeeper_read_write_queue",
		},
		"fair": {
			func(s *locktest.Site, name string) *lockkeeper.Lock { return s.FairLock(name) },
			func(s *locktest.Site, name string) *lockkeeper.Lock { return s.FairLock(name) }, "redisson_lock_queue",
		},
		"multi": {plain, func(s *locktest.Site, name string) *lockkeeper.Lock {
			return lockkeeper.MultiLock(s.Lock(name), s.Lock(name+" too"))
		}, "lockkeeper_wait_queue"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server, name := redistest.Shared(t), redistest.Name(t)
			faults := &locktest.FaultInjector{}
			client := &slowClient{Client: locktest.Connect(t, server.URL()), scripts: []string{
				scripts.Acquire.SHA, scripts.ReadWriteSet.SHA, scripts.AcquireAll.SHA, scripts.Release.SHA, scripts.ReadWriteRelease.SHA,
			}}
			s := locktest.OpenWith(t, client, nil, locktest.NoPolling, func(s *actor.ActorSystem) { faultinject.Into(s, faults.Middleware) })
			hold := locktest.Acquire(t, of.lock(locktest.Open(t, server.URL(), locktest.NoPolling), name))
			listen(t, s, name)
			try := client.delayNext()
			waits := locktest.AcquireSoon(locktest.Within(t), of.waits(s, name))
			locktest.Await(t, "the try", try.caught)
			before := client.answered.Load()
			faults.Hit(func(m any) bool { return faultinject.TypeOf(m) == "*request.Call" }, nil)
			redistest.Eventually(t, "the actor to be given up", func() bool {
				_, _ = of.waits(s, name).Inspect(locktest.Within(t))
				return len(waits) > 0
			})
			faults.Hit(nil, nil)
			locktest.ExpectEnd(t, waits, lockkeeper.ErrCrashed)
			redistest.Eventually(t, "the cleanup", func() bool { return client.answered.Load() > before })
			entries := func() int { return len(server.Keys(t, of.queue+":{"+name+"}")) }
			close(try.goesOn)
			locktest.Await(t, "the command in Redis", try.sent)
			if entries() != 1 {
				t.Error("the try has added no entry")
			}
			close(try.answers)
			redistest.Eventually(t, "the end of the entry", func() bool { return entries() == 0 })
			locktest.Release(t, hold)
			locktest.Stop(t, s)
		})
	}
}

// listen lets a process wait for another lock for a moment, so that its next entry listens.
func listen(t *testing.T, s *locktest.Site, name string) {
	other := name + " before"
	before := locktest.Acquire(t, s.Lock(other))
	ctx, cancel := context.WithTimeout(locktest.Within(t), 50*time.Millisecond)
	defer cancel()
	locktest.Fails(s.Lock(other).Acquire(ctx))(t, context.DeadlineExceeded)
	locktest.Release(t, before)
}
