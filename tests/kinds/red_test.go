package kinds_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The validity is the rest of the lease, counted from before the first request, less the drift; never more.
func TestRedLock_ValidityIsLeaseLessDrift(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, redConfig)
	p := q.party(t)
	const lease, delay = time.Second, 50 * time.Millisecond // in each direction
	for _, proxy := range q.proxies {
		proxy.Delay(delay)
	}
	probe := p.sites[0].Probe(t)
	most := lease - 2*delay - machine.Margin(lease)
	granted := locktest.Ask[*messages.Acquired](t, probe, &messages.Acquire{
		Lock: &messages.Lock{Name: q.name, Kind: messages.Kind_KIND_RED}, Lease: durationpb.New(lease),
	})
	if v := granted.Validity.AsDuration(); v > most || v <= 0 {
		t.Errorf("a lease of %v has a validity of %v, and at most %v are left of it", lease, v, most)
	}
	locktest.Next[*messages.LeaseLost](t, probe)
	q.awaitFree(t)
}

// A process that cannot have the majority keeps nothing, and its own releases do not wake it. A minority does not
// count as held.
func TestRedLock_MinorityKeepsNothing(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, redConfig)
	p := q.party(t)
	q.takeAs(t, -1, 0, 1, 2)
	for range 30 { // often: a vote that comes just when the try is given up might be missed
		locktest.ExpectRefused(t, lockkeeper.ErrHeld, p.Lock)
		q.awaitGivenBack(t, 3, 4)
	}
	for i := range 3 {
		q.proxies[i].Delay(50 * time.Millisecond) // the vote is lost before they refuse
	}
	lost := q.proxies[4].DropRepliesTo(votes, 1)
	locktest.ExpectRefused(t, lockkeeper.ErrHeld, p.Lock)
	lost.Wait(t)
	q.awaitGivenBack(t, 3, 4)
	for i := range 3 {
		q.proxies[i].Delay(0)
	}
	status, err := p.Inspect(locktest.Within(t))
	if err != nil || !status.Locked || status.Holder != locktest.Redisson || status.HeldHere {
		t.Errorf("held by a majority: %+v, %v", status, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tries := countCommands(q.proxies[0], votes)
	granted := locktest.AcquireSoon(ctx, p.Lock)
	for i := range q.servers {
		q.key(i).AwaitSubscribers(t, 1)
	}
	// The first try, and one for each server that confirms the subscription.
	redistest.Eventually(t, "the first refusals", func() bool { return tries.Load() >= 7 })
	began := time.Now()
	redistest.Eventually(t, "a few more", func() bool { return tries.Load() >= 12 })
	if took := time.Since(began); took < redConfig.Poll/2 {
		t.Errorf("5 tries in %v, with a poll bound of %v", took, redConfig.Poll)
	}
	cancel()
	locktest.ExpectEnd(t, granted, context.Canceled)
	q.awaitGivenBack(t, 3, 4)
	q.unlock(t, 2) // what is left is a minority
	if status, err = p.Inspect(locktest.Within(t)); err != nil || status.Locked {
		t.Errorf("held by a minority: %+v, %v", status, err)
	}
	locktest.ExpectGranted(t, p.Lock)
	locktest.ForceRelease(t, p.Lock, false)
	q.awaitFree(t) // but it is gone there too, soon
}

// A majority suffices, whichever of the servers are unreachable or held by others.
func TestRedLock_MajoritySuffices(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, redConfig)
	p, other := q.party(t), q.party(t)
	turns := func(by ...int) {
		t.Helper()
		hold := locktest.Acquire(t, p.Lock)
		locktest.ExpectRefused(t, lockkeeper.ErrHeld, other.Lock)
		granted := locktest.AcquireSoon(locktest.Within(t), other.Lock)
		locktest.AwaitWaiters(t, other.Lock, 1)
		locktest.Release(t, hold)
		locktest.Release(t, locktest.Got(t, granted).Hold)
		q.awaitFree(t, by...)
	}
	for i := range q.servers {
		one, two, rest := i, (i+2)%5, []int{(i + 1) % 5, (i + 3) % 5, (i + 4) % 5}
		q.disconnect(true, one, two)
		turns(rest...)
		q.disconnect(false, one, two)
		q.takeAs(t, -1, one, two)
		turns(rest...)
		q.unlock(t, one, two)
	}
}

// Closing a member's System costs its vote; closing the first frees the lock.
func TestRedLock_CloseOfASystemCostsItsVote(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, redConfig)
	p, other := q.party(t), q.party(t)
	hold := locktest.Acquire(t, p.Lock)
	for _, s := range p.sites[3:] {
		locktest.Stop(t, s)
	}
	q.key(0).AwaitRenewals(t, time.Second)
	locktest.ExpectValid(t, hold)
	waiter := locktest.AcquireSoon(locktest.Within(t), p.Lock)
	locktest.AwaitWaiters(t, p.Lock, 1)
	locktest.Stop(t, p.sites[0])
	locktest.EndedBy(t, hold)
	locktest.ExpectEnd(t, waiter, lockkeeper.ErrClosed)
	q.awaitFree(t, 0, 1, 2)
	locktest.ExpectGranted(t, other.Lock) // the other two hold it until their TTL ends
}

func TestRedLock_RefusesInvalidSystems(t *testing.T) {
	t.Parallel()
	q := ownQuorum(t, redConfig, 4)
	open := func(url string, cfg lockkeeper.Config) *lockkeeper.System { return locktest.Open(t, url, cfg).System }
	var s []*lockkeeper.System
	for _, server := range q.servers {
		s = append(s, open(server.URL(), redConfig))
	}
	same, slow := open(q.proxies[0].URL()+"/1", redConfig), open(redistest.Shared(t).URL(), lockkeeper.Config{})
	for what, systems := range map[string][]*lockkeeper.System{
		"none": nil, "two": s[:2], "nil": {s[0], nil, s[2]}, "twice": {s[0], s[1], s[0]}, "another Watchdog": {s[0], s[1], slow},
		"one server twice": {s[0], s[1], same},
	} {
		if _, err := lockkeeper.NewRedLock(systems...); !errors.Is(err, lockkeeper.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	red := locktest.Must(lockkeeper.NewRedLock(s[:3]...))(t)
	if _, err := lockkeeper.NewRedLock(s[:3]...); err != nil {
		t.Errorf("the same once more: %v", err)
	}
	if _, err := lockkeeper.NewRedLock(s...); !errors.Is(err, lockkeeper.ErrInvalid) {
		t.Errorf("others with the same first: %v", err)
	}
	locktest.Fails(red.Lock("").Acquire(locktest.Within(t)))(t, lockkeeper.ErrInvalid)
	locktest.Fails(red.Lock(q.name).Acquire(locktest.Within(t), lockkeeper.WithLease(time.Minute)))(t, lockkeeper.ErrInvalid)

	// A server that cannot be reached is recognized by its votes.
	q.disconnect(true, 0)
	behind, err := lockkeeper.ConnectLater(q.proxies[0].URL())
	twice := locktest.Must(lockkeeper.NewRedLock(open(q.servers[0].URL(), redConfig), locktest.OpenWith(t, behind, err, redConfig).System, s[3]))(t)
	q.disconnect(false, 0)
	redistest.Eventually(t, "the refusal", func() bool {
		hold, err := twice.Lock(q.name).TryAcquire(locktest.Within(t))
		if err == nil { // granted by the first and the last, before the second has identified itself
			locktest.Release(t, hold)
		}
		return errors.Is(err, lockkeeper.ErrRejected) && strings.Contains(err.Error(), "same Redis server")
	})
}

// A RedLock starts with its majority. A server that is unreachable then joins later.
func TestRedLock_StartsWithoutMinority(t *testing.T) {
	t.Parallel()
	q := ownQuorum(t, redConfig, 3)
	q.servers[2].Kill(t)
	var sites []*locktest.Site
	for _, server := range q.servers {
		client, err := lockkeeper.ConnectLater(server.URL())
		sites = append(sites, locktest.OpenWith(t, client, err, redConfig))
	}
	p := q.partyOf(t, sites...)
	hold := locktest.Acquire(t, p.Lock)
	locktest.ExpectRefused(t, lockkeeper.ErrUnavailable, sites[2].Lock(q.name+"alone"))

	q.servers[2].Restart(t)
	q.awaitHeld(t, "1", 2) // although it has no vote yet
	q.servers[0].Kill(t)   // the others are a majority now
	q.key(2).AwaitRenewals(t, time.Second)
	locktest.ExpectValid(t, hold)
	locktest.Release(t, hold)
	q.awaitFree(t, 1, 2)
}

// A hanging minority of servers delays nothing.
func TestRedLock_HangingMinorityDelaysNothing(t *testing.T) {
	t.Parallel()
	cfg := lockkeeper.Config{Watchdog: 40 * time.Second, CallTimeout: 8 * time.Second}
	q := newQuorum(t, cfg)
	p, other := q.party(t), q.party(t)
	locktest.ExpectGranted(t, p.Lock) // the connections are open
	locktest.ExpectGranted(t, other.Lock)
	q.awaitFree(t)
	hang := func(on bool) { q.proxies[0].Freeze(on); q.proxies[1].Freeze(on) }
	hang(true)
	var hold *lockkeeper.Hold
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"a grant", func() { hold = locktest.Acquire(t, p.Lock) }},
		{"a re-entry and its release", func() { locktest.Release(t, locktest.AcquireIn(t, hold.Context(), p.Lock)) }},
		{"a renewal", func() { locktest.Ensure(t, hold, cfg.Watchdog*989/1000) }},
		{"Inspect", func() {
			if status, err := other.Inspect(locktest.Within(t)); err != nil || !status.Locked || status.HoldCount != 1 {
				t.Errorf("it is held, but seen as %+v, %v", status, err)
			}
		}},
		{"a refusal", func() { locktest.ExpectRefused(t, lockkeeper.ErrHeld, other.Lock) }},
		{"a forced release", func() { locktest.ForceRelease(t, p.Lock, true) }},
		{"a forced release of nothing", func() { locktest.ForceRelease(t, other.Lock, false) }},
		{"a grant and its release", func() { locktest.ExpectGranted(t, other.Lock) }},
		{"a vote split with another owner", func() {
			q.takeAs(t, -1, 2)
			locktest.ExpectRefused(t, lockkeeper.ErrHeld, p.Lock)
			q.unlock(t, 2)
		}},
	} {
		began := time.Now()
		step.do()
		if took := time.Since(began); took > cfg.CallTimeout/2 {
			t.Errorf("%s with a hanging minority took %v", step.what, took)
		}
	}
	hang(false)
	q.awaitGivenBack(t)
}
