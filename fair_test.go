package lockkeeper_test

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
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func TestFairOrderOverSystems(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	var sites []*site
	for range 4 {
		sites = append(sites, open(t, k.server.URL(), noPolling))
	}
	first := obtain(t, k.of(sites[0]))
	const n = 60
	waiters := k.queueUp(t, sites, n, func(i int) { k.awaitLine(t, i+1) })
	release(t, first)
	waiters.inOrder(t, n)
	k.awaitNothing(t)
}

// More wait than stand in the queue in Redis: all are served, in their order.
func TestFairMoreWaitersThanEntries(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	first := obtain(t, k.of(s))
	const n, most = 150, 100
	waiters := k.queueUp(t, []*site{s}, n, func(i int) { awaitWaiting(t, k.of(s), i+1) })
	k.awaitLine(t, most)
	if entries := k.number(t, "ZCARD", k.timeouts); entries != most {
		t.Errorf("%d timeouts for %d in the queue", entries, most)
	}
	release(t, first)
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
	type leaver func(t *testing.T, k fairKey, s *site) (leave func())
	acquire := func(end func(t *testing.T, s *site, cancel func()), want error, options ...lockkeeper.Option) leaver {
		return func(t *testing.T, k fairKey, s *site) func() {
			ctx, cancel := context.WithCancel(within(t))
			granted, _ := k.enqueue(t, ctx, s, options...)
			return func() {
				end(t, s, cancel)
				if g := await(t, "the refusal", granted); !errors.Is(g.err, want) {
					t.Errorf("the waiter got %v, want %v", g.err, want)
				}
				cancel()
			}
		}
	}
	message := func(end func(c *client, lock *messages.Lock), reason messages.Reason) leaver {
		return func(t *testing.T, k fairKey, s *site) func() {
			waiter, n := s.users(k.server).client(t, "waiter"), len(k.line(t))
			waiter.request(&messages.Acquire{Lock: k.fair()})
			k.awaitLine(t, n+1)
			return func() {
				end(waiter, k.fair())
				if reason == 0 {
					return
				}
				if refused := expect[*messages.NotAcquired](t, waiter); refused.Reason != reason {
					t.Errorf("refused with %v", refused)
				}
				expect[*messages.Cancelled](t, waiter)
			}
		}
	}
	for what, leaver := range map[string]leaver{
		"cancelled": acquire(func(_ *testing.T, _ *site, cancel func()) { cancel() }, context.Canceled),
		"waited":    acquire(func(*testing.T, *site, func()) {}, lockkeeper.ErrTimeout, lockkeeper.WithWait(4*time.Second)),
		"closed": acquire(func(t *testing.T, s *site, _ func()) {
			if err := s.Close(within(t)); err != nil {
				t.Error(err)
			}
		}, lockkeeper.ErrClosed),
		"died": message(func(c *client, _ *messages.Lock) { c.tr.system.Root.Stop(c.pid) }, 0),
		"cancelled by message": message(func(c *client, lock *messages.Lock) { c.request(&messages.Cancel{Lock: lock}) },
			messages.Reason_REASON_CANCELLED),
	} {
		for _, where := range []string{"head", "middle"} {
			t.Run(what+" "+where, func(t *testing.T) {
				t.Parallel()
				k := newFairKey(t, redistest.Shared(t))
				holder, goes, stays := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
				hold := obtain(t, k.of(holder))
				var waiting []<-chan grant
				if where == "middle" {
					granted, _ := k.enqueue(t, within(t), stays)
					waiting = append(waiting, granted)
				}
				leave := leaver(t, k, goes)
				granted, _ := k.enqueue(t, within(t), stays)
				waiting = append(waiting, granted)

				leave()
				if line := k.awaitLine(t, len(waiting)); queuedBy(line, goes) {
					t.Errorf("the waiter has gone, and stands in the queue %v", line)
				}
				if n := k.number(t, "ZCARD", k.timeouts); n != int64(len(waiting)) {
					t.Errorf("%d timeouts of %d waiters", n, len(waiting))
				}
				for _, granted := range waiting {
					released := time.Now()
					release(t, hold)
					next := got(t, granted)
					if wait := next.at.Sub(released); wait > soon {
						t.Errorf("the next waiter got the lock %v after its release", wait)
					}
					hold = next.hold
				}
				release(t, hold)
				k.awaitNothing(t)
			})
		}
	}
}

// The head has not heard that the lock is free, and gives up: it is for the next now.
func TestFairHeadThatGivesUpWakesTheNext(t *testing.T) {
	t.Parallel()
	r := far(t, redistest.Start(t), noPolling)
	k := newFairKey(t, r.server)
	holder, next := open(t, r.server.URL(), noPolling), open(t, r.server.URL(), noPolling)
	hold := obtain(t, k.of(holder))
	ctx, giveUp := context.WithCancel(within(t))
	head, entry := k.enqueue(t, ctx, r.site)
	k.awaitEar(t, entry)
	// A try of its own after it has begun to listen would find the lock free.
	redistest.Eventually(t, "two tries of the head", func() bool { return r.server.Calls(t)["time"] >= 3 })
	granted, entry := k.enqueue(t, within(t), next)
	k.awaitEar(t, entry)
	redistest.Eventually(t, "two tries of the next", func() bool { return r.server.Calls(t)["time"] >= 5 })
	r.proxy.DropMessages(true)
	release(t, hold)
	pending(t, head, "it was not told")
	pending(t, granted, "it is not its turn")
	giveUp()
	gaveUp := time.Now()
	if g := await(t, "the refusal", head); !errors.Is(g.err, context.Canceled) {
		t.Fatal(g.err)
	}
	g := got(t, granted)
	if wait := g.at.Sub(gaveUp); wait > soon {
		t.Errorf("the next got the lock %v after the head gave up", wait)
	}
	release(t, g.hold)
	k.awaitNothing(t)
}

// While nothing happens, each process looks once in a while, however many wait in it.
func TestFairWaitersDoNotSpin(t *testing.T) {
	const poll, processes, each, looks = 200 * time.Millisecond, 3, 5, 45
	for what, block := range map[string]func(t *testing.T, k fairKey){
		"held":                     func(t *testing.T, k fairKey) { k.takeAs(t, redisson, time.Minute) },
		"held without an end":      func(t *testing.T, k fairKey) { k.takeAs(t, redisson, -1) },
		"a dead stranger is first": func(t *testing.T, k fairKey) { k.stand(t, redisson) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Start(t))
			block(t, k)
			strangers := len(k.line(t))
			ctx, giveUp := context.WithCancel(within(t))
			var waiting []<-chan grant
			for range processes {
				s := open(t, k.server.URL(), lockkeeper.Config{Poll: poll})
				for range each {
					waiting = append(waiting, obtainSoon(ctx, k.of(s)))
				}
			}
			k.awaitLine(t, strangers+len(waiting))
			calls := func() int64 {
				calls := k.server.Calls(t)
				return calls["evalsha"] + calls["eval"]
			}
			k.server.ResetStats(t)
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
				if g := await(t, "the refusal", granted); !errors.Is(g.err, context.Canceled) {
					t.Error(g.err)
				}
			}
			k.awaitLine(t, strangers)
		})
	}
}

func TestFairReentry(t *testing.T) {
	k := newFairKey(t, redistest.Shared(t))
	s, other := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	outer := obtain(t, k.of(s))
	waiting, _ := k.enqueue(t, within(t), other)
	middle := obtainIn(t, outer.Context(), k.of(s))
	inner := obtainIn(t, middle.Context(), k.of(s))
	owner := k.heldBy(t, s, "3")
	if inner.Count() != 3 || len(k.line(t)) != 1 {
		t.Errorf("hold count %d, queue %v", inner.Count(), k.line(t))
	}
	_, err := k.of(s).Acquire(inner.Context(), lockkeeper.WithoutReentry())
	isError(t, err, lockkeeper.ErrReentry)
	release(t, inner)
	release(t, middle)
	if k.heldBy(t, s, "1") != owner {
		t.Error("the owner has changed")
	}
	pending(t, waiting, "the lock is held")
	release(t, outer)
	release(t, got(t, waiting).hold)
	k.awaitNothing(t)
}

// An explicit lease is what Redis keeps, whoever it passes the lock on from, and its end is told.
func TestFairLease(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	s, other := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	first := obtain(t, k.of(s))
	const lease = 2 * time.Second
	leased, _ := k.enqueue(t, within(t), s, lockkeeper.WithLease(lease))
	after, _ := k.enqueue(t, within(t), other)
	release(t, first)
	hold := got(t, leased).hold
	if ttl := k.ttl(t); ttl > lease {
		t.Errorf("the TTL is %v, and the lease %v", ttl, lease)
	}
	next := got(t, after)
	if hold.Valid() {
		t.Error("the next got in before the lease was over")
	}
	endedBy(t, hold, messages.Reason_REASON_EXPIRED)
	release(t, next.hold)
	k.awaitNothing(t)
}

func TestFairWatchdog(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	cfg := lockkeeper.Config{Watchdog: 1500 * time.Millisecond, Poll: 300 * time.Millisecond}
	s, other := open(t, k.server.URL(), cfg), open(t, k.server.URL(), cfg)
	hold := obtain(t, k.of(s))
	owner := k.heldBy(t, s, "1")
	waiting, _ := k.enqueue(t, within(t), other)
	began := k.expiry(t)
	redistest.Eventually(t, "renewals over twice the lease", func() bool { return k.expiry(t).Sub(began) > 2*cfg.Watchdog })
	if k.heldBy(t, s, "1") != owner || !hold.Valid() {
		t.Error("the lock changed hands")
	}
	pending(t, waiting, "the lock is held")
	release(t, hold)
	release(t, got(t, waiting).hold)
	k.awaitNothing(t)
}

func TestFairLossIsTold(t *testing.T) {
	for what, meddle := range map[string]func(t *testing.T, k fairKey){
		"deleted": func(t *testing.T, k fairKey) { k.do(t, "DEL", k.name) },
		"taken": func(t *testing.T, k fairKey) {
			k.do(t, "DEL", k.name)
			k.takeAs(t, redisson, 3*time.Second)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := newFairKey(t, redistest.Shared(t))
			cfg := lockkeeper.Config{Watchdog: 1500 * time.Millisecond, Poll: 300 * time.Millisecond}
			s, other := open(t, k.server.URL(), cfg), open(t, k.server.URL(), cfg)
			hold := obtain(t, k.of(s))
			here, _ := k.enqueue(t, within(t), other)
			later, _ := k.enqueue(t, within(t), s)
			meddle(t, k)
			next := got(t, here) // as soon as it looks
			endedBy(t, hold, robbed...)
			release(t, next.hold)
			release(t, got(t, later).hold)
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
			cfg := noPolling
			cfg.Renewal = 300 * time.Millisecond
			s, other, forcing := open(t, k.server.URL(), cfg), open(t, k.server.URL(), cfg), open(t, k.server.URL(), cfg)
			if by == "the holder's system" {
				forcing = s
			}
			hold := obtain(t, k.of(s))
			head, entry := k.enqueue(t, within(t), other)
			k.awaitEar(t, entry)
			second, _ := k.enqueue(t, within(t), s)
			forced := time.Now()
			if was, err := k.of(forcing).ForceRelease(within(t)); err != nil || !was {
				t.Fatalf("force release: %v, %v", was, err)
			}
			next := got(t, head)
			if wait := next.at.Sub(forced); wait > soon {
				t.Errorf("the head got the lock %v after it was forced", wait)
			}
			if forcing == s {
				endedBy(t, hold, messages.Reason_REASON_FORCED)
			} else { // as far as the next renewal can tell
				endedBy(t, hold, robbed...)
			}
			pending(t, second, "it is not its turn")
			release(t, next.hold)
			release(t, got(t, second).hold)
			k.awaitNothing(t)
		})
	}
}

// Waiters that live keep their places for longer than a dead one would.
func TestFairEntriesAreKeptAlive(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	cfg := lockkeeper.Config{Poll: 500 * time.Millisecond, WaiterTimeout: 3 * time.Second}
	a, b := open(t, k.server.URL(), cfg), open(t, k.server.URL(), cfg)
	k.takeAs(t, redisson, time.Minute)
	first, _ := k.enqueue(t, within(t), a)
	second, _ := k.enqueue(t, within(t), b)
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
	hold := got(t, first).hold
	pending(t, second, "it is not its turn")
	release(t, hold)
	release(t, got(t, second).hold)
	k.awaitNothing(t)
}

func TestFairTryDoesNotQueue(t *testing.T) {
	k := newFairKey(t, redistest.Shared(t))
	s, other := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	k.takeAs(t, redisson, time.Minute)
	for range 3 {
		_, err := k.of(s).TryAcquire(within(t))
		isError(t, err, lockkeeper.ErrHeld)
	}
	refused := ask[*messages.NotAcquired](t, s.probe(t), &messages.Acquire{Lock: k.fair(), Wait: durationpb.New(0)})
	if refused.Reason != messages.Reason_REASON_HELD || refused.Ttl.AsDuration() <= 0 {
		t.Errorf("refused with %v", refused)
	}
	if n := k.number(t, "EXISTS", k.queue, k.timeouts); n != 0 {
		t.Errorf("a try stands in the queue %v", k.line(t))
	}
	k.do(t, "DEL", k.name)
	k.stand(t, redisson)
	for _, each := range []*site{s, other} {
		_, err := k.of(each).TryAcquire(within(t))
		isError(t, err, lockkeeper.ErrHeld)
	}
	k.do(t, "DEL", k.queue, k.timeouts)
	hold, err := k.of(s).TryAcquire(within(t))
	if err != nil {
		t.Fatal(err)
	}
	release(t, hold)
	k.awaitNothing(t)
}

func TestFairByMessage(t *testing.T) {
	k := newFairKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	users := s.users(k.server)
	var queue []*client
	for i := range 4 {
		c := users.client(t, fmt.Sprint("user ", i))
		c.request(&messages.Acquire{Lock: k.fair()})
		if i == 0 {
			if granted := expect[*messages.Acquired](t, c); granted.HoldCount != 1 || granted.Token != 0 {
				t.Errorf("granted %v", granted)
			}
		} else {
			k.awaitLine(t, i)
		}
		queue = append(queue, c)
	}
	status := ask[*messages.Status](t, s.probe(t), &messages.Inspect{Lock: k.fair()})
	if !status.Locked || !status.HeldHere || status.Waiters != 3 || status.Subscribers != 3 {
		t.Errorf("status %v", status)
	}
	users.system.Root.Stop(queue[0].pid) // the death of a holder passes the lock on
	for i, c := range queue[1:] {
		expect[*messages.Acquired](t, c)
		for _, later := range queue[i+2:] {
			later.expectNothing()
		}
		c.request(&messages.Release{Lock: k.fair()})
		expect[*messages.Released](t, c)
	}
	if owners := slices.Collect(maps.Keys(k.owners(t))); len(owners) > 0 {
		t.Errorf("held by %v", owners)
	}
	k.awaitNothing(t)
}
