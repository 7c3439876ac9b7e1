package expirable_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/faultinject"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// message is an expirable semaphore in a message.
func message(name string) *messages.Lock {
	return &messages.Lock{Name: name, Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE}
}

// numbersOf returns how many permits are free, are taken and are there, and how many requests wait.
func numbersOf(t *testing.T, p *locktest.Probe, name string) string {
	t.Helper()
	s := locktest.Ask[*messages.Status](t, p, &messages.Inspect{Lock: message(name)})
	return fmt.Sprint(s.FreePermits, " ", s.TakenPermits, " ", s.AllPermits, " ", s.Waiters)
}

// Messages do all that calls can do.
func TestExpirable_WorksByMessage(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	name, holder, other := k.LockName, s.Probe(t), s.Probe(t)
	for i, step := range []struct {
		how  messages.SetPermitsHow
		n    int64
		want bool
	}{
		{messages.SetPermitsHow_SET_PERMITS_HOW_TRY, 3, true}, {messages.SetPermitsHow_SET_PERMITS_HOW_TRY, 9, false},
		{messages.SetPermitsHow_SET_PERMITS_HOW_TOTAL, 1, true}, {messages.SetPermitsHow_SET_PERMITS_HOW_ADD, 1, true},
	} {
		if set := locktest.Ask[*messages.ExpirablePermitsSet](t, other, &messages.SetExpirablePermits{Lock: message(name), Permits: step.n, How: step.how}); set.Set != step.want {
			t.Errorf("step %d: set %v", i, set.Set)
		}
	}
	first := locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: message(name), ShowPermit: true})
	second := locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: message(name)})
	if len(first.PermitIds) != 1 || len(first.PermitIds[0]) != 32 || second.PermitIds != nil ||
		first.HoldId == second.HoldId || second.HoldCount != 1 {
		t.Errorf("granted %v %q and %v %q", first, first.PermitIds, second, second.PermitIds)
	}
	locktest.ExpectRefusal(t, other, &messages.Acquire{Lock: message(name), Wait: durationpb.New(0)}, messages.Reason_REASON_HELD)
	other.Send(&messages.Acquire{Lock: message(name)})
	waits := s.Probe(t)
	redistest.Eventually(t, "the waiter", func() bool { return numbersOf(t, waits, name) == "0 2 2 1" })
	locktest.Ask[*messages.Released](t, holder, &messages.Release{Lock: message(name)}) // the first
	third := locktest.Next[*messages.Acquired](t, other)
	locktest.ExpectRefusal(t, holder, &messages.Release{Lock: message(name), HoldId: first.HoldId}, messages.Reason_REASON_NOT_HELD)
	locktest.ExpectRefusal(t, holder, &messages.ReleaseByID{Lock: message(name), PermitId: first.PermitIds[0]}, messages.Reason_REASON_NOT_HELD)
	waits.Send(&messages.Acquire{Lock: message(name)})
	redistest.Eventually(t, "the waiter", func() bool { return numbersOf(t, other, name) == "0 2 2 1" })
	waits.Send(&messages.Cancel{Lock: message(name)})
	locktest.Next[*messages.NotAcquired](t, waits)
	locktest.Next[*messages.Cancelled](t, waits)
	locktest.Ask[*messages.Released](t, other, &messages.Release{Lock: message(name), HoldId: third.HoldId})
	shown := locktest.Ask[*messages.Acquired](t, other, &messages.Acquire{Lock: message(name), ShowPermit: true, Lease: durationpb.New(time.Minute)})
	locktest.Ask[*messages.Released](t, waits, &messages.ReleaseByID{Lock: message(name), PermitId: shown.PermitIds[0]})
	if lost := locktest.Next[*messages.LeaseLost](t, other); lost.HoldId != shown.HoldId || lost.Reason != messages.Reason_REASON_FORCED {
		t.Errorf("notified of %v", lost)
	}
	for _, request := range []any{
		&messages.ReleaseByID{Lock: message(name), PermitId: "x"}, &messages.SetExpirablePermits{Lock: message(name), Permits: -1},
		&messages.SetExpirablePermits{Lock: message(name), How: 9}, &messages.SetExpirablePermits{Lock: k.Message(), Permits: 1}, &messages.ForceRelease{Lock: message(name)},
		&messages.Acquire{Lock: k.Message()}, &messages.Acquire{Lock: &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: []*messages.Lock{message("a")}}},
	} {
		if answer := locktest.Ask[locktest.Refusal](t, waits, request); answer.GetReason() != messages.Reason_REASON_INVALID {
			t.Errorf("%T: answered %v", request, answer)
		}
	}
	holder.Die()
	redistest.Eventually(t, "the permits of the dead", func() bool { return numbersOf(t, waits, name) == "2 0 2 0" })
}

// A release without a permit id releases a permit that the owner holds, and never a permit that it has lost.
func TestExpirable_ReleaseIgnoresLostPermits(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	name, p, other := k.LockName, s.Probe(t), s.Probe(t)
	locktest.Ask[*messages.ExpirablePermitsSet](t, other, &messages.SetExpirablePermits{Lock: message(name), Permits: 3})
	first := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: message(name), ShowPermit: true})
	locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: message(name)})
	locktest.Ask[*messages.Released](t, other, &messages.ReleaseByID{Lock: message(name), PermitId: first.PermitIds[0]})
	locktest.Next[*messages.LeaseLost](t, p)
	locktest.Ask[*messages.Released](t, p, &messages.Release{Lock: message(name)})
	locktest.ExpectRefusal(t, p, &messages.Release{Lock: message(name)}, messages.Reason_REASON_LOST)
	locktest.Equal(t, numbersOf(t, other, name), "3 0 3 0", "free, taken, all, waiting: %s")
}

// Permits survive the crashes of their actor. When the actor is given up, they are released, and all holders and
// waiters are notified.
func TestExpirable_SurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, messageType := range []string{"*messages.Acquire", "*messages.Release", "*messages.ReleaseByID", "*messages.SetExpirablePermits", "*kinds.Reply", "actors.wakeUp"} {
		for _, when := range []string{"before", "after"} {
			t.Run(when+" "+messageType, func(t *testing.T) {
				t.Parallel()
				faults, s, k := locktest.NewFaultInjector(t, lockkeeper.Config{Watchdog: watchdog, Renewal: watchdog / 10})
				name, holder := k.LockName, s.Probe(t)
				locktest.Ask[*messages.ExpirablePermitsSet](t, holder, &messages.SetExpirablePermits{Lock: message(name), Permits: 2})
				kept := locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: message(name)})
				if when == "before" {
					faults.Hit(locktest.Once(messageType), nil)
				} else {
					faults.Hit(nil, locktest.Once(messageType))
				}
				for range 3 { // one of them may be answered with the crash
					holder.Send(&messages.SetExpirablePermits{Lock: message(name), Permits: 2, How: messages.SetPermitsHow_SET_PERMITS_HOW_TOTAL})
					<-holder.Mail
					if granted, ok := locktest.Ask[any](t, holder, &messages.Acquire{Lock: message(name), ShowPermit: true}).(*messages.Acquired); ok {
						locktest.Ask[*messages.LeaseLost](t, holder, &messages.ReleaseByID{Lock: message(name), PermitId: granted.PermitIds[0]})
						locktest.Next[*messages.Released](t, holder)
					}
					if granted, ok := locktest.Ask[any](t, holder, &messages.Acquire{Lock: message(name)}).(*messages.Acquired); ok {
						locktest.Ask[*messages.Released](t, holder, &messages.Release{Lock: message(name), HoldId: granted.HoldId})
					}
				}
				redistest.Eventually(t, "the crash", func() bool { return faults.Count.Load() == 1 })
				awaitHeldFor(t, s.System, name, watchdog*5/4)
				locktest.Equal(t, numbersOf(t, holder, name), "1 1 2 0", "there are %s")
				waiter := s.Probe(t)
				locktest.Ask[*messages.Acquired](t, waiter, &messages.Acquire{Lock: message(name)})
				waiter.Send(&messages.Acquire{Lock: message(name)})
				redistest.Eventually(t, "the waiter", func() bool { return numbersOf(t, holder, name) == "0 2 2 1" })
				faults.Hit(func(m any) bool { return faultinject.TypeOf(m) == "*messages.Release" }, nil)
				other := s.Probe(t)
				for range 20 {
					other.Send(&messages.Release{Lock: message(name), HoldId: "z"})
				}
				if lost := locktest.Next[*messages.LeaseLost](t, holder); lost.HoldId != kept.HoldId || lost.Reason != messages.Reason_REASON_CRASHED {
					t.Errorf("notified of %v", lost)
				}
				if refused, lost := locktest.Next[any](t, waiter), locktest.Next[any](t, waiter); fmt.Sprintf("%T %T", refused, lost) != "*messages.LeaseLost *messages.NotAcquired" {
					t.Errorf("the waiter received %T and %T", refused, lost)
				}
				faults.Hit(nil, nil)
				redistest.Eventually(t, "the permits", func() bool { return numbersOf(t, holder, name) == "2 0 2 0" })
			})
		}
	}
}
