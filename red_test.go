package lockkeeper_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
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
	actor := p.sites[0].probe(t)
	lock := &messages.Lock{Name: f.name, Kind: messages.Kind_KIND_RED}
	for _, lease := range []time.Duration{1500 * time.Millisecond, redConfig.Watchdog} {
		most := lease - 2*delay - core.Margin(lease)
		granted := ask[*messages.Acquired](t, actor, &messages.Acquire{Lock: lock, Lease: durationpb.New(lease)})
		if v := granted.Validity.AsDuration(); v > most || v <= 0 {
			t.Errorf("a lease of %v has a validity of %v, and at most %v are left of it", lease, v, most)
		}
		next[*messages.LeaseLost](t, actor)

		hold := acquireLock(t, within(t), p.Lock, lockkeeper.WithLease(lease))
		expiry := f.key(0).expiry(t)
		for i := range f.servers {
			if at := f.key(i).expiry(t); at.Before(expiry) && !at.IsZero() {
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
		isOver(t, hold)
	}
	hold := acquireLock(t, within(t), p.Lock)
	isError(t, hold.Ensure(within(t), redConfig.Watchdog), lockkeeper.ErrInvalid)
	if err := hold.Ensure(within(t), redConfig.Watchdog/2); err != nil {
		t.Error(err)
	}
	release(t, hold)
	f.awaitFree(t, allFive...)
}

// With two of five servers killed everything goes on; without a third nothing is
// granted, and a holder is told before its validity ends.
func TestRedKilled(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	hold := acquireLock(t, within(t), p.Lock)
	inner := acquireLock(t, hold.Context(), p.Lock)
	f.servers[0].Kill(t)
	f.servers[3].Kill(t)
	up := []int{1, 2, 4}
	until := f.key(1).expiry(t).Add(2 * redConfig.Watchdog)
	redistest.Eventually(t, "the lease to be renewed for long", func() bool { return f.key(1).expiry(t).After(until) })
	if !hold.Valid() {
		t.Fatalf("lost with two servers killed: %v", hold.Err())
	}
	f.awaitHeld(t, "2", up...)
	granted := lockSoon(other.Lock, within(t))
	awaitLocalWaiters(t, other.Lock, 1)
	release(t, inner)
	release(t, hold)
	hold = got(t, granted).hold
	if _, err := p.TryAcquire(within(t)); !errors.Is(err, lockkeeper.ErrHeld) {
		t.Errorf("a try while others hold it: %v", err)
	}
	release(t, hold)
	f.awaitFree(t, up...)

	hold = acquireLock(t, within(t), p.Lock)
	ctx := hold.Context()
	expired := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { expired <- time.Now() })
	f.servers[1].Kill(t)
	end := f.key(2).expiry(t) // not moved any more, or by a renewal that was under way
	if reason := isOver(t, hold); reason != messages.Reason_REASON_EXPIRED {
		t.Errorf("with three servers killed: the reason is %v", reason)
	}
	if told := <-expired; told.After(end.Add(redConfig.Watchdog)) {
		t.Errorf("told %v after the keys' end", told.Sub(end))
	}
	_, err := p.TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrUnavailable)
	_, err = p.Acquire(within(t), lockkeeper.WithWait(time.Second))
	isError(t, err, lockkeeper.ErrUnavailable)
	f.awaitFree(t, 2, 4)
}

// Servers that are killed while the lock is being taken do not matter, as long as
// they are a minority.
func TestRedKilledWhileAcquiring(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p := f.party(t)
	for _, proxy := range f.proxies {
		proxy.Delay(100 * time.Millisecond)
	}
	granted := lockSoon(p.Lock, within(t))
	f.servers[1].Kill(t)
	f.servers[2].Kill(t)
	hold := got(t, granted).hold
	if err := hold.Ensure(within(t), time.Second); err != nil {
		t.Error(err)
	}
	release(t, hold)
	f.awaitFree(t, 0, 3, 4)
}

// Whoever cannot have the majority keeps nothing, and does not wake itself up with
// what it gives back.
func TestRedMinority(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	for i := range 3 {
		f.key(i).takeAs(t, redisson, -1)
	}
	for range 100 { // often, since a vote that comes just when the try is given up could be forgotten
		_, err := p.TryAcquire(within(t))
		isError(t, err, lockkeeper.ErrHeld)
		f.awaitGivenBack(t, 3, 4)
	}
	status, err := p.Inspect(within(t))
	if err != nil || !status.Locked || status.Holder != redisson || status.HeldHere {
		t.Errorf("held by a majority: %+v, %v", status, err)
	}
	for what, parties := range map[string][]*party{"one waits": {p}, "two wait": {p, other}} {
		ctx, cancel := context.WithCancel(context.Background())
		var waiting []<-chan grant
		for _, each := range parties {
			waiting = append(waiting, lockSoon(each.Lock, ctx))
		}
		for i := range f.servers {
			f.key(i).awaitSubscribers(t, int64(len(parties)))
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
			if g := await(t, "the error", g); g.err == nil {
				t.Error("granted without a majority")
			}
		}
		f.awaitGivenBack(t, 3, 4)
	}
	f.key(2).unlock(t) // what is left is a minority
	if status, err = p.Inspect(within(t)); err != nil || status.Locked {
		t.Errorf("held by a minority: %+v, %v", status, err)
	}
	release(t, acquireLock(t, within(t), p.Lock))
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

// Renewal needs a majority. A member that has forgotten the lock is given it again; when
// a majority has, the lock is lost.
func TestRedRenewal(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p := f.party(t)
	hold := acquireLock(t, within(t), p.Lock)
	f.servers[2].Restart(t)
	f.servers[4].Restart(t)
	f.awaitHeld(t, "1", allFive...) // also those that have no vote yet
	inner := acquireLock(t, hold.Context(), p.Lock)
	f.awaitHeld(t, "2", allFive...)
	f.key(1).do(t, "DEL", f.name)
	f.awaitHeld(t, "2", allFive...)
	if !hold.Valid() || !inner.Valid() {
		t.Errorf("lost to a minority: %v", hold.Err())
	}
	release(t, inner)
	f.awaitHeld(t, "1", allFive...)
	for i := range 3 {
		f.key(i).do(t, "DEL", f.name)
		f.key(i).takeAs(t, redisson, -1)
	}
	if reason := isOver(t, hold); reason != messages.Reason_REASON_TAKEN {
		t.Errorf("taken by a majority: the reason is %v", reason)
	}
	f.awaitFree(t, 3, 4)
	for i := range 3 {
		if owners := f.key(i).owners(t); owners[redisson] != "1" {
			t.Errorf("the new holder has been robbed of server %d: %v", i, owners)
		}
	}
}

// A server that answers late is not given a lock that was released meanwhile.
func TestRedHealsNoReleasedLock(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Renewal = time.Second // the renewal is that of Ensure
	f := newFive(t, cfg)
	p := f.party(t)
	hold := acquireLock(t, within(t), p.Lock)
	f.awaitHeld(t, "1", allFive...)
	f.key(4).do(t, "DEL", f.name)
	const delay = 150 * time.Millisecond
	f.proxies[4].Delay(delay)
	for first := f.key(0).expiry(t); f.key(0).expiry(t).Equal(first); { // until it is renewed: the late answer is on its way
		if err := hold.Ensure(within(t), cfg.Watchdog*9/10); err != nil {
			t.Fatal(err)
		}
	}
	release(t, hold)
	f.awaitFree(t, 0, 1, 2, 3)
	for end := time.Now().Add(6 * delay); time.Now().Before(end); {
		if f.key(4).exists(t) {
			t.Fatalf("after its release the lock is held by %v on the slow server", f.key(4).owners(t))
		}
	}
}

// A release that gives back a minority may arrive when a later try has the majority.
func TestRedLateGiveBack(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p := f.party(t)
	for i := range 3 {
		f.key(i).takeAs(t, redisson, -1)
	}
	late := f.proxies[4].Hold(redistest.Script(scripts.Release.SHA))
	granted := lockSoon(p.Lock, within(t))
	late.Wait(t)
	for i := range 3 {
		f.key(i).unlock(t)
	}
	hold := got(t, granted).hold
	redistest.Eventually(t, "the lock to be held on the last server too", func() bool { // healed, if the first try was still there
		owners := f.key(4).owners(t)
		return len(owners) == 1 && maps.Equal(owners, f.key(0).owners(t))
	})
	late.Release(t)
	if owners := f.key(4).owners(t); len(owners) == 0 {
		t.Error("the late release has freed the lock on one server")
	}
	release(t, hold)
	f.awaitFree(t, allFive...)
}

// Restarted servers may have forgotten locks: they have no vote until those would
// have run out.
func TestRedQuarantine(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	hold := acquireLock(t, within(t), p.Lock, lockkeeper.WithLease(redConfig.Watchdog))
	until := f.key(3).expiry(t) // as far as the holder knows
	restarted := time.Now()
	for i := range 3 {
		f.servers[i].Restart(t)
	}
	var refusal error
	redistest.Eventually(t, "the vote of those that were restarted", func() bool {
		second, err := other.TryAcquire(within(t))
		if err != nil {
			refusal = err
			return false
		}
		if now := time.Now(); now.Before(until) || now.Before(restarted.Add(redConfig.Watchdog)) {
			t.Errorf("granted %v after the restart of a majority, and %v before the end of the lease of another holder", now.Sub(restarted), until.Sub(now))
		}
		release(t, second)
		return true
	})
	if isError(t, refusal, lockkeeper.ErrUnavailable); !strings.Contains(refusal.Error(), "started lately") {
		t.Errorf("the refusal does not give the reason: %v", refusal)
	}
	isOver(t, hold)
	f.awaitFree(t, allFive...)
}

// Servers that hang, as long as they are a minority, do not hold up anything.
func TestRedPausedMinority(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Watchdog = 4 * time.Second // a call may take a second
	f := newFive(t, cfg)
	p := f.party(t)
	release(t, acquireLock(t, within(t), p.Lock)) // there are connections
	f.servers[0].Pause(t)
	f.servers[1].Pause(t)
	fastest := redistest.Limit
	for range 5 {
		began := time.Now()
		hold := acquireLock(t, within(t), p.Lock)
		release(t, hold)
		fastest = min(fastest, time.Since(began))
	}
	if fastest > cfg.Watchdog/8 {
		t.Errorf("the fastest grant and release beside a paused minority took %v", fastest)
	}
	hold := acquireLock(t, within(t), p.Lock)
	f.servers[0].Resume(t)
	f.servers[1].Resume(t)
	release(t, hold)
	f.awaitFree(t, allFive...)
	t.Logf("the fastest grant and release beside a paused minority took %v", fastest)
}

func TestRedForceRelease(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	for by, want := range map[*party]messages.Reason{p: messages.Reason_REASON_FORCED, other: messages.Reason_REASON_GONE} {
		hold := acquireLock(t, within(t), p.Lock)
		if status, err := other.Inspect(within(t)); err != nil || !status.Locked || status.HeldHere || status.HoldCount != 1 {
			t.Errorf("%+v, %v", status, err)
		}
		if was, err := by.ForceRelease(within(t)); !was || err != nil {
			t.Errorf("%v, %v", was, err)
		}
		if reason := isOver(t, hold); reason != want {
			t.Errorf("the reason is %v, want %v", reason, want)
		}
		f.awaitFree(t, allFive...)
	}
	if was, err := p.ForceRelease(within(t)); was || err != nil {
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
	hold := acquireLock(t, within(t), p.Lock)
	const waiters = 50
	var waiting []<-chan grant
	for range waiters {
		waiting = append(waiting, lockSoon(p.Lock, within(t)))
	}
	awaitLocalWaiters(t, p.Lock, waiters)
	f.servers[0].ResetStats(t)
	release(t, hold)
	for range waiters {
		var g grant
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
		if g.err != nil {
			t.Fatal(g.err)
		}
		release(t, g.hold)
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
	hold := acquireLock(t, within(t), p.Lock)
	for _, s := range p.sites[3:] {
		if err := s.Close(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	until := f.key(0).expiry(t).Add(redConfig.Watchdog)
	redistest.Eventually(t, "the lease to be renewed", func() bool { return f.key(0).expiry(t).After(until) })
	if !hold.Valid() {
		t.Errorf("lost with a minority closed: %v", hold.Err())
	}
	waiter := lockSoon(p.Lock, within(t))
	awaitLocalWaiters(t, p.Lock, 1)
	if err := p.sites[0].Close(within(t)); err != nil {
		t.Fatal(err)
	}
	isOver(t, hold)
	isError(t, await(t, "the error", waiter).err, lockkeeper.ErrClosed)
	release(t, acquireLock(t, within(t), other.Lock))
	f.awaitFree(t, allFive...)
}

// A RedLock may be a member of a MultiLock.
func TestRedInMulti(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	plain := key{server: f.servers[0], lock: f.name + "+", name: f.name + "+"}
	whole := lockkeeper.MultiLock(p.sites[0].Lock(plain.lock), p.Lock)
	hold := acquireLock(t, within(t), whole)
	_, err := other.TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)
	release(t, hold)
	f.awaitFree(t, allFive...)
	hold = acquireLock(t, within(t), other.Lock)
	_, err = whole.TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)
	plain.isFree(t)
	release(t, hold)
	_, err = whole.TryAcquire(within(t), lockkeeper.WithLease(time.Minute))
	isError(t, err, lockkeeper.ErrInvalid)
}

func TestRedInput(t *testing.T) {
	var s []*lockkeeper.System
	for range 4 {
		s = append(s, open(t, redistest.Shared(t).URL(), redConfig).System)
	}
	slow := open(t, redistest.Shared(t).URL(), lockkeeper.Config{}).System
	for what, systems := range map[string][]*lockkeeper.System{
		"none": nil, "two": s[:2], "nil": {s[0], nil, s[2]}, "twice": {s[0], s[1], s[0]}, "another Watchdog": {s[0], s[1], slow},
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
	_, err = red.Lock("").Acquire(within(t))
	isError(t, err, lockkeeper.ErrInvalid)
	_, err = red.Lock(redistest.Name(t)).Acquire(within(t), lockkeeper.WithLease(time.Minute))
	isError(t, err, lockkeeper.ErrInvalid)
}
