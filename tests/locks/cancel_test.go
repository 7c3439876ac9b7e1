package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Ten thousand acquires that are cancelled at random moments leave nothing behind:
// not of locks that are free, held here, or held by somebody else, and not with
// lock actors that come and go.
func TestCancelStorm(t *testing.T) {
	const (
		workers  = 50
		acquires = 200
		// standing bounds the goroutines that a system and its client keep: 24 workers,
		// and two for each of a few connections.
		standing = 24 + 10
	)
	server := redistest.Start(t)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Idle: 10 * time.Millisecond})
	var free, here, foreign []locktest.Key
	var holds []*lockkeeper.Hold
	for range 4 {
		free = append(free, locktest.NewKey(t, server))
		here = append(here, locktest.NewKey(t, server))
		foreign = append(foreign, locktest.NewKey(t, server))
		holds = append(holds, s.Acquire(t, here[len(here)-1]))
		foreign[len(foreign)-1].TakeAs(t, locktest.Redisson, -1)
	}
	all := append(append(append([]locktest.Key{}, free...), here...), foreign...)

	var granted, cancelled atomic.Int64
	acquire := func(k locktest.Key) {
		ctx, cancel := context.WithTimeout(context.Background(), rand.N(4*time.Millisecond))
		defer cancel()
		hold, err := s.Lock(k.LockName).Acquire(ctx)
		switch {
		case err == nil:
			granted.Add(1)
			if err := hold.Release(context.Background()); err != nil {
				t.Errorf("%s: %v", k.LockName, err)
			}
		case errors.Is(err, context.DeadlineExceeded):
			cancelled.Add(1)
		default:
			t.Errorf("%s: %v", k.LockName, err)
		}
	}
	before := runtime.NumGoroutine()
	var storm sync.WaitGroup
	for range workers {
		storm.Go(func() {
			for range acquires {
				acquire(all[rand.IntN(len(all))])
			}
		})
	}
	storm.Wait()
	t.Logf("%d granted, %d cancelled", granted.Load(), cancelled.Load())
	if granted.Load() < 100 || cancelled.Load() < 1000 {
		t.Error("the moments were not random enough")
	}

	for _, k := range free {
		k.AwaitFree(t)
	}
	for i, k := range here {
		s.AwaitWaiters(t, k, 0)
		k.HeldBy(t, s, "1")
		locktest.Release(t, holds[i])
		k.AwaitFree(t)
	}
	for _, k := range foreign {
		s.AwaitWaiters(t, k, 0)
		if owners := k.Owners(t); len(owners) != 1 || owners[locktest.Redisson] != "1" {
			t.Errorf("%s is held by %v", k.Name, owners)
		}
		k.Unlock(t)
	}
	redistest.Eventually(t, "no subscription to be left", func() bool {
		channels, err := server.Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
		return err == nil && len(channels) == 0
	})
	redistest.Eventually(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before+standing })
	for _, k := range all {
		s.Passes(t, k)
	}
	if keys := server.Keys(t, "*"); len(keys) > 0 {
		t.Errorf("left behind: %v", keys)
	}
}

func TestCancelledBefore(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	why := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if _, err := s.Lock(k.LockName).Acquire(ctx); !errors.Is(err, why) {
		t.Errorf("error %v, want the context's cause", err)
	}
	if _, err := s.Lock(k.LockName).TryAcquire(ctx); !errors.Is(err, why) {
		t.Errorf("error %v, want the context's cause", err)
	}
	k.IsFree(t)
	s.Passes(t, k)
}

// Whoever waits is woken by his context, whatever the lock does; the others go on waiting.
func TestCancelledWhileWaiting(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	hold := s.Acquire(t, k)
	why := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	failed := make(chan error)
	go func() {
		_, err := s.Lock(k.LockName).Acquire(ctx)
		failed <- err
	}()
	s.AwaitWaiters(t, k, 1)
	granted := s.AcquireSoon(t, k)
	s.AwaitWaiters(t, k, 2)
	cancel(why)
	err := locktest.Await(t, "the error", failed)
	if !errors.Is(err, why) || locktest.IsError(t, err, why) != messages.Reason_REASON_CANCELLED {
		t.Errorf("error %v, want the context's cause", err)
	}
	s.AwaitWaiters(t, k, 1)
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, granted).Hold)
	k.IsFree(t)
}

// A grant that is on its way when the context ends is given back.
func TestCancelledWhileGranted(t *testing.T) {
	r := locktest.Far(t, redistest.Shared(t), locktest.NoPolling)
	r.Proxy.Delay(50 * time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error)
	go func() {
		_, err := r.Lock(r.LockName).Acquire(ctx)
		failed <- err
	}()
	redistest.Eventually(t, "Redis to grant the lock", func() bool { return r.Exists(t) })
	cancel()
	if err := locktest.Await(t, "the error", failed); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if !r.Exists(t) {
		t.Error("the acquire waited for Redis though its context had ended")
	}
	r.AwaitFree(t)
}

// A grant that the caller's context has overtaken on the last few inches is given back.
func TestCancelledWhenGranted(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	var giveUp atomic.Pointer[context.CancelFunc]
	slow := func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
			if fmt.Sprintf("%T", e.Message) == "*actors.replied" {
				if cancel := giveUp.Swap(nil); cancel != nil {
					(*cancel)()
					time.Sleep(10 * time.Millisecond) // for the caller to give up; the grant is only now made out
				}
			}
			next(c, e)
		}
	}
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{}, slow)
	for range 10 {
		ctx, cancel := context.WithCancel(context.Background())
		giveUp.Store(&cancel)
		hold, err := s.Lock(k.LockName).Acquire(ctx)
		switch {
		case err == nil:
			locktest.Release(t, hold)
		case !errors.Is(err, context.Canceled):
			t.Fatal(err)
		}
		k.AwaitFree(t)
	}
}

// A context that ends does not keep a release from its way.
func TestReleaseWithEndedContext(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	hold := s.AcquireIn(t, ctx, k)
	cancel()
	if hold.Context().Err() == nil {
		t.Error("the Context of a hold outlives that of its Acquire")
	}
	if hold.Err() != nil || !hold.Valid() {
		t.Error("the hold ended with the context of its Acquire")
	}
	if err := hold.Release(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	k.AwaitFree(t)
}

// Cancel withdraws what an actor waits for, and nothing that it has.
func TestCancelByMessage(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	p, other := s.Probe(t), s.Probe(t)
	hold := s.Acquire(t, k)
	p.Send(&messages.Acquire{Lock: k.Message()})
	p.Send(&messages.Acquire{Lock: k.Message()})
	other.Send(&messages.Acquire{Lock: k.Message()})
	s.AwaitWaiters(t, k, 3)
	p.Send(&messages.Cancel{Lock: k.Message()})
	for range 2 {
		if m := locktest.Next[*messages.NotAcquired](t, p); m.Reason != messages.Reason_REASON_CANCELLED {
			t.Errorf("answered %v", m)
		}
	}
	if m := locktest.Next[*messages.Cancelled](t, p); m.Withdrawn != 2 {
		t.Errorf("answered %v", m)
	}
	if m := locktest.Ask[*messages.Cancelled](t, p, &messages.Cancel{Lock: k.Message()}); m.Withdrawn != 0 {
		t.Errorf("answered %v", m)
	}
	locktest.Release(t, hold)
	granted := locktest.Next[*messages.Acquired](t, other)
	if m := locktest.Ask[*messages.Cancelled](t, other, &messages.Cancel{Lock: k.Message()}); m.Withdrawn != 0 {
		t.Errorf("answered %v", m)
	}
	k.HeldBy(t, s, "1")
	locktest.Ask[*messages.Released](t, other, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
	k.IsFree(t)
}

// A future that has timed out gets no grant: it is given back.
func TestFutureTimedOut(t *testing.T) {
	for what, acquire := range map[string]*messages.Acquire{
		"a watchdog lease": {MaxHold: durationpb.New(time.Minute)},
		"a fixed lease":    {Lease: durationpb.New(time.Minute)},
	} {
		t.Run(what, func(t *testing.T) {
			k := locktest.NewKey(t, redistest.Shared(t))
			s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
			acquire.Lock = k.Message()
			hold := s.Acquire(t, k)
			future := s.Actors.Root.RequestFuture(s.Guardian(), acquire, 30*time.Millisecond)
			if m, err := future.Result(); err == nil {
				t.Fatalf("answered %v", m)
			}
			s.AwaitWaiters(t, k, 1)
			ear := k.Listen(t)
			next := s.AcquireSoon(t, k) // behind the future
			s.AwaitWaiters(t, k, 2)
			locktest.Release(t, hold)
			locktest.Release(t, locktest.Got(t, next).Hold)
			k.AwaitFree(t)
			if heard := ear.Messages(t); len(heard) == 0 {
				t.Error("no release was told")
			}
		})
	}
}

// A future that waits is answered like anybody else, and its hold bound to nobody's life,
// but to a time.
func TestFutureAnswered(t *testing.T) {
	k := locktest.NewKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	request := func(m any) any {
		t.Helper()
		answer, err := s.Actors.Root.RequestFuture(s.Guardian(), m, redistest.Limit).Result()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	granted, ok := request(&messages.Acquire{Lock: k.Message(), Lease: durationpb.New(time.Minute)}).(*messages.Acquired)
	if !ok || granted.Owner != nil || granted.HoldCount != 1 || granted.Validity.AsDuration() <= 0 {
		t.Fatalf("answered %v", granted)
	}
	k.HeldBy(t, s, "1")
	if released, ok := request(&messages.Release{Lock: k.Message(), HoldId: granted.HoldId}).(*messages.Released); !ok || released.HoldCount != 0 {
		t.Fatalf("answered %v", released)
	}
	k.IsFree(t)
}

// The wait of a request is over in time, whatever it waits for, and leaves nothing.
func TestWaitOver(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	r := locktest.Far(t, server, locktest.NoPolling)
	const wait = 150 * time.Millisecond
	for what, block := range map[string]func(k locktest.Key) (unblock func()){
		"held here": func(k locktest.Key) func() {
			hold := r.Acquire(t, k)
			return func() { locktest.Release(t, hold) }
		},
		"held elsewhere": func(k locktest.Key) func() {
			k.TakeAs(t, locktest.Redisson, -1)
			return func() { k.Unlock(t) }
		},
		"no replies": func(k locktest.Key) func() {
			r.Proxy.DropReplies(true)
			return r.Proxy.Heal
		},
		"no Redis": func(k locktest.Key) func() {
			r.Proxy.Refuse(true)
			return r.Proxy.Heal
		},
	} {
		t.Run(what, func(t *testing.T) {
			k := locktest.NewKey(t, server)
			unblock := block(k)
			want, wantDetail := messages.Reason_REASON_TIMED_OUT, "held"
			if strings.HasPrefix(what, "no ") {
				want, wantDetail = messages.Reason_REASON_UNAVAILABLE, "Redis|EOF|refused|reset|timeout"
			}
			check := func(reason messages.Reason, detail string) {
				t.Helper()
				if reason != want || !regexp.MustCompile(wantDetail).MatchString(detail) {
					t.Errorf("refused because of %v: %s", reason, detail)
				}
			}
			began := time.Now()
			_, err := r.Lock(k.LockName).Acquire(locktest.Within(t), lockkeeper.WithWait(wait))
			if took := time.Since(began); took < wait || took > wait+5*time.Second {
				t.Errorf("refused after %v, with a wait of %v", took, wait)
			}
			var why *lockkeeper.Error
			if !errors.As(err, &why) || !errors.Is(err, lockkeeper.ErrTimeout) && !errors.Is(err, lockkeeper.ErrUnavailable) {
				t.Fatal(err)
			}
			check(why.Reason, why.Detail)
			refused := locktest.Ask[*messages.NotAcquired](t, r.Probe(t), &messages.Acquire{Lock: k.Message(), Wait: durationpb.New(wait)})
			check(refused.Reason, refused.Detail)
			unblock()
			k.AwaitFree(t)
			redistest.Eventually(t, "the lock to pass", func() bool {
				hold, err := r.Lock(k.LockName).TryAcquire(locktest.Within(t))
				return err == nil && hold.Release(locktest.Within(t)) == nil
			})
		})
	}
}

// The first command of a lock that is wanted no more is still looked after.
func TestCancelledWithUnknownOutcome(t *testing.T) {
	r := locktest.Far(t, redistest.Shared(t), locktest.Impatient)
	loss := r.Proxy.DropRepliesTo(redistest.Script(scripts.Acquire.SHA), 1, redistest.Silent)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error)
	go func() {
		_, err := r.Lock(r.LockName).Acquire(ctx)
		failed <- err
	}()
	loss.Wait(t)
	cancel()
	if err := locktest.Await(t, "the error", failed); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r.AwaitFree(t)
}
