package lockkeeper_test

// The fair lock when replies get lost, and worse.

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// losingFair loses the next reply about the queue.
func losingFair(t *testing.T, scenario func(t *testing.T, r *remote, k fairKey, lose func() *redistest.Loss)) {
	losing(t, scripts.FairQueue, impatient, func(t *testing.T, r *remote, lose func() *redistest.Loss) {
		k := newFairKey(t, r.server)
		scenario(t, r, k, lose)
		k.awaitNothing(t)
		r.release(t, obtainIn(t, r.context(t), k.of(r.site)))
		k.awaitNothing(t)
	})
}

func TestFairLostReplyToAcquire(t *testing.T) {
	losingFair(t, func(t *testing.T, r *remote, k fairKey, lose func() *redistest.Loss) {
		lose()
		hold := obtainIn(t, r.context(t), k.of(r.site))
		k.heldBy(t, r.site, "1")
		r.release(t, hold)
	})
}

func TestFairLostReplyToEnqueueing(t *testing.T) {
	losingFair(t, func(t *testing.T, r *remote, k fairKey, lose func() *redistest.Loss) {
		k.takeAs(t, redisson, time.Minute)
		lose()
		granted, entry := k.enqueue(t, r.context(t), r.site)
		k.awaitEar(t, entry)
		if line := k.line(t); len(line) != 1 {
			t.Errorf("one waiter, and the queue is %v", line)
		}
		k.pass(t)
		r.release(t, got(t, granted).hold)
	})
}

func TestFairLostReplyToRelease(t *testing.T) {
	losingFair(t, func(t *testing.T, r *remote, k fairKey, lose func() *redistest.Loss) {
		hold := obtainIn(t, r.context(t), k.of(r.site))
		lose()
		r.release(t, hold)
	})
}

// The lock goes to the next though nobody hears of it.
func TestFairLostReplyToPassingOn(t *testing.T) {
	losingFair(t, func(t *testing.T, r *remote, k fairKey, lose func() *redistest.Loss) {
		hold := obtainIn(t, r.context(t), k.of(r.site))
		first, _ := k.enqueue(t, r.context(t), r.site)
		second, _ := k.enqueue(t, r.context(t), r.site)
		lose()
		r.release(t, hold)
		hold = got(t, first).hold
		k.heldBy(t, r.site, "1")
		pending(t, second, "it is not its turn")
		r.release(t, hold)
		r.release(t, got(t, second).hold)
	})
}

// Connections and scripts go, the places in the queue stay.
func TestFairFaults(t *testing.T) {
	for what, fault := range map[string]func(t *testing.T, k fairKey, entry string){
		"no more subscriptions": func(t *testing.T, k fairKey, _ string) { k.server.KillClients(t, "pubsub") },
		"new subscriptions": func(t *testing.T, k fairKey, entry string) {
			k.server.KillClients(t, "pubsub")
			k.awaitEar(t, entry)
		},
		"no more connections": func(t *testing.T, k fairKey, _ string) { k.server.KillClients(t, "normal") },
		"no more scripts":     func(t *testing.T, k fairKey, _ string) { k.server.ScriptFlush(t) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Start(t))
			a, b := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
			k.takeAs(t, redisson, time.Minute)
			first, entry := k.enqueue(t, within(t), a)
			second, _ := k.enqueue(t, within(t), b)
			k.awaitEar(t, entry)
			fault(t, k, entry)
			freed := time.Now()
			k.pass(t)
			g := got(t, first)
			if wait := g.at.Sub(freed); wait > soon {
				t.Errorf("the head got the lock %v after it was freed", wait)
			}
			pending(t, second, "it is not its turn")
			release(t, g.hold)
			release(t, got(t, second).hold)
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
			crashing := &saboteur{spared: map[string]bool{}}
			cfg := lockkeeper.Config{Poll: 500 * time.Millisecond}
			whole := open(t, k.server.URL(), cfg)
			a := open(t, k.server.URL(), cfg, crashing.middleware)
			first := obtain(t, k.of(whole))
			const n = 30
			waiters := k.queueUp(t, []*site{a, whole}, n, func(i int) { k.awaitLine(t, i+1) })
			crashing.hit(once(message), once(message))
			if what != "message" { // which does not come before the release
				redistest.Eventually(t, "two crashes", func() bool { return crashing.crashes.Load() == 2 })
			}
			release(t, first)
			waiters.inOrder(t, n)
			if crashes := crashing.crashes.Load(); crashes != 2 {
				t.Errorf("%d crashes, want 2", crashes)
			}
			k.awaitNothing(t)
		})
	}
}
