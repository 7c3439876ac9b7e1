package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Crashes in a row, in every message that a lock actor handles and in its life cycle messages, keep its timer set: the
// end of a lease is reported, and a renewed lease lasts.
func TestCrash_SeveralInARowKeepTheTimer(t *testing.T) {
	for _, crashes := range []string{
		"actors.wakeUp *actor.Restarting", "actors.wakeUp *actor.Started", "actors.wakeUp *actor.Restarting *actor.Started",
		"actors.wakeUp actors.wakeUp", "actors.wakeUp *kinds.Reply", "*kinds.Reply *actor.Restarting", "*kinds.Reply *kinds.Reply",
		"*request.Call *actor.Restarting", "*request.Call *request.Call", "*messages.Inspect *actor.Started", "*messages.Inspect *messages.Inspect",
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(when+" "+strings.ReplaceAll(crashes, "*", ""), func(t *testing.T) {
				t.Parallel()
				const watchdog, lease = 3 * time.Second, 400 * time.Millisecond
				faults, s, renewed := locktest.NewFaultInjector(t, lockkeeper.Config{Watchdog: watchdog, Renewal: 100 * time.Millisecond})
				fixed, other := locktest.NewKey(t, renewed.Server), s.Probe(t)
				kept := s.Acquire(t, renewed)
				types := strings.Fields(crashes)
				if when == "before" {
					faults.Hit(locktest.InTurn(types...), nil)
				} else {
					faults.Hit(nil, locktest.InTurn(types...))
				}
				lost, err := s.Lock(fixed.LockName).Acquire(locktest.Within(t), lockkeeper.WithLease(lease))
				for err != nil { // if it was among the crashes
					lost, err = s.Lock(fixed.LockName).Acquire(locktest.Within(t), lockkeeper.WithLease(lease))
				}
				for _, k := range []locktest.Key{renewed, fixed, renewed, fixed} {
					_, _ = s.Lock(k.LockName).Inspect(locktest.Within(t))
					other.Send(&messages.Inspect{Lock: k.Message()})
				}
				locktest.Await(t, "the end of the lease", lost.Context().Done())
				redistest.Eventually(t, "all crashes", func() bool { return faults.Count.Load() == int64(len(types)) })
				locktest.ExpectValidFor(t, watchdog*5/4, kept)
				locktest.ExpectValid(t, kept)
				locktest.Release(t, kept)
			})
		}
	}
}

// A message that is not repeated is handled after any number of crashes.
func TestCrash_LosesNoDeathOfAHolder(t *testing.T) {
	t.Parallel()
	faults, s, k := locktest.NewFaultInjector(t, lockkeeper.Config{})
	holder, next := s.Probe(t), s.Probe(t)
	locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: k.Message()})
	next.Send(&messages.Acquire{Lock: k.Message()})
	s.AwaitWaiters(t, k, 1)
	faults.Hit(locktest.InTurn("*actor.Terminated", "*actors.again", "*actors.again"), nil)
	holder.Die()
	locktest.Next[*messages.Acquired](t, next)
	locktest.Equal(t, faults.Count.Load(), 3, "%d crashes")
}

// The holder of a MultiLock is notified of the forced release of a member, although its lock actor crashes on that
// message. The next renewal would come after a minute.
func TestCrash_LosesNoForcedRelease(t *testing.T) {
	t.Parallel()
	faults, s, member := locktest.NewFaultInjector(t, lockkeeper.Config{Watchdog: 3 * time.Minute})
	hold := locktest.Acquire(t, lockkeeper.MultiLock(s.Lock(member.LockName), s.Lock(member.LockName+" too")))
	faults.Hit(locktest.InTurn("actors.suspicion", "*actors.again"), nil)
	locktest.ForceRelease(t, s.Lock(member.LockName), true)
	locktest.EndedBy(t, hold)
}

// A lock actor that is stopped while it crashes still answers the requests in its mailbox, and a release that is
// repeated.
func TestCrash_StoppedActorAnswersItsMailbox(t *testing.T) {
	t.Parallel()
	var s *locktest.Site
	var p *locktest.Probe
	first := locktest.Once("*messages.Inspect")
	var k locktest.Key
	s, k = locktest.New(t, lockkeeper.Config{}, locktest.Around(func(c actor.ReceiverContext, m any, pass func()) {
		if first(m) {
			for range 3 {
				s.Actors.Root.RequestWithCustomSender(c.Self(), &messages.Acquire{Lock: k.Message(), Owner: p.Pid}, p.Pid)
			}
			s.Actors.Root.Stop(c.Self())
			panic("while it is stopped")
		}
		pass()
	}))
	p = s.Probe(t)
	p.Send(&messages.Inspect{Lock: k.Message()})
	answers := map[messages.Reason]int{}
	for range 4 { // the answer to the crashed one comes from the guardian, at any time
		answers[locktest.Next[locktest.Refusal](t, p).GetReason()]++
	}
	if answers[messages.Reason_REASON_CRASHED] != 1 || answers[messages.Reason_REASON_CLOSED] != 3 {
		t.Errorf("answered %v", answers)
	}

	crash, restart := locktest.Once("*messages.Release"), locktest.Once("*actor.Restarting")
	s, k = locktest.New(t, lockkeeper.Config{}, locktest.Around(func(c actor.ReceiverContext, m any, pass func()) {
		if crash(m) {
			panic("over the release")
		}
		if restart(m) {
			s.Actors.Root.Stop(c.Self())
		}
		pass()
	}))
	p = s.Probe(t)
	p.Notice = func(m any) bool { _, lost := m.(*messages.LeaseLost); return !lost }
	granted := locktest.Ask[*messages.Acquired](t, p, &messages.Acquire{Lock: k.Message()})
	locktest.ExpectRefusal(t, p, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId}, messages.Reason_REASON_CLOSED)
	k.AwaitFree(t)
}
