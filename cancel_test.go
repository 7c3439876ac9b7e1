package lockkeeper_test

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
	s := open(t, server.URL(), lockkeeper.Config{Idle: 10 * time.Millisecond})
	var free, here, foreign []key
	var holds []*lockkeeper.Hold
	for range 4 {
		free = append(free, newKey(t, server))
		here = append(here, newKey(t, server))
		foreign = append(foreign, newKey(t, server))
		holds = append(holds, s.acquire(t, here[len(here)-1]))
		foreign[len(foreign)-1].takeAs(t, redisson, -1)
	}
	all := append(append(append([]key{}, free...), here...), foreign...)

	var granted, cancelled atomic.Int64
	acquire := func(k key) {
		ctx, cancel := context.WithTimeout(context.Background(), rand.N(4*time.Millisecond))
		defer cancel()
		hold, err := s.Lock(k.lock).Acquire(ctx)
		switch {
		case err == nil:
			granted.Add(1)
			if err := hold.Release(context.Background()); err != nil {
				t.Errorf("%s: %v", k.lock, err)
			}
		case errors.Is(err, context.DeadlineExceeded):
			cancelled.Add(1)
		default:
			t.Errorf("%s: %v", k.lock, err)
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
		k.awaitFree(t)
	}
	for i, k := range here {
		s.awaitWaiters(t, k, 0)
		k.heldBy(t, s, "1")
		release(t, holds[i])
		k.awaitFree(t)
	}
	for _, k := range foreign {
		s.awaitWaiters(t, k, 0)
		if owners := k.owners(t); len(owners) != 1 || owners[redisson] != "1" {
			t.Errorf("%s is held by %v", k.name, owners)
		}
		k.unlock(t)
	}
	redistest.Eventually(t, "no subscription to be left", func() bool {
		channels, err := server.Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
		return err == nil && len(channels) == 0
	})
	redistest.Eventually(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= before+standing })
	for _, k := range all {
		s.passes(t, k)
	}
	if keys := server.Keys(t, "*"); len(keys) > 0 {
		t.Errorf("left behind: %v", keys)
	}
}

func TestCancelledBefore(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	why := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if _, err := s.Lock(k.lock).Acquire(ctx); !errors.Is(err, why) {
		t.Errorf("error %v, want the context's cause", err)
	}
	if _, err := s.Lock(k.lock).TryAcquire(ctx); !errors.Is(err, why) {
		t.Errorf("error %v, want the context's cause", err)
	}
	k.isFree(t)
	s.passes(t, k)
}

// Whoever waits is woken by his context, whatever the lock does; the others go on waiting.
func TestCancelledWhileWaiting(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	hold := s.acquire(t, k)
	why := errors.New("because")
	ctx, cancel := context.WithCancelCause(context.Background())
	failed := make(chan error)
	go func() {
		_, err := s.Lock(k.lock).Acquire(ctx)
		failed <- err
	}()
	s.awaitWaiters(t, k, 1)
	granted := s.acquireSoon(t, k)
	s.awaitWaiters(t, k, 2)
	cancel(why)
	err := await(t, "the error", failed)
	if !errors.Is(err, why) || isError(t, err, why) != messages.Reason_REASON_CANCELLED {
		t.Errorf("error %v, want the context's cause", err)
	}
	s.awaitWaiters(t, k, 1)
	release(t, hold)
	release(t, got(t, granted).hold)
	k.isFree(t)
}

// A grant that is on its way when the context ends is given back.
func TestCancelledWhileGranted(t *testing.T) {
	r := far(t, redistest.Shared(t), noPolling)
	r.proxy.Delay(50 * time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error)
	go func() {
		_, err := r.Lock(r.lock).Acquire(ctx)
		failed <- err
	}()
	redistest.Eventually(t, "Redis to grant the lock", func() bool { return r.exists(t) })
	cancel()
	if err := await(t, "the error", failed); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if !r.exists(t) {
		t.Error("the acquire waited for Redis though its context had ended")
	}
	r.awaitFree(t)
}

// A grant that the caller's context has overtaken on the last few inches is given back.
func TestCancelledWhenGranted(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
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
	s := open(t, k.server.URL(), lockkeeper.Config{}, slow)
	for range 10 {
		ctx, cancel := context.WithCancel(context.Background())
		giveUp.Store(&cancel)
		hold, err := s.Lock(k.lock).Acquire(ctx)
		switch {
		case err == nil:
			release(t, hold)
		case !errors.Is(err, context.Canceled):
			t.Fatal(err)
		}
		k.awaitFree(t)
	}
}

// A context that ends does not keep a release from its way.
func TestReleaseWithEndedContext(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), lockkeeper.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	hold := acquireIn(t, ctx, s, k)
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
	k.awaitFree(t)
}

// Cancel withdraws what an actor waits for, and nothing that it has.
func TestCancelByMessage(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	p, other := s.probe(t), s.probe(t)
	hold := s.acquire(t, k)
	p.send(&messages.Acquire{Lock: k.message()})
	p.send(&messages.Acquire{Lock: k.message()})
	other.send(&messages.Acquire{Lock: k.message()})
	s.awaitWaiters(t, k, 3)
	p.send(&messages.Cancel{Lock: k.message()})
	for range 2 {
		if m := next[*messages.NotAcquired](t, p); m.Reason != messages.Reason_REASON_CANCELLED {
			t.Errorf("answered %v", m)
		}
	}
	if m := next[*messages.Cancelled](t, p); m.Withdrawn != 2 {
		t.Errorf("answered %v", m)
	}
	if m := ask[*messages.Cancelled](t, p, &messages.Cancel{Lock: k.message()}); m.Withdrawn != 0 {
		t.Errorf("answered %v", m)
	}
	release(t, hold)
	granted := next[*messages.Acquired](t, other)
	if m := ask[*messages.Cancelled](t, other, &messages.Cancel{Lock: k.message()}); m.Withdrawn != 0 {
		t.Errorf("answered %v", m)
	}
	k.heldBy(t, s, "1")
	ask[*messages.Released](t, other, &messages.Release{Lock: k.message(), HoldId: granted.HoldId})
	k.isFree(t)
}

// A future that has timed out gets no grant: it is given back.
func TestFutureTimedOut(t *testing.T) {
	for what, acquire := range map[string]*messages.Acquire{
		"a watchdog lease": {MaxHold: durationpb.New(time.Minute)},
		"a fixed lease":    {Lease: durationpb.New(time.Minute)},
	} {
		t.Run(what, func(t *testing.T) {
			k := newKey(t, redistest.Shared(t))
			s := open(t, k.server.URL(), noPolling)
			acquire.Lock = k.message()
			hold := s.acquire(t, k)
			future := s.actors.Root.RequestFuture(s.Guardian(), acquire, 30*time.Millisecond)
			if m, err := future.Result(); err == nil {
				t.Fatalf("answered %v", m)
			}
			s.awaitWaiters(t, k, 1)
			ear := k.listen(t)
			next := s.acquireSoon(t, k) // behind the future
			s.awaitWaiters(t, k, 2)
			release(t, hold)
			release(t, got(t, next).hold)
			k.awaitFree(t)
			if heard := ear.messages(t); len(heard) == 0 {
				t.Error("no release was told")
			}
		})
	}
}

// A future that waits is answered like anybody else, and its hold bound to nobody's life,
// but to a time.
func TestFutureAnswered(t *testing.T) {
	k := newKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	request := func(m any) any {
		t.Helper()
		answer, err := s.actors.Root.RequestFuture(s.Guardian(), m, redistest.Limit).Result()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	granted, ok := request(&messages.Acquire{Lock: k.message(), Lease: durationpb.New(time.Minute)}).(*messages.Acquired)
	if !ok || granted.Owner != nil || granted.HoldCount != 1 || granted.Validity.AsDuration() <= 0 {
		t.Fatalf("answered %v", granted)
	}
	k.heldBy(t, s, "1")
	if released, ok := request(&messages.Release{Lock: k.message(), HoldId: granted.HoldId}).(*messages.Released); !ok || released.HoldCount != 0 {
		t.Fatalf("answered %v", released)
	}
	k.isFree(t)
}

// The wait of a request is over in time, whatever it waits for, and leaves nothing.
func TestWaitOver(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	r := far(t, server, noPolling)
	const wait = 150 * time.Millisecond
	for what, block := range map[string]func(k key) (unblock func()){
		"held here": func(k key) func() {
			hold := r.acquire(t, k)
			return func() { release(t, hold) }
		},
		"held elsewhere": func(k key) func() {
			k.takeAs(t, redisson, -1)
			return func() { k.unlock(t) }
		},
		"no replies": func(k key) func() {
			r.proxy.DropReplies(true)
			return r.proxy.Heal
		},
		"no Redis": func(k key) func() {
			r.proxy.Refuse(true)
			return r.proxy.Heal
		},
	} {
		t.Run(what, func(t *testing.T) {
			k := newKey(t, server)
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
			_, err := r.Lock(k.lock).Acquire(within(t), lockkeeper.WithWait(wait))
			if took := time.Since(began); took < wait || took > wait+5*time.Second {
				t.Errorf("refused after %v, with a wait of %v", took, wait)
			}
			var why *lockkeeper.Error
			if !errors.As(err, &why) || !errors.Is(err, lockkeeper.ErrTimeout) && !errors.Is(err, lockkeeper.ErrUnavailable) {
				t.Fatal(err)
			}
			check(why.Reason, why.Detail)
			refused := ask[*messages.NotAcquired](t, r.probe(t), &messages.Acquire{Lock: k.message(), Wait: durationpb.New(wait)})
			check(refused.Reason, refused.Detail)
			unblock()
			k.awaitFree(t)
			redistest.Eventually(t, "the lock to pass", func() bool {
				hold, err := r.Lock(k.lock).TryAcquire(within(t))
				return err == nil && hold.Release(within(t)) == nil
			})
		})
	}
}

// The first command of a lock that is wanted no more is still looked after.
func TestCancelledWithUnknownOutcome(t *testing.T) {
	r := far(t, redistest.Shared(t), impatient)
	loss := r.proxy.DropRepliesTo(redistest.Script(scripts.Acquire.SHA), 1, redistest.Silent)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error)
	go func() {
		_, err := r.Lock(r.lock).Acquire(ctx)
		failed <- err
	}()
	loss.Wait(t)
	cancel()
	if err := await(t, "the error", failed); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r.awaitFree(t)
}
