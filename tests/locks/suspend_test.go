package locks_test

import (
	"context"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/boottime"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A machine sleeps for longer than a lease. All timers are minutes away: only the clock, and the beat on waking,
// reveal the sleep.
func TestSuspend_EndsExpiredLease(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	const end, nap = time.Hour, 2 * time.Hour
	for what, test := range map[string]struct {
		watchdog time.Duration
		options  []lockkeeper.Option
		reason   messages.Reason
	}{
		"watchdog": {end, nil, messages.Reason_REASON_EXPIRED},
		"lease":    {10 * nap, []lockkeeper.Option{lockkeeper.WithLease(end)}, messages.Reason_REASON_EXPIRED},
		"max hold": {10 * nap, []lockkeeper.Option{lockkeeper.WithMaxHold(end)}, messages.Reason_REASON_MAX_HOLD},
	} {
		t.Run(what, func(t *testing.T) {
			s, machine := locktest.OpenSuspendable(t, server.URL(), lockkeeper.Config{Watchdog: test.watchdog, CallTimeout: time.Hour})
			k := locktest.NewKey(t, server)
			hold := s.Acquire(t, k, test.options...)
			ctx := hold.Context()
			owner := k.HeldBy(t, s, "1")
			waiter := s.AcquireSoon(t, k)
			s.AwaitWaiters(t, k, 1)
			machine.Sleep(nap)
			if hold.Valid() {
				t.Error("the hold is valid after a sleep that was longer than its lease")
			}
			machine.Suspend(0)
			locktest.Await(t, "the loss", ctx.Done())
			locktest.Equal(t, locktest.IsError(t, context.Cause(ctx), lockkeeper.ErrLost), test.reason, "lost because of %v")
			next := locktest.Got(t, waiter).Hold
			if again := k.HeldBy(t, s, "1"); test.reason == messages.Reason_REASON_EXPIRED && again == owner {
				t.Errorf("the lease from before the sleep continues: %s", again)
			}
			locktest.ExpectValid(t, next)
			locktest.IsError(t, hold.Release(locktest.Within(t)), lockkeeper.ErrLost)
			locktest.Release(t, next)
			k.IsFree(t)
		})
	}
}

// A sleep that ends before the lease costs nothing, and counts in all other times.
func TestSuspend_CountsInAllTimes(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	cfg := lockkeeper.Config{Watchdog: time.Hour, Idle: 3 * time.Hour}
	s, machine := locktest.OpenSuspendable(t, server.URL(), cfg)
	atRest := s.Processes()
	other := locktest.Open(t, server.URL(), cfg)
	renewed, leased, foreign := locktest.NewKey(t, server), locktest.NewKey(t, server), locktest.NewKey(t, server)
	hold := s.Acquire(t, renewed)
	fixed := s.Acquire(t, leased, lockkeeper.WithLease(3*time.Hour))
	theirs := other.Acquire(t, foreign)
	waiter := s.AcquireSoon(t, foreign, lockkeeper.WithWait(time.Hour))
	patient := s.AcquireSoon(t, foreign, lockkeeper.WithWait(10*time.Hour))
	s.AwaitWaiters(t, foreign, 2)
	// A try that is under way when the machine falls asleep gets no reply in time, and the waiters would get that
	// error.
	entry := func() []string {
		text, _ := foreign.Do(t, "HGET", keyspace.WaitQueue(foreign.Name), s.ID()).ToString()
		return append(strings.Fields(text), make([]string, 8)...)
	}
	redistest.Eventually(t, "a try after the subscription", func() bool { return entry()[7] == "1" })
	seen := entry()[1]

	renewed.Do(t, "PEXPIRE", renewed.Name, "60000") // a renewal will change it
	machine.Suspend(30 * time.Minute)
	redistest.Eventually(t, "a renewal", func() bool { return renewed.TTL(t) > 30*time.Minute })
	redistest.Eventually(t, "a poll", func() bool { return entry()[1] != seen })
	if err := hold.Ensure(locktest.Within(t), 50*time.Minute); err != nil { // it waits for its reply, too
		t.Error(err)
	}
	machine.Suspend(40 * time.Minute)
	if g := locktest.Await(t, "the end of the wait", waiter); g.Err == nil {
		t.Error("the lock was granted after a wait of more than an hour")
	} else {
		locktest.IsError(t, g.Err, lockkeeper.ErrTimeout)
	}
	if !hold.Valid() || !fixed.Valid() {
		t.Errorf("after 70 minutes: the renewed hold is valid: %v, the one of three hours: %v", hold.Valid(), fixed.Valid())
	}
	locktest.Release(t, hold)
	machine.Suspend(2 * time.Hour)
	locktest.Await(t, "the end of the fixed lease", fixed.Context().Done())
	locktest.Release(t, theirs)
	locktest.Release(t, locktest.Got(t, patient).Hold)
	redistest.Eventually(t, "the lock actors to retire", func() bool {
		machine.Suspend(4 * time.Hour) // again, if an actor was not idle yet
		return s.Processes() == atRest
	})
}

// A renewal that was under way before the sleep does not restore a lease that ended during it, and the loss is
// reported without waiting for Redis.
func TestSuspend_LateRenewalRestoresNoLease(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s, machine := locktest.OpenSuspendable(t, proxy.URL(), lockkeeper.Config{Watchdog: time.Hour, Renewal: 50 * time.Millisecond, CallTimeout: time.Minute})
	k := locktest.NewKey(t, server)
	hold := s.Acquire(t, k)
	proxy.Hold(redistest.Script(scripts.Renew.SHA), redistest.Silent).Wait(t)
	k.Do(t, "PEXPIRE", k.Name, "3000000") // no renewal will change it
	machine.Suspend(2 * time.Hour)
	locktest.EndedBy(t, hold, messages.Reason_REASON_EXPIRED)
	proxy.Cut()
	k.AwaitFree(t)
	s.ExpectGranted(t, k)
}

// hooked is a clock that calls hook, once, before a Hold gets the time.
type hooked struct {
	boottime.Clock
	hook atomic.Pointer[func()]
}

func (h *hooked) Now() time.Duration {
	if hook := h.hook.Load(); hook != nil && strings.Contains(string(debug.Stack()), "lockkeeper.(*Hold).") &&
		h.hook.CompareAndSwap(hook, nil) {
		(*hook)()
	}
	return h.Clock.Now()
}

// A hold is lost, and the next waiter gets the lock, while a goroutine asks whether the first hold is valid.
func TestValid_LeaseOfTheNextHoldDoesNotCount(t *testing.T) {
	t.Parallel()
	for what, isGood := range map[string]func(*lockkeeper.Hold) bool{
		"Valid":  (*lockkeeper.Hold).Valid,
		"Left":   func(h *lockkeeper.Hold) bool { return h.Left() > 0 },
		"Ensure": func(h *lockkeeper.Hold) bool { return h.Ensure(locktest.Within(t), time.Millisecond) == nil },
	} {
		t.Run(what, func(t *testing.T) {
			k := locktest.NewKey(t, redistest.Shared(t))
			var machine *boottime.Suspendable
			clock := &hooked{}
			s := locktest.OpenWith(t, locktest.Connect(t, k.Server.URL()), nil, lockkeeper.Config{Watchdog: time.Hour, CallTimeout: time.Hour}, func(actors *actor.ActorSystem) {
				machine = boottime.Install(actors)
				clock.Clock, machine.Clock = machine.Clock, clock
			})
			first := s.Acquire(t, k)
			next := s.AcquireSoon(t, k)
			s.AwaitWaiters(t, k, 1)
			var second *lockkeeper.Hold
			hook := func() {
				machine.Suspend(2 * time.Hour)
				second = locktest.Got(t, next).Hold
			}
			clock.hook.Store(&hook)
			if isGood(first) {
				t.Errorf("the first hold is good although the second one is %v", second.Valid())
			}
			locktest.ExpectValid(t, second)
			locktest.Release(t, second)
		})
	}
}
