package faults_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// inTurn hits a message of each of these types, one after the other.
func inTurn(typeNames ...string) func(any) bool {
	var mu sync.Mutex
	return func(m any) bool {
		mu.Lock()
		defer mu.Unlock()
		if len(typeNames) == 0 || fmt.Sprintf("%T", m) != typeNames[0] {
			return false
		}
		typeNames = typeNames[1:]
		return true
	}
}

// Crashes in a row, in every message that a lock actor handles and in those about its life,
// leave its alarm set: a lease that ends is told, and one that is renewed lasts.
func TestCrashesInARow(t *testing.T) {
	for _, crashes := range []string{
		"actors.tick *actor.Restarting", "actors.tick *actor.Started", "actors.tick *actor.Restarting *actor.Started",
		"actors.tick actors.tick", "actors.tick *actors.replied", "*actors.replied *actor.Restarting", "*actors.replied *actors.replied",
		"*actors.Call *actor.Restarting", "*actors.Call *actors.Call", "*messages.Inspect *actor.Started", "*messages.Inspect *messages.Inspect",
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(when+" "+strings.ReplaceAll(crashes, "*", ""), func(t *testing.T) {
				t.Parallel()
				tr := locktest.NewTree(t, lockkeeper.Config{Watchdog: time.Second, Renewal: 100 * time.Millisecond})
				renewed, fixed := redistest.Name(t), redistest.Name(t)
				kept, err := tr.Keeper.Lock(renewed).Acquire(locktest.Within(t))
				if err != nil {
					t.Fatal(err)
				}
				if when == "before" {
					tr.Hit(inTurn(strings.Fields(crashes)...), nil)
				} else {
					tr.Hit(nil, inTurn(strings.Fields(crashes)...))
				}
				stranger := tr.Client(t, "stranger")
				const lease = 600 * time.Millisecond
				began := time.Now()
				lost, err := tr.Keeper.Lock(fixed).Acquire(locktest.Within(t), lockkeeper.WithLease(lease))
				for err != nil { // it was one of those that were hit
					lost, err = tr.Keeper.Lock(fixed).Acquire(locktest.Within(t), lockkeeper.WithLease(lease))
				}
				for _, name := range []string{renewed, fixed, renewed, fixed} {
					_, _ = tr.Keeper.Lock(name).Inspect(locktest.Within(t))
					stranger.Request(&messages.Inspect{Lock: &messages.Lock{Name: name}})
				}
				select {
				case <-lost.Context().Done():
				case <-time.After(lease + 5*time.Second):
					t.Errorf("a lease of %v is not told to be over after %v", lease, time.Since(began))
				}
				redistest.Eventually(t, "all crashes", func() bool { return tr.Count.Load() == int64(len(strings.Fields(crashes))) })
				for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					if !kept.Valid() {
						t.Fatalf("the hold that is renewed was lost: %v", kept.Err())
					}
				}
				if err := kept.Release(locktest.Within(t)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// What nobody else would say again is handled after as many crashes as it takes.
func TestDeathIsNotLostInCrashes(t *testing.T) {
	tr := locktest.NewTree(t, lockkeeper.Config{})
	lock := redistest.Name(t)
	holder, heir := tr.Client(t, "holder"), tr.Client(t, "heir")
	holder.Acquire(lock)
	locktest.Expect[*messages.Acquired](t, holder)
	heir.Acquire(lock)
	redistest.Eventually(t, "the heir waits", func() bool { return tr.Waiters(t, lock) == 1 })
	tr.Hit(inTurn("*actor.Terminated", "*actors.again", "*actors.again"), nil)
	tr.System.Root.Stop(holder.Pid)
	locktest.Expect[*messages.Acquired](t, heir)
	if n := tr.Count.Load(); n != 3 {
		t.Errorf("%d crashes, want 3", n)
	}
}

// A forced release of a member is told to the holder of the MultiLock, whose lock actor
// crashes over the word of it. The next renewal would come after a minute.
func TestForcedReleaseIsToldThoughItsWordCrashes(t *testing.T) {
	tr := locktest.NewTree(t, lockkeeper.Config{Watchdog: 3 * time.Minute})
	member := tr.Keeper.Lock(redistest.Name(t))
	hold := locktest.Acquire(t, lockkeeper.MultiLock(member, tr.Keeper.Lock(redistest.Name(t))))
	tr.Hit(inTurn("actors.suspicion", "*actors.again"), nil)
	if held, err := member.ForceRelease(locktest.Within(t)); err != nil || !held {
		t.Fatalf("the forced release: %v, %v", held, err)
	}
	locktest.Await(t, "the loss", hold.Context().Done())
	locktest.IsError(t, hold.Err(), lockkeeper.ErrLost)
}
