package multi_test

// MultiLocks that contend.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// While a member is held elsewhere, the messages about those that a try takes and
// gives back are no reason to try again.
func TestMultiNoEcho(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Poll: 400 * time.Millisecond}
	one, two := redistest.Start(t), redistest.Start(t)
	here, there := locktest.Open(t, one.URL(), cfg), locktest.Open(t, two.URL(), cfg)
	for what, names := range map[string][2]string{
		"other names": {redistest.Name(t), redistest.Name(t)}, "names reversed": {redistest.Name(t) + "z", redistest.Name(t)},
		"one name": {"same", "same"},
	} {
		whole := lockkeeper.MultiLock(here.Lock(names[0]), here.FencedLock(names[0]+"+"), there.Lock(names[1]), there.FencedLock(names[1]+"+"))
		for i, server := range []*redistest.Server{one, two} {
			held := locktest.Key{Server: server, Name: names[i], Channel: "redisson_lock__channel:{" + names[i] + "}"}
			held.TakeAs(t, locktest.Redisson, -1)
			ctx, cancel := context.WithCancel(context.Background())
			granted := locktest.AcquireSoon(ctx, whole)
			locktest.AwaitWaiters(t, whole, 1)
			held.AwaitSubscribers(t, 1)
			server.ResetStats(t)
			began := time.Now()
			const tries = 6
			redistest.Eventually(t, "a few refusals", func() bool { return server.Calls(t)["hrandfield"] >= tries })
			// One may have been under way, and one was due.
			if took := time.Since(began); took < (tries-3)*cfg.Poll/2 {
				t.Errorf("%s, held on server %d: %d tries in %v, with a poll bound of %v", what, i, tries, took, cfg.Poll)
			}
			cancel()
			if g := locktest.Await(t, "the error", granted); g.Err == nil {
				t.Error("granted though cancelled")
			}
			held.Unlock(t)
		}
		locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), whole))
	}
}

// Eight actors in two processes take random sets of three of six locks, of all kinds:
// nobody gets stuck, no member is ever held twice, and nothing is left behind.
func TestMultiRandomSets(t *testing.T) {
	server := redistest.Start(t)
	base := redistest.Name(t)
	var six []*messages.Lock
	for i, kind := range append(memberKinds[:4:4], memberKinds[0], memberKinds[3]) {
		six = append(six, &messages.Lock{Name: fmt.Sprintf("%s.%d", base, i), Kind: kind.kind})
	}
	sites := []*locktest.Site{locktest.Open(t, server.URL(), brisk), locktest.Open(t, server.URL(), brisk)}
	var inside [6]atomic.Int32
	grants := make([]int, 8)
	longest := make([]time.Duration, len(grants))
	end := time.Now().Add(10 * time.Second)
	var work sync.WaitGroup
	for i := range grants {
		p := sites[i%len(sites)].Probe(t)
		request := func(m any) any {
			p.Send(m)
			select {
			case answer := <-p.Mail:
				return answer
			case <-time.After(redistest.Limit):
				return nil
			}
		}
		work.Go(func() {
			for time.Now().Before(end) {
				set := rand.Perm(len(six))[:3]
				lock := byMessage(six[set[0]], six[set[1]], six[set[2]])
				began := time.Now()
				if answer, ok := request(&messages.Acquire{Lock: lock}).(*messages.Acquired); !ok {
					t.Errorf("actor %d was sent %v", i, answer)
					return
				}
				longest[i] = max(longest[i], time.Since(began))
				for _, n := range set {
					if inside[n].Add(1) != 1 {
						t.Errorf("two hold %s", six[n].Name)
					}
				}
				for _, n := range set {
					inside[n].Add(-1)
				}
				if answer, ok := request(&messages.Release{Lock: lock}).(*messages.Released); !ok {
					t.Errorf("actor %d was sent %v for its release", i, answer)
					return
				}
				grants[i]++
			}
		})
	}
	work.Wait()
	t.Logf("grants of the 8 actors in 10 s: %v; longest waits: %v", grants, longest)
	for i, n := range grants {
		if n == 0 {
			t.Errorf("actor %d was granted nothing", i)
		}
	}
	redistest.Eventually(t, "nothing to be left", func() bool { return len(left(t, server, base)) == 0 })
	for i := range six {
		channel := fmt.Sprintf("redisson_lock__channel:{%s.%d}", base, i)
		redistest.Eventually(t, "no subscriber of "+channel, func() bool { return server.Subscribers(t, channel) == 0 })
	}
}

// A MultiLock gets its turn against a crowd that wants one of its members all the time,
// in the same process or in another.
func TestMultiAgainstACrowd(t *testing.T) {
	server := redistest.Start(t)
	for what, same := range map[string]bool{"in the same process": true, "in another": false} {
		s := locktest.Open(t, server.URL(), brisk)
		crowded := s
		if !same {
			crowded = locktest.Open(t, server.URL(), brisk)
		}
		a, b := locktest.NewKey(t, server), locktest.NewKey(t, server)
		ctx, stop := context.WithCancel(context.Background())
		var crowd sync.WaitGroup
		var grants atomic.Int64
		for range 4 {
			crowd.Go(func() {
				for ctx.Err() == nil {
					hold, err := crowded.Lock(a.LockName).Acquire(ctx)
					if err != nil {
						continue
					}
					grants.Add(1)
					time.Sleep(time.Millisecond)
					if err := hold.Release(context.WithoutCancel(ctx)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		whole := lockkeeper.MultiLock(s.Lock(a.LockName), s.Lock(b.LockName))
		var waits []time.Duration
		for range 10 {
			others := grants.Load()
			redistest.Eventually(t, "the crowd", func() bool { return grants.Load() > others+10 })
			began := time.Now()
			hold := locktest.AcquireIn(t, locktest.Within(t), whole)
			waits = append(waits, time.Since(began).Round(time.Millisecond))
			locktest.Release(t, hold)
		}
		stop()
		crowd.Wait()
		t.Logf("a crowd of 4 %s, with %d grants: the MultiLock waited %v", what, grants.Load(), waits)
		a.AwaitFree(t)
		b.AwaitFree(t)
	}
}
