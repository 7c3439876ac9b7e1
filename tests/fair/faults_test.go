package fair_test

// The fair lock when replies get lost, and worse.

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// losingFair loses the next reply about the queue.
func losingFair(t *testing.T, scenario func(t *testing.T, r *locktest.Remote, k fairKey, lose func() *redistest.Loss)) {
	locktest.Losing(t, scripts.FairQueue, locktest.Impatient, func(t *testing.T, r *locktest.Remote, lose func() *redistest.Loss) {
		k := newFairKey(t, r.Server)
		scenario(t, r, k, lose)
		k.awaitNothing(t)
		r.Release(t, locktest.AcquireIn(t, r.Context(t), k.of(r.Site)))
		k.awaitNothing(t)
	})
}

func TestFairLostReplyToAcquire(t *testing.T) {
	losingFair(t, func(t *testing.T, r *locktest.Remote, k fairKey, lose func() *redistest.Loss) {
		lose()
		hold := locktest.AcquireIn(t, r.Context(t), k.of(r.Site))
		k.HeldBy(t, r.Site, "1")
		r.Release(t, hold)
	})
}

func TestFairLostReplyToEnqueueing(t *testing.T) {
	losingFair(t, func(t *testing.T, r *locktest.Remote, k fairKey, lose func() *redistest.Loss) {
		k.TakeAs(t, locktest.Redisson, time.Minute)
		lose()
		granted, entry := k.enqueue(t, r.Context(t), r.Site)
		k.awaitEar(t, entry)
		if line := k.line(t); len(line) != 1 {
			t.Errorf("one waiter, and the queue is %v", line)
		}
		k.pass(t)
		r.Release(t, locktest.Got(t, granted).Hold)
	})
}

func TestFairLostReplyToRelease(t *testing.T) {
	losingFair(t, func(t *testing.T, r *locktest.Remote, k fairKey, lose func() *redistest.Loss) {
		hold := locktest.AcquireIn(t, r.Context(t), k.of(r.Site))
		lose()
		r.Release(t, hold)
	})
}

// The lock goes to the next though nobody hears of it.
func TestFairLostReplyToPassingOn(t *testing.T) {
	losingFair(t, func(t *testing.T, r *locktest.Remote, k fairKey, lose func() *redistest.Loss) {
		hold := locktest.AcquireIn(t, r.Context(t), k.of(r.Site))
		first, _ := k.enqueue(t, r.Context(t), r.Site)
		second, _ := k.enqueue(t, r.Context(t), r.Site)
		lose()
		r.Release(t, hold)
		hold = locktest.Got(t, first).Hold
		k.HeldBy(t, r.Site, "1")
		locktest.Pending(t, second, "it is not its turn")
		r.Release(t, hold)
		r.Release(t, locktest.Got(t, second).Hold)
	})
}

// Connections and scripts go, the places in the queue stay.
func TestFairFaults(t *testing.T) {
	for what, fault := range map[string]func(t *testing.T, k fairKey, entry string){
		"no more subscriptions": func(t *testing.T, k fairKey, _ string) { k.Server.KillClients(t, "pubsub") },
		"new subscriptions": func(t *testing.T, k fairKey, entry string) {
			k.Server.KillClients(t, "pubsub")
			k.awaitEar(t, entry)
		},
		"no more connections": func(t *testing.T, k fairKey, _ string) { k.Server.KillClients(t, "normal") },
		"no more scripts":     func(t *testing.T, k fairKey, _ string) { k.Server.ScriptFlush(t) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Start(t))
			a, b := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
			k.TakeAs(t, locktest.Redisson, time.Minute)
			first, entry := k.enqueue(t, locktest.Within(t), a)
			second, _ := k.enqueue(t, locktest.Within(t), b)
			k.awaitEar(t, entry)
			fault(t, k, entry)
			freed := time.Now()
			k.pass(t)
			g := locktest.Got(t, first)
			if wait := g.At.Sub(freed); wait > locktest.Soon {
				t.Errorf("the head got the lock %v after it was freed", wait)
			}
			locktest.Pending(t, second, "it is not its turn")
			locktest.Release(t, g.Hold)
			locktest.Release(t, locktest.Got(t, second).Hold)
			k.awaitNothing(t)
		})
	}
}

// A crash of the lock actor changes nobody's place.
func TestFairOrderSurvivesCrashes(t *testing.T) {
	for what, message := range map[string]string{"message": "actors.unlocked", "reply": "*actors.replied", "tick": "actors.tick"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Shared(t))
			crashing := &locktest.Saboteur{Spared: map[string]bool{}}
			cfg := lockkeeper.Config{Poll: 500 * time.Millisecond}
			whole := locktest.Open(t, k.Server.URL(), cfg)
			a := locktest.Open(t, k.Server.URL(), cfg, crashing.Middleware)
			first := locktest.Acquire(t, k.of(whole))
			const n = 30
			waiters := k.queueUp(t, []*locktest.Site{a, whole}, n, func(i int) { k.awaitLine(t, i+1) })
			crashing.Hit(locktest.Once(message), locktest.Once(message))
			if what != "message" { // which does not come before the release
				redistest.Eventually(t, "two crashes", func() bool { return crashing.Count.Load() == 2 })
			}
			locktest.Release(t, first)
			waiters.inOrder(t, n)
			if crashes := crashing.Count.Load(); crashes != 2 {
				t.Errorf("%d crashes, want 2", crashes)
			}
			k.awaitNothing(t)
		})
	}
}
