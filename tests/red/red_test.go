package red_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The validity is what is left of the lease, counted from before the first request,
// without the drift; never more.
func TestRedValidity(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p := f.party(t)
	const delay = 80 * time.Millisecond // in each direction
	for _, proxy := range f.proxies {
		proxy.Delay(delay)
	}
	actor := p.sites[0].Probe(t)
	lock := &messages.Lock{Name: f.name, Kind: messages.Kind_KIND_RED}
	for _, lease := range []time.Duration{1500 * time.Millisecond, redConfig.Watchdog} {
		most := lease - 2*delay - core.Margin(lease)
		granted := locktest.Ask[*messages.Acquired](t, actor, &messages.Acquire{Lock: lock, Lease: durationpb.New(lease)})
		if v := granted.Validity.AsDuration(); v > most || v <= 0 {
			t.Errorf("a lease of %v has a validity of %v, and at most %v are left of it", lease, v, most)
		}
		locktest.Next[*messages.LeaseLost](t, actor)

		hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock, lockkeeper.WithLease(lease))
		expiry := f.key(0).Expiry(t)
		for i := range f.servers {
			if at := f.key(i).Expiry(t); at.Before(expiry) && !at.IsZero() {
				expiry = at
			}
		}
		var last time.Time
		for {
			before := time.Now()
			if !hold.Valid() {
				break
			}
			last = before
		}
		if end := expiry.Add(-core.Margin(lease)); last.After(end) {
			t.Errorf("a lease of %v was valid %v after its end", lease, last.Sub(end))
		}
		locktest.IsOver(t, hold)
	}
	hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
	locktest.IsError(t, hold.Ensure(locktest.Within(t), redConfig.Watchdog), lockkeeper.ErrInvalid)
	if err := hold.Ensure(locktest.Within(t), redConfig.Watchdog/2); err != nil {
		t.Error(err)
	}
	locktest.Release(t, hold)
	f.awaitFree(t, allFive...)
}

// Whoever cannot have the majority keeps nothing, and does not wake itself up with
// what it gives back.
func TestRedMinority(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	for i := range 3 {
		f.key(i).TakeAs(t, locktest.Redisson, -1)
	}
	for range 100 { // often, since a vote that comes just when the try is given up could be forgotten
		_, err := p.TryAcquire(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrHeld)
		f.awaitGivenBack(t, 3, 4)
	}
	status, err := p.Inspect(locktest.Within(t))
	if err != nil || !status.Locked || status.Holder != locktest.Redisson || status.HeldHere {
		t.Errorf("held by a majority: %+v, %v", status, err)
	}
	for what, parties := range map[string][]*party{"one waits": {p}, "two wait": {p, other}} {
		ctx, cancel := context.WithCancel(context.Background())
		var waiting []<-chan locktest.Grant
		for _, each := range parties {
			waiting = append(waiting, locktest.AcquireSoon(ctx, each.Lock))
		}
		for i := range f.servers {
			f.key(i).AwaitSubscribers(t, int64(len(parties)))
		}
		began := time.Now()
		f.servers[0].ResetStats(t)
		tries := 6 * len(parties)
		redistest.Eventually(t, "a few refusals", func() bool { return f.servers[0].Calls(t)["hrandfield"] >= int64(tries) })
		// Each may meet the other's minority now and then, and look again at once.
		if took := time.Since(began); took < redConfig.Poll/2 {
			t.Errorf("%s: %d tries in %v, with a poll bound of %v", what, tries, took, redConfig.Poll)
		}
		cancel()
		for _, g := range waiting {
			if g := locktest.Await(t, "the error", g); g.Err == nil {
				t.Error("granted without a majority")
			}
		}
		f.awaitGivenBack(t, 3, 4)
	}
	f.key(2).Unlock(t) // what is left is a minority
	if status, err = p.Inspect(locktest.Within(t)); err != nil || status.Locked {
		t.Errorf("held by a minority: %+v, %v", status, err)
	}
	locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), p.Lock))
	f.awaitFree(t, 2, 3, 4)
}

// Nobody gets stuck when several take some servers each.
func TestRedSplitVotes(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	began := time.Now()
	const grants = 10
	var clients sync.WaitGroup
	for range 3 {
		p := f.party(t)
		clients.Go(func() {
			for range grants {
				ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
				hold, err := p.Acquire(ctx)
				if err == nil {
					err = hold.Release(ctx)
				}
				if cancel(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	t.Logf("3 processes, %d grants each, in %v", grants, time.Since(began))
	f.awaitFree(t, allFive...)
}

func TestRedForceRelease(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	for by, want := range map[*party]messages.Reason{p: messages.Reason_REASON_FORCED, other: messages.Reason_REASON_GONE} {
		hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
		if status, err := other.Inspect(locktest.Within(t)); err != nil || !status.Locked || status.HeldHere || status.HoldCount != 1 {
			t.Errorf("%+v, %v", status, err)
		}
		if was, err := by.ForceRelease(locktest.Within(t)); !was || err != nil {
			t.Errorf("%v, %v", was, err)
		}
		if reason := locktest.IsOver(t, hold); reason != want {
			t.Errorf("the reason is %v, want %v", reason, want)
		}
		f.awaitFree(t, allFive...)
	}
	if was, err := p.ForceRelease(locktest.Within(t)); was || err != nil {
		t.Errorf("when free: %v, %v", was, err)
	}
}

// Local waiters get the lock from one another without a word to the servers.
func TestRedHandOff(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Tenure = cfg.Watchdog / 4
	f := newFive(t, cfg)
	p := f.party(t)
	hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
	const waiters = 50
	var waiting []<-chan locktest.Grant
	for range waiters {
		waiting = append(waiting, locktest.AcquireSoon(locktest.Within(t), p.Lock))
	}
	locktest.AwaitWaiters(t, p.Lock, waiters)
	f.servers[0].ResetStats(t)
	locktest.Release(t, hold)
	for range waiters {
		var g locktest.Grant
		redistest.Eventually(t, "the next grant", func() bool {
			for _, w := range waiting {
				select {
				case g = <-w:
					return true
				default:
				}
			}
			return false
		})
		if g.Err != nil {
			t.Fatal(g.Err)
		}
		locktest.Release(t, g.Hold)
	}
	if n := f.servers[0].Calls(t)["evalsha"]; n > waiters/2 {
		t.Errorf("%d grants took %d scripts on one server", waiters, n)
	}
	f.awaitFree(t, allFive...)
}

// The close of a member's System costs its vote; the close of the first frees the lock.
func TestRedClose(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
	for _, s := range p.sites[3:] {
		if err := s.Close(locktest.Within(t)); err != nil {
			t.Fatal(err)
		}
	}
	until := f.key(0).Expiry(t).Add(redConfig.Watchdog)
	redistest.Eventually(t, "the lease to be renewed", func() bool { return f.key(0).Expiry(t).After(until) })
	if !hold.Valid() {
		t.Errorf("lost with a minority closed: %v", hold.Err())
	}
	waiter := locktest.AcquireSoon(locktest.Within(t), p.Lock)
	locktest.AwaitWaiters(t, p.Lock, 1)
	if err := p.sites[0].Close(locktest.Within(t)); err != nil {
		t.Fatal(err)
	}
	locktest.IsOver(t, hold)
	locktest.IsError(t, locktest.Await(t, "the error", waiter).Err, lockkeeper.ErrClosed)
	locktest.Release(t, locktest.AcquireIn(t, locktest.Within(t), other.Lock))
	f.awaitFree(t, allFive...)
}

// A RedLock may be a member of a MultiLock.
func TestRedInMulti(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	plain := locktest.Key{Server: f.servers[0], LockName: f.name + "+", Name: f.name + "+"}
	whole := lockkeeper.MultiLock(p.sites[0].Lock(plain.LockName), p.Lock)
	hold := locktest.AcquireIn(t, locktest.Within(t), whole)
	_, err := other.TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	locktest.Release(t, hold)
	f.awaitFree(t, allFive...)
	hold = locktest.AcquireIn(t, locktest.Within(t), other.Lock)
	_, err = whole.TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	plain.IsFree(t)
	locktest.Release(t, hold)
	_, err = whole.TryAcquire(locktest.Within(t), lockkeeper.WithLease(time.Minute))
	locktest.IsError(t, err, lockkeeper.ErrInvalid)
}

func TestRedInput(t *testing.T) {
	var s []*lockkeeper.System
	var servers []*redistest.Server
	for range 4 {
		servers = append(servers, redistest.Start(t))
		s = append(s, locktest.Open(t, servers[len(s)].URL(), redConfig).System)
	}
	proxy := redistest.NewProxy(t, servers[0].Addr())
	same := locktest.Open(t, proxy.URL()+"/1", redConfig).System
	slow := locktest.Open(t, redistest.Shared(t).URL(), lockkeeper.Config{}).System
	for what, systems := range map[string][]*lockkeeper.System{
		"none": nil, "two": s[:2], "nil": {s[0], nil, s[2]}, "twice": {s[0], s[1], s[0]}, "another Watchdog": {s[0], s[1], slow},
		"one server twice": {s[0], s[1], same},
	} {
		if _, err := lockkeeper.RedLock(systems...); !errors.Is(err, lockkeeper.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	red, err := lockkeeper.RedLock(s[:3]...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockkeeper.RedLock(s[:3]...); err != nil {
		t.Errorf("the same once more: %v", err)
	}
	if _, err := lockkeeper.RedLock(s...); !errors.Is(err, lockkeeper.ErrInvalid) {
		t.Errorf("others with the same first: %v", err)
	}
	_, err = red.Lock("").Acquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrInvalid)
	_, err = red.Lock(redistest.Name(t)).Acquire(locktest.Within(t), lockkeeper.WithLease(time.Minute))
	locktest.IsError(t, err, lockkeeper.ErrInvalid)

	// A server that cannot be asked is known from its votes.
	proxy.Refuse(true)
	same = locktest.Open(t, servers[0].URL(), redConfig).System
	behind, err := lockkeeper.ConnectLater(proxy.URL())
	twice, err := lockkeeper.RedLock(same, locktest.OpenWith(t, behind, err, redConfig).System, s[3])
	if err != nil {
		t.Fatal(err)
	}
	proxy.Refuse(false)
	redistest.Eventually(t, "the refusal", func() bool {
		_, err := twice.Lock(redistest.Name(t)).TryAcquire(locktest.Within(t))
		return errors.Is(err, lockkeeper.ErrRejected) && strings.Contains(err.Error(), "same Redis server")
	})
}
