package locks_test

// Owners on other nodes.

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// withRemoteNode returns a site, and a node with its owners.
func withRemoteNode(t *testing.T, cfg lockkeeper.Config) (n *locktest.Network, s *locktest.Site, k locktest.Key, there *locktest.Site) {
	t.Helper()
	k, n = locktest.NewKey(t, redistest.Shared(t)), &locktest.Network{}
	s = locktest.OpenWith(t, locktest.Connect(t, k.Server.URL()), nil, cfg, func(system *actor.ActorSystem) { n.Join(system, "here:1") })
	return n, s, k, n.Node(s, "there:1")
}

// A process cannot know whether an actor on another node is dead. Its holds must end by themselves, which the
// watchdog would prevent.
func TestRemoteOwner_NeedsALease(t *testing.T) {
	t.Parallel()
	_, s, k, there := withRemoteNode(t, lockkeeper.Config{})
	owner, local := there.Probe(t), s.Probe(t)
	refused := func(how string, m *messages.NotAcquired) {
		t.Helper()
		if m.Reason != invalid {
			t.Fatalf("%s: answered %v", how, m)
		}
		locktest.ExpectWords(t, m.Detail, "another node", "lease", "System")
		k.IsFree(t)
	}
	for how, acquire := range map[string]*messages.Acquire{
		"its own": {}, "with a max hold": {MaxHold: durationpb.New(time.Minute)}, "for an owner here": {Owner: local.Pid},
	} {
		acquire.Lock, acquire.Wait = k.Message(), durationpb.New(0)
		refused(how, locktest.Ask[*messages.NotAcquired](t, owner, acquire))
	}
	refused("asked for here", locktest.Ask[*messages.NotAcquired](t, local, &messages.Acquire{Lock: k.Message(), Owner: owner.Pid}))
	refused("a future's", locktest.Future[*messages.NotAcquired](t, there, &messages.Acquire{Lock: k.Message(), MaxHold: durationpb.New(time.Minute)}))

	// With a lease it is granted, by message and by future.
	const lease = time.Minute
	granted := locktest.Ask[*messages.Acquired](t, owner, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(lease)})
	// Its clock and ours may differ as ours and Redis's may.
	trusted := func(d time.Duration) time.Duration { return d - d/100 - 2*time.Millisecond }
	if most := trusted(trusted(lease)) + 1; granted.Validity.AsDuration() > most {
		t.Errorf("the validity is %v, and must not be more than %v", granted.Validity.AsDuration(), most)
	}
	locktest.Ask[*messages.Released](t, owner, &messages.Release{Lock: k.Message(), HoldId: granted.HoldId})
	locktest.Future[*messages.Acquired](t, there, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(2 * time.Second)})
	k.AwaitFree(t)
	s.ExpectGranted(t, k)
}

// Another node addresses the guardian by its name. Only one System of an actor system has it.
func TestRemoteOwner_AddressesTheGuardianByName(t *testing.T) {
	t.Parallel()
	_, s, k, there := withRemoteNode(t, lockkeeper.Config{})
	second := locktest.OpenIn(t, s.Actors, locktest.Connect(t, k.Server.URL()), nil, lockkeeper.Config{})
	if id := second.Guardian().Id; id == lockkeeper.GuardianName {
		t.Errorf("two guardians are named %s", id)
	}
	request := &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(time.Minute)}
	future := there.Actors.Root.RequestFuture(actor.NewPID("here:1", lockkeeper.GuardianName), request, locktest.Soon)
	if answer, err := future.Result(); err != nil {
		t.Error(err)
	} else if _, is := answer.(*messages.Acquired); !is {
		t.Errorf("it is answered %v", answer)
	}
	locktest.ForceRelease(t, s.Lock(k.LockName), true)
}

// A broken connection does not count as a death: the owner may be alive, and trust its lease.
func TestRemoteOwner_KeepsItsHoldWhenDisconnected(t *testing.T) {
	t.Parallel()
	n, s, k, there := withRemoteNode(t, locktest.NoPolling)
	owner := there.Probe(t)
	granted := locktest.Ask[*messages.Acquired](t, owner, &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(locktest.Watchdog)})
	field := k.HeldBy(t, s, "1")
	next := s.AcquireSoon(t, k)
	s.AwaitWaiters(t, k, 1)
	n.Cut()
	if status := s.Inspect(t, k); !status.HeldHere || status.Waiters != 1 {
		t.Errorf("after the cut: %+v", status)
	}
	if now := k.HeldBy(t, s, "1"); now != field {
		t.Errorf("the cut has changed the field to %s, from %s", now, field)
	}
	locktest.Pending(t, next, "the owner's lease has not ended")
	if lost := locktest.Next[*messages.LeaseLost](t, owner); lost.HoldId != granted.HoldId || lost.Reason != messages.Reason_REASON_EXPIRED {
		t.Errorf("notified of %v", lost)
	}
	locktest.Release(t, locktest.Got(t, next).Hold)
}

// A process that restarts at its address may have actors with the same names: they are not the holders.
func TestRemoteOwner_IsNotItsNamesake(t *testing.T) {
	t.Parallel()
	n, s, k, there := withRemoteNode(t, locktest.NoPolling)
	acquire := &messages.Acquire{Lock: k.Message(), Lease: durationpb.New(locktest.Watchdog)}
	first := there.Probe(t)
	granted := locktest.Ask[*messages.Acquired](t, first, acquire)
	second := n.Node(s, "there:1").Probe(t)
	if second.Pid.Id != first.Pid.Id {
		t.Fatalf("%s is no namesake of %s", second.Pid, first.Pid)
	}
	n.Cut()
	locktest.ExpectRefusal(t, second, acquire, messages.Reason_REASON_REENTRY, "another node")
	locktest.ExpectRefusal(t, second, &messages.Release{Lock: k.Message()}, invalid, "hold_id")
	k.HeldBy(t, s, "1")
	if lost := locktest.Next[*messages.LeaseLost](t, second); lost.HoldId != granted.HoldId { // meant for the first
		t.Errorf("notified of %v", lost)
	}
	if got := locktest.Ask[*messages.Acquired](t, second, acquire); got.HoldCount != 1 || got.HoldId == granted.HoldId {
		t.Errorf("granted %v", got)
	}
	k.AwaitFree(t)
}
