package kinds_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// slowClient holds back chosen commands of a process, while the others pass. answered counts the scripts of the process
// that Redis has carried out.
type slowClient struct {
	rueidis.Client
	scripts  []string // the SHAs of the scripts that it may hold back
	mu       sync.Mutex
	delays   []*delay
	answered atomic.Int64
}

// delay holds one command: it is sent after goesOn, and its reply is delivered after answers.
type delay struct {
	caught, sent    chan struct{}
	goesOn, answers chan struct{}
}

// delayNext holds back the next of the scripts.
func (c *slowClient) delayNext() *delay {
	d := &delay{make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delays = append(c.delays, d)
	return d
}

// take returns how many of the commands are the scripts, and the delay for them, or nil.
func (c *slowClient) take(commands []rueidis.Completed) (n int64, next *delay) {
	matches := redistest.Script(c.scripts...)
	for _, command := range commands {
		if matches(command.Commands()) {
			n++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && len(c.delays) > 0 {
		next, c.delays = c.delays[0], c.delays[1:]
	}
	return n, next
}

func (c *slowClient) Do(ctx context.Context, command rueidis.Completed) (result rueidis.RedisResult) {
	c.send([]rueidis.Completed{command}, func() { result = c.Client.Do(ctx, command) })
	return result
}

func (c *slowClient) DoMulti(ctx context.Context, commands ...rueidis.Completed) (results []rueidis.RedisResult) {
	c.send(commands, func() { results = c.Client.DoMulti(ctx, commands...) })
	return results
}

func (c *slowClient) send(commands []rueidis.Completed, send func()) {
	n, d := c.take(commands)
	if d == nil {
		send()
		c.answered.Add(n)
		return
	}
	close(d.caught)
	<-d.goesOn
	send()
	close(d.sent)
	<-d.answers
}

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
				scripts.Acquire.SHA, scripts.ReadWriteSet.SHA, scripts.AcquireAll.SHA, scripts.Release.SHA, scripts.ReadWriteRelease.SHA, scripts.SyncQueue.SHA,
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
