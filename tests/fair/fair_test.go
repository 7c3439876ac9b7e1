package fair_test

// The fair lock: who is granted when, and what stands in its queue in Redis.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestFairOrderOverSystems(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	var sites []*locktest.Site
	for range 4 {
		sites = append(sites, locktest.Open(t, k.Server.URL(), locktest.NoPolling))
	}
	first := locktest.Acquire(t, k.of(sites[0]))
	const n = 60
	waiters := k.queueUp(t, sites, n, func(i int) { k.awaitLine(t, i+1) })
	locktest.Release(t, first)
	waiters.inOrder(t, n)
	k.awaitNothing(t)
}

// More wait than stand in the queue in Redis: all are served, in their order.
func TestFairMoreWaitersThanEntries(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	first := locktest.Acquire(t, k.of(s))
	const n, most = 150, 100
	waiters := k.queueUp(t, []*locktest.Site{s}, n, func(i int) { locktest.AwaitWaiters(t, k.of(s), i+1) })
	k.awaitLine(t, most)
	if entries := k.Number(t, "ZCARD", k.timeouts); entries != most {
		t.Errorf("%d timeouts for %d in the queue", entries, most)
	}
	locktest.Release(t, first)
	for served := 0; served < n; {
		if line := k.line(t); len(line) > most {
			t.Fatalf("%d waiters of one process in the queue", len(line))
		}
		waiters.mu.Lock()
		served = len(waiters.served)
		waiters.mu.Unlock()
		if t.Failed() {
			break
		}
	}
	waiters.inOrder(t, n)
	k.awaitNothing(t)
}

// A waiter that goes takes its entry along, and nobody else's.
func TestFairWaiterLeaves(t *testing.T) {
	type leaver func(t *testing.T, k fairKey, s *locktest.Site) (leave func())
	acquire := func(end func(t *testing.T, s *locktest.Site, cancel func()), want error, options ...lockkeeper.Option) leaver {
		return func(t *testing.T, k fairKey, s *locktest.Site) func() {
			ctx, cancel := context.WithCancel(locktest.Within(t))
			granted, _ := k.enqueue(t, ctx, s, options...)
			return func() {
				end(t, s, cancel)
				if g := locktest.Await(t, "the refusal", granted); !errors.Is(g.Err, want) {
					t.Errorf("the waiter got %v, want %v", g.Err, want)
				}
				cancel()
			}
		}
	}
	message := func(end func(c *locktest.Client, lock *messages.Lock), reason messages.Reason) leaver {
		return func(t *testing.T, k fairKey, s *locktest.Site) func() {
			waiter, n := s.Users(k.Server).Client(t, "waiter"), len(k.line(t))
			waiter.Request(&messages.Acquire{Lock: k.fair()})
			k.awaitLine(t, n+1)
			return func() {
				end(waiter, k.fair())
				if reason == 0 {
					return
				}
				if refused := locktest.Expect[*messages.NotAcquired](t, waiter); refused.Reason != reason {
					t.Errorf("refused with %v", refused)
				}
				locktest.Expect[*messages.Cancelled](t, waiter)
			}
		}
	}
	for what, leaver := range map[string]leaver{
		"cancelled": acquire(func(_ *testing.T, _ *locktest.Site, cancel func()) { cancel() }, context.Canceled),
		"waited":    acquire(func(*testing.T, *locktest.Site, func()) {}, lockkeeper.ErrTimeout, lockkeeper.WithWait(4*time.Second)),
		"closed": acquire(func(t *testing.T, s *locktest.Site, _ func()) {
			if err := s.Close(locktest.Within(t)); err != nil {
				t.Error(err)
			}
		}, lockkeeper.ErrClosed),
		"died": message(func(c *locktest.Client, _ *messages.Lock) { c.Tr.System.Root.Stop(c.Pid) }, 0),
		"cancelled by message": message(func(c *locktest.Client, lock *messages.Lock) { c.Request(&messages.Cancel{Lock: lock}) },
			messages.Reason_REASON_CANCELLED),
	} {
		for _, where := range []string{"head", "middle"} {
			t.Run(what+" "+where, func(t *testing.T) {
				t.Parallel()
				k := newFairKey(t, redistest.Shared(t))
				holder, goes, stays := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
				hold := locktest.Acquire(t, k.of(holder))
				var waiting []<-chan locktest.Grant
				if where == "middle" {
					granted, _ := k.enqueue(t, locktest.Within(t), stays)
					waiting = append(waiting, granted)
				}
				leave := leaver(t, k, goes)
				granted, _ := k.enqueue(t, locktest.Within(t), stays)
				waiting = append(waiting, granted)

				leave()
				if line := k.awaitLine(t, len(waiting)); locktest.QueuedBy(line, goes) {
					t.Errorf("the waiter has gone, and stands in the queue %v", line)
				}
				if n := k.Number(t, "ZCARD", k.timeouts); n != int64(len(waiting)) {
					t.Errorf("%d timeouts of %d waiters", n, len(waiting))
				}
				for _, granted := range waiting {
					released := time.Now()
					locktest.Release(t, hold)
					next := locktest.Got(t, granted)
					if wait := next.At.Sub(released); wait > locktest.Soon {
						t.Errorf("the next waiter got the lock %v after its release", wait)
					}
					hold = next.Hold
				}
				locktest.Release(t, hold)
				k.awaitNothing(t)
			})
		}
	}
}

// The head has not heard that the lock is free, and gives up: it is for the next now.
func TestFairHeadThatGivesUpWakesTheNext(t *testing.T) {
	t.Parallel()
	r := locktest.Far(t, redistest.Start(t), locktest.NoPolling)
	k := newFairKey(t, r.Server)
	holder, next := locktest.Open(t, r.Server.URL(), locktest.NoPolling), locktest.Open(t, r.Server.URL(), locktest.NoPolling)
	hold := locktest.Acquire(t, k.of(holder))
	ctx, giveUp := context.WithCancel(locktest.Within(t))
	head, entry := k.enqueue(t, ctx, r.Site)
	k.awaitEar(t, entry)
	// A try of its own after it has begun to listen would find the lock free.
	redistest.Eventually(t, "two tries of the head", func() bool { return r.Server.Calls(t)["time"] >= 3 })
	granted, entry := k.enqueue(t, locktest.Within(t), next)
	k.awaitEar(t, entry)
	redistest.Eventually(t, "two tries of the next", func() bool { return r.Server.Calls(t)["time"] >= 5 })
	r.Proxy.DropMessages(true)
	locktest.Release(t, hold)
	locktest.Pending(t, head, "it was not told")
	locktest.Pending(t, granted, "it is not its turn")
	giveUp()
	gaveUp := time.Now()
	if g := locktest.Await(t, "the refusal", head); !errors.Is(g.Err, context.Canceled) {
		t.Fatal(g.Err)
	}
	g := locktest.Got(t, granted)
	if wait := g.At.Sub(gaveUp); wait > locktest.Soon {
		t.Errorf("the next got the lock %v after the head gave up", wait)
	}
	locktest.Release(t, g.Hold)
	k.awaitNothing(t)
}

// While nothing happens, each process looks once in a while, however many wait in it.
func TestFairWaitersDoNotSpin(t *testing.T) {
	const poll, processes, each, looks = 200 * time.Millisecond, 3, 5, 45
	for what, block := range map[string]func(t *testing.T, k fairKey){
		"held":                     func(t *testing.T, k fairKey) { k.TakeAs(t, locktest.Redisson, time.Minute) },
		"held without an end":      func(t *testing.T, k fairKey) { k.TakeAs(t, locktest.Redisson, -1) },
		"a dead stranger is first": func(t *testing.T, k fairKey) { k.stand(t, locktest.Redisson) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Start(t))
			block(t, k)
			strangers := len(k.line(t))
			ctx, giveUp := context.WithCancel(locktest.Within(t))
			var waiting []<-chan locktest.Grant
			for range processes {
				s := locktest.Open(t, k.Server.URL(), lockkeeper.Config{Poll: poll})
				for range each {
					waiting = append(waiting, locktest.AcquireSoon(ctx, k.of(s)))
				}
			}
			k.awaitLine(t, strangers+len(waiting))
			calls := func() int64 {
				calls := k.Server.Calls(t)
				return calls["evalsha"] + calls["eval"]
			}
			k.Server.ResetStats(t)
			began := time.Now()
			redistest.Eventually(t, "some looks", func() bool { return calls() >= looks })
			passed, made := time.Since(began), calls()
			// The pauses are half of the poll bound at least; the rest is for the arrivals.
			if most := processes * (int64(passed/(poll/2)) + 6); made > most {
				t.Errorf("%d scripts within %v, more than %d", made, passed, most)
			}
			t.Logf("%d scripts of %d processes with %d waiters each within %v", made, processes, each, passed)
			giveUp()
			for _, granted := range waiting {
				if g := locktest.Await(t, "the refusal", granted); !errors.Is(g.Err, context.Canceled) {
					t.Error(g.Err)
				}
			}
			k.awaitLine(t, strangers)
		})
	}
}

func TestFairReentry(t *testing.T) {
	k := newFairKey(t, redistest.Shared(t))
	s, other := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	outer := locktest.Acquire(t, k.of(s))
	waiting, _ := k.enqueue(t, locktest.Within(t), other)
	middle := locktest.AcquireIn(t, outer.Context(), k.of(s))
	inner := locktest.AcquireIn(t, middle.Context(), k.of(s))
	owner := k.HeldBy(t, s, "3")
	if inner.Count() != 3 || len(k.line(t)) != 1 {
		t.Errorf("hold count %d, queue %v", inner.Count(), k.line(t))
	}
	_, err := k.of(s).Acquire(inner.Context(), lockkeeper.WithoutReentry())
	locktest.IsError(t, err, lockkeeper.ErrReentry)
	locktest.Release(t, inner)
	locktest.Release(t, middle)
	if k.HeldBy(t, s, "1") != owner {
		t.Error("the owner has changed")
	}
	locktest.Pending(t, waiting, "the lock is held")
	locktest.Release(t, outer)
	locktest.Release(t, locktest.Got(t, waiting).Hold)
	k.awaitNothing(t)
}

// An explicit lease is what Redis keeps, whoever it passes the lock on from, and its end is told.
func TestFairLease(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	s, other := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	first := locktest.Acquire(t, k.of(s))
	const lease = 2 * time.Second
	leased, _ := k.enqueue(t, locktest.Within(t), s, lockkeeper.WithLease(lease))
	after, _ := k.enqueue(t, locktest.Within(t), other)
	locktest.Release(t, first)
	hold := locktest.Got(t, leased).Hold
	if ttl := k.Ttl(t); ttl > lease {
		t.Errorf("the TTL is %v, and the lease %v", ttl, lease)
	}
	next := locktest.Got(t, after)
	if hold.Valid() {
		t.Error("the next got in before the lease was over")
	}
	locktest.EndedBy(t, hold, messages.Reason_REASON_EXPIRED)
	locktest.Release(t, next.Hold)
	k.awaitNothing(t)
}

func TestFairWatchdog(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	cfg := lockkeeper.Config{Watchdog: 1500 * time.Millisecond, Poll: 300 * time.Millisecond}
	s, other := locktest.Open(t, k.Server.URL(), cfg), locktest.Open(t, k.Server.URL(), cfg)
	hold := locktest.Acquire(t, k.of(s))
	owner := k.HeldBy(t, s, "1")
	waiting, _ := k.enqueue(t, locktest.Within(t), other)
	began := k.Expiry(t)
	redistest.Eventually(t, "renewals over twice the lease", func() bool { return k.Expiry(t).Sub(began) > 2*cfg.Watchdog })
	if k.HeldBy(t, s, "1") != owner || !hold.Valid() {
		t.Error("the lock changed hands")
	}
	locktest.Pending(t, waiting, "the lock is held")
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, waiting).Hold)
	k.awaitNothing(t)
}

func TestFairLossIsTold(t *testing.T) {
	for what, meddle := range map[string]func(t *testing.T, k fairKey){
		"deleted": func(t *testing.T, k fairKey) { k.Do(t, "DEL", k.Name) },
		"taken": func(t *testing.T, k fairKey) {
			k.Do(t, "DEL", k.Name)
			k.TakeAs(t, locktest.Redisson, 3*time.Second)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Shared(t))
			cfg := lockkeeper.Config{Watchdog: 1500 * time.Millisecond, Poll: 300 * time.Millisecond}
			s, other := locktest.Open(t, k.Server.URL(), cfg), locktest.Open(t, k.Server.URL(), cfg)
			hold := locktest.Acquire(t, k.of(s))
			here, _ := k.enqueue(t, locktest.Within(t), other)
			later, _ := k.enqueue(t, locktest.Within(t), s)
			meddle(t, k)
			next := locktest.Got(t, here) // as soon as it looks
			locktest.EndedBy(t, hold, locktest.Robbed...)
			locktest.Release(t, next.Hold)
			locktest.Release(t, locktest.Got(t, later).Hold)
			k.awaitNothing(t)
		})
	}
}

// Whoever frees the lock by force wakes the head, and the holder is told.
func TestFairForceRelease(t *testing.T) {
	for _, by := range []string{"the holder's system", "another system"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Start(t))
			cfg := locktest.NoPolling
			cfg.Renewal = 300 * time.Millisecond
			s, other, forcing := locktest.Open(t, k.Server.URL(), cfg), locktest.Open(t, k.Server.URL(), cfg), locktest.Open(t, k.Server.URL(), cfg)
			if by == "the holder's system" {
				forcing = s
			}
			hold := locktest.Acquire(t, k.of(s))
			head, entry := k.enqueue(t, locktest.Within(t), other)
			k.awaitEar(t, entry)
			second, _ := k.enqueue(t, locktest.Within(t), s)
			forced := time.Now()
			if was, err := k.of(forcing).ForceRelease(locktest.Within(t)); err != nil || !was {
				t.Fatalf("force release: %v, %v", was, err)
			}
			next := locktest.Got(t, head)
			if wait := next.At.Sub(forced); wait > locktest.Soon {
				t.Errorf("the head got the lock %v after it was forced", wait)
			}
			if forcing == s {
				locktest.EndedBy(t, hold, messages.Reason_REASON_FORCED)
			} else { // as far as the next renewal can tell
				locktest.EndedBy(t, hold, locktest.Robbed...)
			}
			locktest.Pending(t, second, "it is not its turn")
			locktest.Release(t, next.Hold)
			locktest.Release(t, locktest.Got(t, second).Hold)
			k.awaitNothing(t)
		})
	}
}

// Waiters that live keep their places for longer than a dead one would.
func TestFairEntriesAreKeptAlive(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	cfg := lockkeeper.Config{Poll: 500 * time.Millisecond, WaiterTimeout: 3 * time.Second}
	a, b := locktest.Open(t, k.Server.URL(), cfg), locktest.Open(t, k.Server.URL(), cfg)
	k.TakeAs(t, locktest.Redisson, time.Minute)
	first, _ := k.enqueue(t, locktest.Within(t), a)
	second, _ := k.enqueue(t, locktest.Within(t), b)
	line := k.line(t)
	began := k.timeout(t, line[0])
	redistest.Eventually(t, "the patience to be over twice", func() bool {
		now, until := k.now(t), k.timeout(t, line[0])
		if until <= now && until != 0 {
			t.Fatalf("the head counts as dead since %d ms", now-until)
		}
		return until-began > 2*cfg.WaiterTimeout.Milliseconds()
	})
	if now := k.line(t); !slices.Equal(now, line) {
		t.Fatalf("the queue was %v and is %v", line, now)
	}
	k.pass(t)
	hold := locktest.Got(t, first).Hold
	locktest.Pending(t, second, "it is not its turn")
	locktest.Release(t, hold)
	locktest.Release(t, locktest.Got(t, second).Hold)
	k.awaitNothing(t)
}

func TestFairTryDoesNotQueue(t *testing.T) {
	k := newFairKey(t, redistest.Shared(t))
	s, other := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	k.TakeAs(t, locktest.Redisson, time.Minute)
	for range 3 {
		_, err := k.of(s).TryAcquire(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrHeld)
	}
	refused := locktest.Ask[*messages.NotAcquired](t, s.Probe(t), &messages.Acquire{Lock: k.fair(), Wait: durationpb.New(0)})
	if refused.Reason != messages.Reason_REASON_HELD || refused.Ttl.AsDuration() <= 0 {
		t.Errorf("refused with %v", refused)
	}
	if n := k.Number(t, "EXISTS", k.queue, k.timeouts); n != 0 {
		t.Errorf("a try stands in the queue %v", k.line(t))
	}
	k.Do(t, "DEL", k.Name)
	k.stand(t, locktest.Redisson)
	for _, each := range []*locktest.Site{s, other} {
		_, err := k.of(each).TryAcquire(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrHeld)
	}
	k.Do(t, "DEL", k.queue, k.timeouts)
	hold, err := k.of(s).TryAcquire(locktest.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	locktest.Release(t, hold)
	k.awaitNothing(t)
}

func TestFairByMessage(t *testing.T) {
	k := newFairKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	users := s.Users(k.Server)
	var queue []*locktest.Client
	for i := range 4 {
		c := users.Client(t, fmt.Sprint("user ", i))
		c.Request(&messages.Acquire{Lock: k.fair()})
		if i == 0 {
			if granted := locktest.Expect[*messages.Acquired](t, c); granted.HoldCount != 1 || granted.Token != 0 {
				t.Errorf("granted %v", granted)
			}
		} else {
			k.awaitLine(t, i)
		}
		queue = append(queue, c)
	}
	status := locktest.Ask[*messages.Status](t, s.Probe(t), &messages.Inspect{Lock: k.fair()})
	if !status.Locked || !status.HeldHere || status.Waiters != 3 || status.Subscribers != 3 {
		t.Errorf("status %v", status)
	}
	users.System.Root.Stop(queue[0].Pid) // the death of a holder passes the lock on
	for i, c := range queue[1:] {
		locktest.Expect[*messages.Acquired](t, c)
		for _, later := range queue[i+2:] {
			later.ExpectNothing()
		}
		c.Request(&messages.Release{Lock: k.fair()})
		locktest.Expect[*messages.Released](t, c)
	}
	if owners := slices.Collect(maps.Keys(k.Owners(t))); len(owners) > 0 {
		t.Errorf("held by %v", owners)
	}
	k.awaitNothing(t)
}
