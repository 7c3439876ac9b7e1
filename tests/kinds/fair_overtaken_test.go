package kinds_test

// Commands of one process about a fair lock are sent by several goroutines, and on several connections if the host's
// client has them. So Redis may carry them out in another order than the actor has sent them.

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
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// slowClient holds back chosen commands of a process, while the others pass. answered counts those of SyncQueue that
// Redis has carried out.
type slowClient struct {
	rueidis.Client
	scripts  []string // the SHAs of those that it holds back; SyncQueue if there are none
	mu       sync.Mutex
	delays   []*delay
	answered atomic.Int64
}

// delay is for one command: it is sent after goesOn, and its reply is delivered after answers.
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
	matches := redistest.Script(append(c.scripts, scripts.SyncQueue.SHA)...)
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

// overtaken is a process whose holder of a fair lock releases it while the command that enrols a waiter is held back.
type overtaken struct {
	fairKey
	t      *testing.T
	s      *locktest.Site
	client *slowClient
	faults *locktest.FaultInjector
	hold   *lockkeeper.Hold
}

// A waiter leaves while the command that enrols it is under way, and the lock is released. Whichever command Redis
// carries out last, and whichever reply comes last, no entry is left: the lock is free for other processes and for a
// MultiLock at once, and Close does not wait for the next poll.
func TestFair_LateCommandAddsNoWaiterThatHasLeft(t *testing.T) {
	within := func(s *locktest.Site, k fairKey, options ...lockkeeper.Option) (leave func(), end <-chan locktest.Grant) {
		ctx, cancel := context.WithCancel(locktest.Within(t))
		return cancel, locktest.AcquireSoon(ctx, k.of(s), options...)
	}
	for way, leaves := range map[string]func(o *overtaken) (leave func()){
		"a cancel": func(o *overtaken) func() {
			cancel, end := within(o.s, o.fairKey)
			return func() { cancel(); locktest.Await(o.t, "the end of the wait", end) }
		},
		"a wait that is over": func(o *overtaken) func() {
			_, end := within(o.s, o.fairKey, lockkeeper.WithWait(2*time.Second))
			return func() { locktest.Await(o.t, "the end of the wait", end) }
		},
		"the death of an actor": func(o *overtaken) func() {
			p := o.s.Probe(o.t)
			p.Send(&messages.Acquire{Lock: locktest.KindMessage("fair", o.LockName)})
			return func() {
				locktest.AwaitWaiters(o.t, o.of(o.s), 1)
				p.Die()
				locktest.AwaitWaiters(o.t, o.of(o.s), 0)
			}
		},
	} {
		for _, replies := range []string{"in order", "in the other order"} {
			t.Run(way+", replies "+replies, func(t *testing.T) {
				t.Parallel()
				o := newOvertaken(t)
				enrols := o.client.delayNext()
				leave := leaves(o)
				locktest.Await(t, "the command that enrols the waiter", enrols.caught)
				leave()
				releases := o.client.delayNext()
				released := make(chan error, 1)
				go func() { released <- o.hold.Release(locktest.Within(t)) }()
				close(releases.goesOn)
				locktest.Await(t, "the release in Redis", releases.sent)
				if replies == "in order" {
					close(releases.answers)
					o.expect(locktest.Await(t, "the release", released))
				}
				handled := make(chan struct{}, 100)
				o.faults.Hit(nil, func(m any) bool {
					if faultinject.TypeOf(m) == "*kinds.Reply" {
						handled <- struct{}{}
					}
					return false
				})
				close(enrols.goesOn)
				locktest.Await(t, "the command in Redis", enrols.sent)
				if queue := o.entries(t); len(queue) != 0 {
					t.Errorf("the queue is %v", queue)
				}
				close(enrols.answers)
				locktest.Await(t, "the reply about the waiter", handled)
				if replies != "in order" {
					close(releases.answers)
					o.expect(locktest.Await(t, "the release", released))
				}
				o.expectFree()
				locktest.Stop(t, o.s)
			})
		}
	}
}

func newOvertaken(t *testing.T) *overtaken {
	k := newFairKey(t, redistest.Shared(t))
	client, faults := &slowClient{Client: locktest.Connect(t, k.Server.URL())}, &locktest.FaultInjector{}
	s := locktest.OpenWith(t, client, nil, locktest.NoPolling, func(s *actor.ActorSystem) { faultinject.Into(s, faults.Middleware) })
	return &overtaken{k, t, s, client, faults, locktest.Acquire(t, k.of(s))}
}

func (o *overtaken) expect(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Error(err)
	}
}

// expectFree waits until nothing is left, and checks that another process gets the lock at once, also as a member.
func (o *overtaken) expectFree() {
	o.t.Helper()
	o.awaitNothing(o.t)
	other := locktest.Open(o.t, o.Server.URL(), locktest.NoPolling)
	for _, l := range []*lockkeeper.Lock{o.of(other), lockkeeper.MultiLock(o.of(other), other.Lock(o.LockName+" too"))} {
		hold, err := l.TryAcquire(locktest.Within(o.t))
		if err != nil {
			o.t.Fatal(err)
		}
		locktest.Release(o.t, hold)
	}
}
