package lockkeeper_test

// The supervision tree from outside: what users see when actors crash or die.

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestCrashOfALockActorLosesNothing(t *testing.T) {
	// Nobody is warned of a lease at risk: a call may take a second on a busy machine.
	const watchdog = 4 * time.Second
	for _, crash := range []struct{ name, message string }{
		{"tick", "actors.tick"},
		{"reply of Redis", "*actors.replied"},
		{"request", "*messages.Release"},
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(when+" a "+crash.name, func(t *testing.T) {
				t.Parallel()
				tr := locktest.NewTree(t, lockkeeper.Config{Watchdog: watchdog})
				lock, other := redistest.Name(t), redistest.Name(t)+" spared"
				holder, sibling := tr.Client(t, "holder"), tr.Client(t, "sibling")
				sibling.Acquire(other)
				locktest.Expect[*messages.Acquired](t, sibling)
				holder.Acquire(lock)
				locktest.Expect[*messages.Acquired](t, holder)
				var waiters []*locktest.Client
				for i := range 3 {
					w := tr.Client(t, fmt.Sprint("waiter ", i))
					w.Acquire(lock)
					redistest.Eventually(t, "the waiter is queued", func() bool { return tr.Waiters(t, lock) == i+1 })
					waiters = append(waiters, w)
				}
				owner := tr.Owner(t, lock)

				if when == "before" {
					tr.Hit(locktest.Once(crash.message), nil)
				} else {
					tr.Hit(nil, locktest.Once(crash.message))
				}
				stranger := tr.Client(t, "stranger")
				stranger.Request(&messages.Release{Lock: &messages.Lock{Name: lock}, HoldId: "z"})
				if refused := locktest.Expect[*messages.NotReleased](t, stranger); refused.Reason != messages.Reason_REASON_NOT_HELD {
					t.Errorf("a foreign release was answered with %v", refused)
				}
				redistest.Eventually(t, "the crash", func() bool { return tr.Count.Load() == 1 })

				// Renewals go on: well after the TTL it is the same term, never close to its end.
				for end := time.Now().Add(2 * watchdog); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					if left, _ := tr.Server.Do(t, "PTTL", lock).AsInt64(); left <= 0 {
						t.Fatalf("the key is gone (%d)", left)
					}
				}
				if now := tr.Owner(t, lock); now != owner {
					t.Fatalf("the owner in Redis was %s and is %s", owner, now)
				}
				holder.ExpectNothing()
				holder.Release(lock)
				locktest.Expect[*messages.Released](t, holder)
				for _, w := range waiters {
					locktest.Expect[*messages.Acquired](t, w)
					w.Release(lock)
					locktest.Expect[*messages.Released](t, w)
				}
				sibling.ExpectNothing()
				sibling.Release(other)
				locktest.Expect[*messages.Released](t, sibling)
				redistest.Eventually(t, "the keys are gone", func() bool { return tr.Owner(t, lock)+tr.Owner(t, other) == "" })
			})
		}
	}
}

func TestCrashWhileTheAcquireIsUnderWay(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			tr := locktest.NewTree(t, lockkeeper.Config{CallTimeout: 200 * time.Millisecond})
			lock := redistest.Name(t)
			if when == "before" {
				tr.Hit(locktest.Once("*actors.replied"), nil) // the reply is lost with the crash
			} else {
				tr.Hit(nil, locktest.Once("*messages.Acquire"))
			}
			c := tr.Client(t, "client")
			c.Acquire(lock)
			if got := locktest.Expect[*messages.Acquired](t, c); got.HoldCount != 1 {
				t.Errorf("granted %d times", got.HoldCount)
			}
			if n := tr.Count.Load(); n != 1 {
				t.Fatalf("%d crashes", n)
			}
			if count, _ := tr.Server.Do(t, "HGET", lock, tr.Owner(t, lock)).ToString(); count != "1" {
				t.Errorf("the hold count in Redis is %s", count)
			}
			c.Release(lock)
			locktest.Expect[*messages.Released](t, c)
			if owner := tr.Owner(t, lock); owner != "" {
				t.Errorf("the lock is left to %s", owner)
			}
		})
	}
}

func TestALockActorThatCrashesWithoutEndIsGivenUp(t *testing.T) {
	for _, what := range []struct {
		name string
		hits func(m any) bool
	}{
		{"over every message", func(any) bool { return true }},
		{"over every request", func(m any) bool { _, ok := m.(*messages.Release); return ok }},
	} {
		t.Run(what.name, func(t *testing.T) {
			tr := locktest.NewTree(t, lockkeeper.Config{})
			lock, other := redistest.Name(t), redistest.Name(t)+" spared"
			holder, waiter, sibling := tr.Client(t, "holder"), tr.Client(t, "waiter"), tr.Client(t, "sibling")
			sibling.Acquire(other)
			locktest.Expect[*messages.Acquired](t, sibling)
			holder.Acquire(lock)
			locktest.Expect[*messages.Acquired](t, holder)
			waiter.Acquire(lock)
			redistest.Eventually(t, "the waiter is queued", func() bool { return tr.Waiters(t, lock) == 1 })

			tr.Hit(what.hits, nil)
			stranger := tr.Client(t, "stranger")
			for range 20 {
				stranger.Request(&messages.Release{Lock: &messages.Lock{Name: lock}, HoldId: "z"})
			}
			lost := locktest.Expect[*messages.LeaseLost](t, holder)
			if lost.Reason != messages.Reason_REASON_CRASHED {
				t.Errorf("the holder was told %v", lost)
			}
			refused := locktest.Expect[*messages.NotAcquired](t, waiter)
			if refused.Reason != messages.Reason_REASON_CRASHED {
				t.Errorf("the waiter was told %v", refused)
			}
			for range 20 {
				locktest.Expect[*messages.NotReleased](t, stranger)
			}
			redistest.Eventually(t, "the key is released", func() bool { return tr.Owner(t, lock) == "" })

			tr.Hit(nil, nil)
			waiter.Acquire(lock)
			locktest.Expect[*messages.Acquired](t, waiter)
			waiter.Release(lock)
			locktest.Expect[*messages.Released](t, waiter)
			sibling.ExpectNothing()
			sibling.Release(other)
			locktest.Expect[*messages.Released](t, sibling)
		})
	}
}

func TestCrashOfTheSubscriberCostsAtMostThePollBound(t *testing.T) {
	for _, message := range []string{"*actors.published", "*actors.subscribe", "*actors.confirmed"} {
		t.Run(message, func(t *testing.T) {
			tr := locktest.NewTree(t, lockkeeper.Config{Poll: 300 * time.Millisecond})
			lock := redistest.Name(t)
			tr.Server.Do(t, "HSET", lock, "somebody:1", "1")
			tr.Server.Do(t, "PEXPIRE", lock, "600000")
			tr.Hit(locktest.Once(message), nil)
			c := tr.Client(t, "client")
			c.Acquire(lock)
			redistest.Eventually(t, "it waits", func() bool { return tr.Waiters(t, lock) == 1 })
			if message != "*actors.published" {
				redistest.Eventually(t, "the crash", func() bool { return tr.Count.Load() == 1 })
			}
			redistest.Eventually(t, "it listens", func() bool { return tr.Server.Subscribers(t, "redisson_lock__channel:{"+lock+"}") == 1 })
			tr.Server.Do(t, "DEL", lock)
			tr.Server.Do(t, "PUBLISH", "redisson_lock__channel:{"+lock+"}", "0")
			locktest.Expect[*messages.Acquired](t, c)
			c.Release(lock)
			locktest.Expect[*messages.Released](t, c)
			redistest.Eventually(t, "the subscription ends", func() bool { return tr.Server.Subscribers(t, "redisson_lock__channel:{"+lock+"}") == 0 })
		})
	}
}

func TestALostUnsubscribeIsRepeated(t *testing.T) {
	tr := locktest.NewTree(t, lockkeeper.Config{Poll: 300 * time.Millisecond})
	lock := redistest.Name(t)
	tr.Server.Do(t, "HSET", lock, "somebody:1", "1")
	tr.Hit(locktest.Once("*actors.unsubscribe"), nil)
	c := tr.Client(t, "client")
	c.Acquire(lock)
	redistest.Eventually(t, "it listens", func() bool { return tr.Server.Subscribers(t, "redisson_lock__channel:{"+lock+"}") == 1 })
	c.Request(&messages.Cancel{Lock: &messages.Lock{Name: lock}})
	redistest.Eventually(t, "the subscription ends", func() bool {
		return tr.Count.Load() == 1 && tr.Server.Subscribers(t, "redisson_lock__channel:{"+lock+"}") == 0
	})
	tr.Server.Do(t, "DEL", lock)
}

func TestTheGuardianSurvivesEverything(t *testing.T) {
	tr := locktest.NewTree(t, lockkeeper.Config{})
	lock := redistest.Name(t)
	holder := tr.Client(t, "holder")
	holder.Acquire(lock)
	locktest.Expect[*messages.Acquired](t, holder)
	c := tr.Client(t, "client")
	for _, garbage := range []any{
		"a string", 42, struct{}{}, &messages.Released{}, &messages.LeaseLost{}, (*messages.Acquire)(nil),
		&actor.Terminated{Who: actor.NewPID("nowhere", "nobody")}, &actor.DeadLetterResponse{},
	} {
		c.Request(garbage)
		tr.System.Root.Send(tr.Keeper.Guardian(), garbage) // and without a sender
	}
	var refused, failed int
	for range 7 { // a Terminated is nothing to answer
		switch m := (<-c.Mail).(type) {
		case *messages.NotAcquired: // of the nil Acquire
			refused++
		case *messages.Failed:
			failed++
		default:
			t.Errorf("answered %T{%v}", m, m)
		}
	}
	if refused != 1 || failed != 6 {
		t.Errorf("%d requests were refused, and %d other messages", refused, failed)
	}
	c.Acquire(lock)
	redistest.Eventually(t, "it waits", func() bool { return tr.Waiters(t, lock) == 1 })
	holder.Release(lock)
	locktest.Expect[*messages.Released](t, holder)
	locktest.Expect[*messages.Acquired](t, c)
}

func TestDeathOfAHolderReleasesAtOnce(t *testing.T) {
	deaths := map[string]func(tr *locktest.Tree, c *locktest.Client){
		"stopped":  func(tr *locktest.Tree, c *locktest.Client) { tr.System.Root.Stop(c.Pid) },
		"poisoned": func(tr *locktest.Tree, c *locktest.Client) { tr.System.Root.Poison(c.Pid) },
		"panicking out": func(tr *locktest.Tree, c *locktest.Client) {
			tr.System.Root.Send(c.Pid, func(actor.Context) { panic("the end") })
		},
	}
	for name, die := range deaths {
		t.Run(name, func(t *testing.T) {
			tr := locktest.NewTree(t, lockkeeper.Config{})
			lock := redistest.Name(t)
			stop := actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
			tr.System.Root.WithGuardian(stop)
			holder, heir, next := tr.Client(t, "holder"), tr.Client(t, "heir"), tr.Client(t, "next")
			for range 2 { // held twice: its death ends both
				holder.Acquire(lock)
				locktest.Expect[*messages.Acquired](t, holder)
			}
			heir.Acquire(lock)
			redistest.Eventually(t, "the heir waits", func() bool { return tr.Waiters(t, lock) == 1 })
			next.Acquire(lock)
			redistest.Eventually(t, "the next waits", func() bool { return tr.Waiters(t, lock) == 2 })

			die(tr, heir) // a waiter's death takes it out of the queue
			redistest.Eventually(t, "the heir is gone", func() bool { return tr.Waiters(t, lock) == 1 })
			die(tr, holder)
			if got := locktest.Expect[*messages.Acquired](t, next); got.HoldCount != 1 {
				t.Errorf("granted %d times", got.HoldCount)
			}
			if count, _ := tr.Server.Do(t, "HGET", lock, tr.Owner(t, lock)).ToString(); count != "1" {
				t.Errorf("the hold count in Redis is %s", count)
			}
			die(tr, next)
			redistest.Eventually(t, "the lock is free", func() bool { return tr.Owner(t, lock) == "" })
		})
	}
}

func TestAnOwnerWhoseNameLivesAgainIsAnotherOwner(t *testing.T) {
	tr := locktest.NewTree(t, lockkeeper.Config{})
	lock := redistest.Name(t)
	granted := make(chan *messages.Acquired, 10)
	props := actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Request(tr.Keeper.Guardian(), &messages.Acquire{Lock: &messages.Lock{Name: lock}})
		case *messages.Acquired:
			granted <- m
		}
	})
	var ids []string
	for range 20 {
		pid, err := tr.System.Root.SpawnNamed(props, "phoenix")
		if errors.Is(err, actor.ErrNameExists) {
			t.Fatal(err)
		}
		select {
		case m := <-granted:
			if m.HoldCount != 1 {
				t.Fatalf("a new life re-entered the hold of the one before: %v", m)
			}
			ids = append(ids, m.HoldId)
		case <-time.After(redistest.Limit):
			t.Fatal("a new life was not granted the lock")
		}
		if err := tr.System.Root.StopFuture(pid).Wait(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 20 {
		t.Error("two lives had the same hold")
	}
	redistest.Eventually(t, "the lock is free", func() bool { return tr.Owner(t, lock) == "" })
}

func TestAnActorNamedAsOwnerIsTheHolder(t *testing.T) {
	tr := locktest.NewTree(t, lockkeeper.Config{})
	lock := redistest.Name(t)
	owner := tr.Client(t, "owner")
	// A future asks for somebody else: the answer goes to the future, the hold to the owner.
	answer, err := tr.System.Root.RequestFuture(tr.Keeper.Guardian(),
		&messages.Acquire{Lock: &messages.Lock{Name: lock}, Owner: owner.Pid, Wait: durationpb.New(time.Second)}, redistest.Limit).Result()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := answer.(*messages.Acquired); !ok {
		t.Fatalf("answered %v", answer)
	}
	if _, err := tr.Keeper.Lock(lock).ForceRelease(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lost := locktest.Expect[*messages.LeaseLost](t, owner); lost.Reason != messages.Reason_REASON_FORCED {
		t.Errorf("the owner was told %v", lost)
	}
}
