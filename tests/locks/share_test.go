package locks_test

// How the waiters of one process, and those of several, share a lock.

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestWaitersAreServedInOrderOfArrival(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	first := s.Acquire(t, k)
	const n = 200
	served := make(chan int, n)
	var waiters sync.WaitGroup
	for i := range n {
		waiters.Go(func() {
			hold, err := s.Lock(k.LockName).Acquire(locktest.Within(t))
			if err != nil {
				t.Error(err)
				return
			}
			served <- i
			if err := hold.Release(locktest.Within(t)); err != nil {
				t.Error(err)
			}
		})
		s.AwaitWaiters(t, k, i+1)
	}
	locktest.Release(t, first)
	waiters.Wait()
	close(served)
	next := 0
	for i := range served {
		if i != next {
			t.Fatalf("waiter %d was served when it was the turn of %d", i, next)
		}
		next++
	}
}

// contend has goroutines of a site take and give back a lock until ctx ends, and
// counts the grants of each. Two holders at once fail the test.
func contend(t *testing.T, ctx context.Context, s *locktest.Site, k locktest.Key, goroutines int, inside *atomic.Int32, work *sync.WaitGroup) []int {
	grants := make([]int, goroutines)
	for i := range grants {
		work.Go(func() {
			for {
				hold, err := s.Lock(k.LockName).Acquire(ctx)
				if err != nil {
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two holders at once")
				}
				grants[i]++
				inside.Add(-1)
				if err := hold.Release(locktest.Within(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	return grants
}

func sum(grants []int) (n int) {
	for _, g := range grants {
		n += g
	}
	return n
}

func TestHandOffNeedsHardlyAnyCommands(t *testing.T) {
	server := redistest.Start(t) // of its own, for its statistics
	k := locktest.NewKey(t, server)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{})
	server.ResetStats(t)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	var inside atomic.Int32
	var work sync.WaitGroup
	grants := contend(t, ctx, s, k, 64, &inside, &work)
	work.Wait()
	calls := server.Calls(t)
	scripts := calls["evalsha"] + calls["eval"]
	if total := sum(grants); float64(scripts) > 0.1*float64(total) {
		t.Errorf("%d scripts for %d grants, more than 0.1 each", scripts, total)
	}
	if least, most := slices.Min(grants), slices.Max(grants); float64(most) > 1.3*float64(least) {
		t.Errorf("between %d and %d grants a goroutine", least, most)
	}
}

func TestTwoProcessesGetTheirShare(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	a, b := locktest.Open(t, k.Server.URL(), lockkeeper.Config{}), locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	var inside atomic.Int32
	var work sync.WaitGroup
	ofA, ofB := contend(t, ctx, a, k, 32, &inside, &work), contend(t, ctx, b, k, 32, &inside, &work)
	work.Wait()
	least, most := sum(ofA), sum(ofB)
	if least > most {
		least, most = most, least
	}
	if most > 4*least { // on a machine that others use too; bench says how equal it is
		t.Errorf("one process got %d grants, the other %d", least, most)
	}
	t.Logf("%d and %d grants", least, most)
}

func TestAWaiterThatOnlyPollsIsNotStarved(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	ctx, stop := context.WithCancel(t.Context())
	var inside atomic.Int32
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	contend(t, ctx, s, k, 16, &inside, &work)
	// Like Redisson's spin lock, but patient: it never subscribes.
	redistest.Eventually(t, "the poller gets in", func() bool {
		free, _ := k.Server.Do(t, "EXISTS", k.Name).AsInt64()
		return free == 0
	})
}

func TestUnusedLocksLeaveNothingBehind(t *testing.T) {
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Idle: 200 * time.Millisecond})
	use := func(names int) {
		ctx := locktest.Within(t) // one for all: each would stay until the test ends
		var work sync.WaitGroup
		for i := range names {
			work.Go(func() {
				hold, err := s.Lock(fmt.Sprint("lock ", i)).Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if err := hold.Release(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	baseline := s.Processes()
	// What proto.actor's registry and the connections grow to once, and then keep.
	for range 10_000 {
		if err := s.Actors.Root.StopFuture(s.Actors.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))).Wait(); err != nil {
			t.Fatal(err)
		}
	}
	use(1000)
	redistest.Eventually(t, "the lock actors are gone", func() bool { return s.Processes() == baseline })
	before, goroutines := heap(), runtime.NumGoroutine()
	for range 3 {
		use(1000)
		redistest.Eventually(t, "the lock actors are gone", func() bool { return s.Processes() == baseline })
	}
	// A lock that stayed would be some 2 KiB, of 3000.
	if after := heap(); after > before+3<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	if after := runtime.NumGoroutine(); after > goroutines+2 {
		t.Errorf("the goroutines grew from %d to %d", goroutines, after)
	}
	if keys := server.Keys(t, "*"); len(keys) != 0 {
		t.Errorf("keys are left: %v", keys)
	}
	channels, err := server.Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
	if err != nil || len(channels) != 0 {
		t.Errorf("subscriptions are left: %v, %v", channels, err)
	}
}

func TestPassivationLosesNoRequest(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Idle: 10 * time.Millisecond})
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	var work sync.WaitGroup
	for i := range 16 {
		work.Go(func() {
			name := fmt.Sprint(k.LockName, i%4)
			for pause := time.Duration(0); ctx.Err() == nil; pause = (pause + time.Millisecond) % (15 * time.Millisecond) {
				hold, err := s.Lock(name).Acquire(locktest.Within(t))
				if err != nil {
					t.Error(err)
					return
				}
				if err := hold.Release(locktest.Within(t)); err != nil {
					t.Error(err)
				}
				<-time.After(pause) // about as long as the actor may idle
			}
		})
	}
	work.Wait()
}
