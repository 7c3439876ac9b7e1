package expirable_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Permits that are acquired together are in Redis like any others, and are extended, released and lost together.
func TestSeveral_ShareOneFate(t *testing.T) {
	t.Parallel()
	server, name := redistest.Start(t), redistest.Name(t)
	s, p := open(t, server.URL(), name, 50, lockkeeper.Config{Watchdog: 10 * time.Minute, Application: "several"})
	_, there := open(t, server.URL(), name, 0, lockkeeper.Config{})
	const n = 40 // more than a release is about holds
	permit := acquire(t, p, lockkeeper.WithPermits(n), lockkeeper.WithNote("a job"))
	awaitPermits(t, there, 50-n, n)
	locktest.Fails(there.TryAcquire(locktest.Within(t), lockkeeper.WithPermits(11)))(t, lockkeeper.ErrHeld)
	release(t, acquire(t, there, lockkeeper.WithPermits(10)))
	ids := permit.IDs()
	if ids[0] != permit.ID() || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != n {
		t.Errorf("the ids are %q", ids)
	}
	redistest.Eventually(t, "the note with all of them", func() bool {
		inspector := inspect.Inspector{Client: s.Client}
		c := locktest.Must(inspector.Counter(locktest.Within(t), name))(t)
		return !slices.ContainsFunc(c.Permits, func(one inspect.Permit) bool { return one.Note != "a job" || !slices.Contains(ids, one.ID) })
	})
	locktest.OK(t, permit.Extend(locktest.Within(t), time.Hour))
	for _, end := range expiries(t, server, name) {
		if time.Until(end) < 50*time.Minute {
			t.Errorf("one expires in %v", time.Until(end))
		}
	}
	server.ResetStats(t)
	release(t, permit)
	if calls := server.Calls(t)["evalsha"]; calls > 2 { // the record is written, too
		t.Errorf("the release took %d commands", calls)
	}
	awaitPermits(t, there, 50, 0)

	permit = acquire(t, p, lockkeeper.WithPermits(3))
	locktest.OK(t, there.ReleaseID(locktest.Within(t), permit.IDs()[1]))
	locktest.IsError(t, permit.Extend(locktest.Within(t), time.Minute), lockkeeper.ErrLost)
	awaitPermits(t, there, 50, 0)
	permit = acquire(t, p, lockkeeper.WithPermits(3))
	locktest.OK(t, p.ReleaseID(locktest.Within(t), permit.IDs()[2]))
	locktest.IsError(t, permit.Err(), lockkeeper.ErrLost)
	awaitPermits(t, there, 50, 0)
	permit = acquire(t, p, lockkeeper.WithPermits(3))
	locktest.OK(t, s.Close(locktest.Within(t)))
	locktest.IsError(t, permit.Err(), lockkeeper.ErrLost)
	awaitPermits(t, there, 50, 0)
}

// The permits that one message asks for are granted together, and come back together when their holder dies.
func TestSeveral_ComeTogetherByMessage(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, lockkeeper.Config{})
	name, holder, other := k.LockName, s.Probe(t), s.Probe(t)
	locktest.Must(s.ExpirableSemaphore(name).TrySetPermits(locktest.Within(t), 3))(t)
	granted := locktest.Ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: message(name), Permits: 3, ShowPermit: true})
	if len(granted.PermitIds) != 3 || numbersOf(t, other, name) != "0 3 3 0" {
		t.Errorf("granted %q, and counted %s", granted.PermitIds, numbersOf(t, other, name))
	}
	locktest.ExpectRefusal(t, other, &messages.Acquire{Lock: message(name), Wait: durationpb.New(0)}, messages.Reason_REASON_HELD)
	for _, wrong := range []*messages.Acquire{{Lock: message(name), Permits: -1}, {Lock: message(name), Permits: 1001}, {Lock: &messages.Lock{Name: "a"}, Permits: 1}} {
		locktest.ExpectRefusal(t, other, wrong, messages.Reason_REASON_INVALID)
	}
	ctx := locktest.Within(t)
	for _, n := range []int{0, -1, 1001} {
		locktest.Fails(s.ExpirableSemaphore(name).Acquire(ctx, lockkeeper.WithPermits(n)))(t, lockkeeper.ErrInvalid)
	}
	locktest.Fails(s.Lock(name+"2").Acquire(ctx, lockkeeper.WithPermits(1)))(t, lockkeeper.ErrInvalid)
	holder.Die()
	redistest.Eventually(t, "the permits of the dead", func() bool { return numbersOf(t, other, name) == "3 0 3 0" })
}

// If a process does not reach Redis when its request for several permits leaves, no permits are kept for it once it
// does.
func TestSeveral_AreNotKeptAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := locktest.NewRemote(t, redistest.Shared(t), locktest.ShortCallTimeout)
	_, there := open(t, s.Server.URL(), s.LockName, 4, locktest.NoPolling)
	held := acquire(t, there, lockkeeper.WithPermits(2))
	ctx, cancel := context.WithCancel(locktest.Within(t))
	defer cancel()
	many := acquireSoon(ctx, s.ExpirableSemaphore(s.LockName), lockkeeper.WithPermits(3))
	redistest.Eventually(t, "permits to be kept", func() bool { return s.Number(t, "EXISTS", keyspace.Calls(s.LockName)+":kept") == 1 })
	one := acquireSoon(locktest.Within(t), there)
	s.Proxy.Refuse(true)
	cancel()
	locktest.IsError(t, locktest.Await(t, "the end of the first request", many), context.Canceled)
	locktest.Fails(s.ExpirableSemaphore(s.LockName).Available(locktest.Within(t)))(t, lockkeeper.ErrUnavailable)
	s.Proxy.Refuse(false)
	locktest.OK(t, locktest.Await(t, "a permit", one))
	release(t, held)
}
