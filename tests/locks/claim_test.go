package locks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// claimant is an actor with a Claim. It carries out the functions that it is sent, and reports what the Claim does.
type claimant struct {
	claim  lockkeeper.Claim
	events chan claimEvent
	wants  *messages.Acquire
}

type claimEvent struct {
	lockkeeper.ClaimEvent
	held *messages.Acquired
	err  error
}

type claimWork func(ctx actor.Context, c *lockkeeper.Claim)

func (c *claimant) Receive(ctx actor.Context) {
	if happened := c.claim.Handle(ctx); happened != lockkeeper.ClaimUnchanged {
		c.events <- claimEvent{happened, c.claim.Held(), c.claim.Err()}
	}
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.claim.Acquire(ctx, c.wants)
	case claimWork:
		m(ctx, &c.claim)
	}
}

// claims is a claimant of a test.
type claims struct {
	t      *testing.T
	site   *locktest.Site
	pid    *actor.PID
	events chan claimEvent
}

func newClaims(t *testing.T, s *locktest.Site, wants *messages.Acquire) *claims {
	c := &claims{t: t, site: s, events: make(chan claimEvent, 10)}
	c.pid = s.Actors.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &claimant{events: c.events, wants: wants} }))
	return c
}

func (c *claims) do(work claimWork) { c.site.Actors.Root.Send(c.pid, work) }

func (c *claims) expect(want lockkeeper.ClaimEvent, err error) claimEvent {
	c.t.Helper()
	got := locktest.Await(c.t, string(want), c.events)
	if got.ClaimEvent != want || !errors.Is(got.err, err) || (got.held != nil) != (want == lockkeeper.ClaimGranted) {
		c.t.Fatalf("the claim is %q, %v, %v; want %q, %v", got.ClaimEvent, got.held, got.err, want, err)
	}
	return got
}

func (c *claims) release() {
	c.do(func(ctx actor.Context, c *lockkeeper.Claim) { c.Release(ctx) })
}

func crash(actor.Context, *lockkeeper.Claim) { panic("as planned") }

// A new instance of an actor begins without the lock: what the last one held is released, what it waited for is
// withdrawn, and the late answers are not for its Claim. So no hold is left, or shared without the actor's knowledge.
func TestClaim_OfANewInstanceIsNotThatOfTheLast(t *testing.T) {
	t.Parallel()
	for kind, lock := range map[string]func(name string) *messages.Lock{
		"lock": func(name string) *messages.Lock { return &messages.Lock{Name: name} },
		"expirable semaphore": func(name string) *messages.Lock {
			return &messages.Lock{Name: name, Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, k := locktest.New(t, lockkeeper.Config{})
			if kind != "lock" {
				locktest.Must(s.ExpirableSemaphore(k.LockName).TrySetPermits(t.Context(), 1))(t)
			}
			c := newClaims(t, s, &messages.Acquire{Lock: lock(k.LockName)})
			first := c.expect(lockkeeper.ClaimGranted, nil)
			c.do(crash) // while it holds
			second := c.expect(lockkeeper.ClaimGranted, nil)
			if second.held.HoldId == first.held.HoldId || second.held.HoldCount != 1 {
				t.Errorf("the new instance has re-entered the hold of the last one: %v", second.held)
			}
			c.do(func(ctx actor.Context, c *lockkeeper.Claim) { // while it releases
				c.Release(ctx)
				c.Acquire(ctx, nil) // forgotten
				panic("as planned")
			})
			c.expect(lockkeeper.ClaimGranted, nil)
			c.release()
			c.expect(lockkeeper.ClaimReleased, nil)
			c.do(func(ctx actor.Context, c *lockkeeper.Claim) { // while it waits: the grant comes to the next instance
				c.Acquire(ctx, &messages.Acquire{Lock: lock(k.LockName)})
				awaitGrant(t, s, lock(k.LockName))
				panic("as planned")
			})
			c.expect(lockkeeper.ClaimGranted, nil)
			c.release()
			c.expect(lockkeeper.ClaimReleased, nil)
			if waits := locktest.Must(s.Locks(t.Context()))(t); len(waits) != 0 {
				t.Errorf("left are %v", waits)
			}
			if kind == "lock" {
				k.IsFree(t)
			} else if free := locktest.Must(s.ExpirableSemaphore(k.LockName).Available(t.Context()))(t); free != 1 {
				t.Errorf("%d permits are free", free)
			}
			locktest.NotYet(t, c.events, "another event")
		})
	}
}

// awaitGrant waits until the System holds the lock; it runs in the actor, which gets the grant after that.
func awaitGrant(t *testing.T, s *locktest.Site, lock *messages.Lock) {
	redistest.Eventually(t, "the grant", func() bool {
		answer, _ := lockkeeper.Ask(t.Context(), s.Actors.Root, s.Guardian(), &messages.Inspect{Lock: lock})
		status, is := answer.(*messages.Status)
		return is && (status.HeldHere || status.TakenPermits > 0)
	})
}

// A Release while the Claim waits withdraws the request. A grant that is on its way then is given back.
func TestClaim_GivesBackAGrantThatItNoLongerWants(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	request := &messages.Acquire{Lock: k.Message()}
	holder := locktest.Acquire(t, s.Lock(k.LockName))
	c := newClaims(t, s, request)
	s.AwaitWaiting(t, 1)
	c.release() // in the queue
	c.expect(lockkeeper.ClaimReleased, nil)
	s.AwaitWaiting(t, 0)
	locktest.Release(t, holder)
	c.do(func(ctx actor.Context, c *lockkeeper.Claim) { // or granted already
		c.Acquire(ctx, request)
		awaitGrant(t, s, k.Message())
		c.Release(ctx)
		c.Acquire(ctx, request) // when that is released
	})
	c.expect(lockkeeper.ClaimReleased, nil)
	c.expect(lockkeeper.ClaimGranted, nil)
	c.release()
	c.expect(lockkeeper.ClaimReleased, nil)
	k.IsFree(t)
}

// Refusals and losses come with their errors, and the Claim can be used again. A Claim never shares a hold.
func TestClaim_ReportsRefusalsAndLosses(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	request := &messages.Acquire{Lock: k.Message()}
	holder := locktest.Acquire(t, s.Lock(k.LockName))
	c := newClaims(t, s, &messages.Acquire{Lock: k.Message(), Wait: durationpb.New(10 * time.Millisecond)})
	c.expect(lockkeeper.ClaimRefused, lockkeeper.ErrTimeout)
	locktest.Release(t, holder)
	acquire := func(ctx actor.Context, c *lockkeeper.Claim) { c.Acquire(ctx, request) }
	c.do(acquire)
	first := c.expect(lockkeeper.ClaimGranted, nil)
	c.do(acquire) // without effect
	var other lockkeeper.Claim
	c.do(func(ctx actor.Context, own *lockkeeper.Claim) {
		*own, other = other, *own // the actor has two
		own.Acquire(ctx, request)
	})
	c.expect(lockkeeper.ClaimRefused, lockkeeper.ErrReentry)
	c.do(func(ctx actor.Context, own *lockkeeper.Claim) { *own = other })

	locktest.ForceRelease(t, s.Lock(k.LockName), true)
	c.expect(lockkeeper.ClaimLost, lockkeeper.ErrLost)
	c.do(acquire)
	if second := c.expect(lockkeeper.ClaimGranted, nil); proto.Equal(second.held, first.held) || second.held == first.held {
		t.Error("the second hold looks like the first")
	}
	k.Do(t, "DEL", k.LockName)
	c.release()
	c.expect(lockkeeper.ClaimLost, lockkeeper.ErrLost)
	c.do(func(ctx actor.Context, c *lockkeeper.Claim) { c.Acquire(ctx, nil) })
	c.expect(lockkeeper.ClaimRefused, lockkeeper.ErrInvalid)
	c.do(func(ctx actor.Context, own *lockkeeper.Claim) {
		own.Acquire(ctx, request)
		ctx.Request(actor.NewPID(ctx.Self().Address, "missing"), "a message") // its answer is not for the Claim
	})
	c.expect(lockkeeper.ClaimGranted, nil)
	c.release()
	c.expect(lockkeeper.ClaimReleased, nil)
	locktest.Stop(t, s)
	c.do(acquire)
	c.expect(lockkeeper.ClaimRefused, lockkeeper.ErrClosed)
}

// An actor may release its lock in Stopped.
func TestClaim_IsReleasedInStopped(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	released, mayStop := make(chan bool), make(chan bool)
	claim, granted := lockkeeper.Claim{}, make(chan bool, 1)
	pid := s.Actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if claim.Handle(ctx) == lockkeeper.ClaimGranted {
			granted <- true
		}
		switch ctx.Message().(type) {
		case *actor.Started:
			claim.Acquire(ctx, &messages.Acquire{Lock: k.Message()})
		case *actor.Stopped:
			claim.Release(ctx)
			close(released)
			<-mayStop
		}
	}))
	locktest.Await(t, "the grant", granted)
	s.Actors.Root.Stop(pid)
	locktest.Await(t, "the release", released)
	k.AwaitFree(t)
	close(mayStop)
	locktest.OK(t, s.Actors.Root.StopFuture(pid).Wait())
}

// A Claim releases the lock where it has acquired it, although another System was started in the actor system since.
func TestClaim_StaysWithItsSystem(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	c := newClaims(t, s, &messages.Acquire{Lock: k.Message()})
	c.expect(lockkeeper.ClaimGranted, nil)
	second := locktest.Must(lockkeeper.Open(t.Context(), k.Server.URL(), lockkeeper.WithActorSystem(s.Actors)))(t)
	c.release()
	c.expect(lockkeeper.ClaimReleased, nil)
	k.AwaitFree(t)
	locktest.OK(t, second.Close(t.Context()))
}

// A withdrawal that fails ends the Claim's wait; what is granted nevertheless is given back, also to a Claim that has
// acquired the lock again since.
func TestClaim_EndsIfItsWithdrawalFails(t *testing.T) {
	t.Parallel()
	refuse := func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, e *actor.MessageEnvelope) {
			if cancel, is := e.Message.(*messages.Cancel); is {
				ctx.ActorSystem().Root.Send(e.Sender, &messages.Failed{Reason: messages.Reason_REASON_CRASHED, CorrelationId: cancel.CorrelationId})
				return
			}
			next(ctx, e)
		}
	}
	s, k := locktest.New(t, lockkeeper.Config{Middleware: []actor.ReceiverMiddleware{refuse}})
	holder := locktest.Acquire(t, s.Lock(k.LockName))
	c := newClaims(t, s, &messages.Acquire{Lock: k.Message()})
	s.AwaitWaiting(t, 1)
	c.release()
	c.expect(lockkeeper.ClaimReleased, lockkeeper.ErrCrashed)
	locktest.Release(t, holder)
	k.AwaitFree(t)

	holder = locktest.Acquire(t, s.Lock(k.LockName))
	acquire := func(ctx actor.Context, c *lockkeeper.Claim) { c.Acquire(ctx, &messages.Acquire{Lock: k.Message()}) }
	c.do(acquire)
	s.AwaitWaiting(t, 1)
	c.release()
	c.expect(lockkeeper.ClaimReleased, lockkeeper.ErrCrashed)
	c.do(acquire)
	s.AwaitWaiting(t, 2)
	locktest.Release(t, holder)
	c.expect(lockkeeper.ClaimRefused, lockkeeper.ErrReentry) // the first request has been granted at that moment
	k.AwaitFree(t)
	c.do(acquire)
	c.expect(lockkeeper.ClaimGranted, nil)
}

// A request for a name that was in use as another kind keeps its place before requests that the actor sends later: a
// Claim that is released, or whose actor crashes, leaves no request that waits, and no hold.
func TestClaim_EndsAlsoIfItsLockWasOfAnotherKind(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]claimWork{
		"released": func(ctx actor.Context, c *lockkeeper.Claim) { c.Release(ctx) },
		"crashed":  crash,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			here, there, k := locktest.NewTwo(t, lockkeeper.Config{})
			other := locktest.NewKey(t, k.Server)
			here.ExpectGranted(t, k) // a plain lock
			holder := locktest.Acquire(t, there.FairLock(k.LockName))
			c := newClaims(t, here, &messages.Acquire{Lock: other.Message()})
			c.expect(lockkeeper.ClaimGranted, nil)
			c.release()
			c.expect(lockkeeper.ClaimReleased, nil)
			c.do(func(ctx actor.Context, c *lockkeeper.Claim) {
				c.Acquire(ctx, &messages.Acquire{Lock: &messages.Lock{Name: k.LockName, Kind: messages.Kind_KIND_FAIR}})
				end(ctx, c)
			})
			if what == "released" {
				c.expect(lockkeeper.ClaimReleased, nil)
			} else {
				c.expect(lockkeeper.ClaimGranted, nil) // of the other lock, by the next instance
			}
			here.AwaitWaiting(t, 0)
			locktest.Release(t, holder)
			k.AwaitFree(t)
			locktest.NotYet(t, c.events, "another event")
		})
	}
}

// A request that reaches no System, or waits for the answer to a Release, is refused, also if another System has been
// started before the actor hears of that, or if it gets a dead letter of something else first.
func TestClaim_IsRefusedWithoutItsSystem(t *testing.T) {
	t.Parallel()
	t.Run("another has its name", func(t *testing.T) {
		t.Parallel()
		s, k := locktest.New(t, lockkeeper.Config{})
		c := newClaims(t, s, nil)
		c.expect(lockkeeper.ClaimRefused, lockkeeper.ErrInvalid)
		locktest.OK(t, s.Close(t.Context()))
		c.do(func(ctx actor.Context, c *lockkeeper.Claim) {
			c.Acquire(ctx, &messages.Acquire{Lock: k.Message()})
			second := locktest.Must(lockkeeper.Open(t.Context(), k.Server.URL(), lockkeeper.WithActorSystem(s.Actors)))(t)
			t.Cleanup(func() { locktest.Check(t, second.Close(context.Background())) })
		})
		c.expect(lockkeeper.ClaimRefused, lockkeeper.ErrClosed)
	})
	t.Run("dead letter of something else", func(t *testing.T) {
		t.Parallel()
		s, k := locktest.New(t, lockkeeper.Config{})
		request := &messages.Acquire{Lock: k.Message()}
		c := newClaims(t, s, request)
		c.expect(lockkeeper.ClaimGranted, nil)
		c.do(func(ctx actor.Context, c *lockkeeper.Claim) {
			ctx.Request(actor.NewPID(ctx.Self().Address, "no actor"), "anything")
			locktest.Check(t, s.Close(t.Context()))
			c.Release(ctx)
			c.Acquire(ctx, request)
		})
		released, refused := c.expect(lockkeeper.ClaimReleased, lockkeeper.ErrClosed), c.expect(lockkeeper.ClaimRefused, lockkeeper.ErrClosed)
		if name := k.Message().Name; !strings.Contains(released.err.Error(), `: release "`+name) || !strings.Contains(refused.err.Error(), `: acquire "`+name) {
			t.Errorf("the errors do not name the lock: %v; %v", released.err, refused.err)
		}
	})
}
