package kinds_test

// What a MultiLock waits for, and what wakes it.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A holder of one member in the same process is a stranger like any other, whom a refusal
// leaves alone.
func TestMultiBesideItsMembers(t *testing.T) {
	t.Parallel()
	for _, kind := range memberKinds[:4] {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, a := locktest.New(t, brisk)
			member := locktest.Kinds[kind](s, a.LockName)
			one, two := lockkeeper.MultiLock(member, s.Lock(a.Name+"b")), lockkeeper.MultiLock(s.Lock(a.Name+"c"), member)
			for what, turn := range map[string]struct{ holder, wait *lockkeeper.Lock }{
				"a member, then the MultiLock": {member, one}, "the MultiLock, then a member": {one, member}, "two MultiLocks": {one, two},
			} {
				hold := locktest.Acquire(t, turn.holder)
				owners := a.Owners(t)
				for range 10 {
					locktest.Refused(t, lockkeeper.ErrHeld, turn.wait)
				}
				granted := locktest.AcquireSoon(locktest.Within(t), turn.wait)
				locktest.AwaitWaiters(t, turn.wait, 1)
				if err := hold.Ensure(locktest.Within(t), brisk.Watchdog*989/1000); err != nil { // behind whatever the waiter has sent
					t.Errorf("%s: %v", what, err)
				}
				if now := a.Owners(t); !maps.Equal(now, owners) {
					t.Errorf("%s: held by %v, and now by %v", what, owners, now)
				}
				locktest.Release(t, hold)
				locktest.Release(t, locktest.Got(t, granted).Hold)
			}
			redistest.Eventually(t, "nothing to be left", func() bool { return len(left(t, a.Name, a.Server)) == 0 })
		})
	}
}

// While a member is held elsewhere, the messages about those that a try takes and
// gives back are no reason to try again.
func TestMultiNoEcho(t *testing.T) {
	t.Parallel()
	const poll, tries = 200 * time.Millisecond, 6
	for what, names := range map[string][2]string{"other names": {"a", "b"}, "names reversed": {"b", "a"}, "one name": {"a", "a"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var links []*locktest.Remote
			var members []*lockkeeper.Lock
			base := redistest.Name(t)
			for i, server := range redistest.SharedServers(t, 2) {
				r := locktest.Far(t, server, lockkeeper.Config{Poll: poll})
				r.Name = base + names[i]
				r.Channel = "redisson_lock__channel:{" + r.Name + "}"
				links, members = append(links, r), append(members, r.Lock(r.Name), r.FencedLock(r.Name+"+"))
			}
			whole := lockkeeper.MultiLock(members...)
			for i, r := range links {
				r.TakeAs(t, locktest.Redisson, -1)
				ctx, cancel := context.WithCancel(context.Background())
				granted := locktest.AcquireSoon(ctx, whole)
				locktest.AwaitWaiters(t, whole, 1)
				r.AwaitSubscribers(t, 1)
				looks, began := counted(r.Proxy, redistest.Script(scripts.AcquireAll.SHA)), time.Now()
				redistest.Eventually(t, "a few refusals", func() bool { return looks.Load() >= tries })
				// One may have been under way, and one was due.
				if took := time.Since(began); took < (tries-3)*poll/2 {
					t.Errorf("held on server %d: %d tries in %v, with a poll bound of %v", i, tries, took, poll)
				}
				cancel()
				locktest.Ends(t, granted, context.Canceled)
				r.Unlock(t)
			}
			locktest.Passes(t, whole)
		})
	}
}

// The subscriber of one System is known to the actors of another as soon as there is one.
func TestMultiWaitsOnANewSystem(t *testing.T) {
	t.Parallel()
	k := locktest.NewKey(t, redistest.Shared(t))
	k.TakeAs(t, locktest.Redisson, time.Minute)
	s := sites(t, k, lockkeeper.Config{}, 2)
	granted := locktest.AcquireSoon(locktest.Within(t), lockkeeper.MultiLock(s[0].Lock(k.Name+"0"), s[1].Lock(k.LockName), s[1].Lock(k.Name+"1")))
	k.AwaitSubscribers(t, 1)
	k.Unlock(t)
	locktest.Release(t, locktest.Got(t, granted).Hold)
}

// slowReplies holds the replies to its commands back while gate is set.
type slowReplies struct {
	rueidis.Client
	gate atomic.Pointer[chan struct{}]
	held atomic.Int64
}

func (c *slowReplies) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	result := c.Client.Do(ctx, command)
	if gate := c.gate.Load(); gate != nil {
		c.held.Add(1)
		<-*gate
	}
	return result
}

// The second member is released while the try is under way that it refuses: the waiter
// looks again at once, and not when the poll or the TTL is over.
func TestMultiHearsOfAMemberReleasedDuringTheTry(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	inner, err := lockkeeper.Connect(server.URL())
	client := &slowReplies{Client: inner}
	var heard atomic.Int64 // messages that lock actors have handled
	cfg := locktest.NoPolling
	cfg.CallTimeout = time.Minute
	s := locktest.OpenWith(t, client, err, cfg, func(system *actor.ActorSystem) {
		faultinject.Into(system, func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				next(ctx, envelope)
				if fmt.Sprintf("%T", envelope.Message) == "actors.unlocked" {
					heard.Add(1)
				}
			}
		})
	})
	keys := []locktest.Key{locktest.NewKey(t, server), locktest.NewKey(t, server)}
	slices.SortFunc(keys, func(a, b locktest.Key) int { return strings.Compare(a.Name, b.Name) })
	for _, k := range keys {
		k.TakeAs(t, locktest.Redisson, 10*time.Minute)
	}
	granted := locktest.AcquireSoon(locktest.Within(t), lockkeeper.MultiLock(s.Lock(keys[0].LockName), s.Lock(keys[1].LockName)))
	for _, k := range keys {
		k.AwaitSubscribers(t, 1)
	}
	// Each try looks at the first member's TTL.
	redistest.Eventually(t, "it has tried again since", func() bool { return server.Calls(t)["pttl"] >= 2 })
	gate := make(chan struct{})
	client.gate.Store(&gate)
	keys[0].Unlock(t)
	redistest.Eventually(t, "it tries, and the second is held", func() bool { return client.held.Load() == 1 })
	keys[1].Unlock(t)
	redistest.Eventually(t, "it has heard of both", func() bool { return heard.Load() == 2 })
	client.gate.Store(nil)
	close(gate)
	locktest.Release(t, locktest.Got(t, granted).Hold)
}
