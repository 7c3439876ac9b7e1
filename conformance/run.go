package conformance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"go.uber.org/goleak"
)

// Limit is how long the suite waits for something that must happen. It may be changed
// before Run.
var Limit = 20 * time.Second

// beside is how many cases run beside each other: most of them mainly wait.
const beside = 12

// Run runs all cases as subtests of t. It ends with a look for goroutines that were not
// there when it began, so nothing else may start any meanwhile, and what Open shares
// between clients must have been started before.
func Run(t *testing.T, a Adapter) {
	before := goleak.IgnoreCurrent()
	runCases(t, a, make(chan struct{}, beside))
	nothingLeft(t, before)
}

// RunAll is Run for several adapters beside each other, by their names.
func RunAll(t *testing.T, adapters map[string]Adapter) {
	before := goleak.IgnoreCurrent()
	places := make(chan struct{}, beside)
	var wg sync.WaitGroup
	for name, a := range adapters {
		wg.Add(1)
		go func() {
			defer wg.Done()
			t.Run(name, func(t *testing.T) { runCases(t, a, places) })
		}()
	}
	wg.Wait()
	nothingLeft(t, before)
}

func runCases(t *testing.T, a Adapter, places chan struct{}) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, c := range cases {
		places <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-places }()
			t.Run(c.name, func(t *testing.T) { c.run(newTrial(t, a)) })
		}()
	}
}

func nothingLeft(t *testing.T, before goleak.Option) {
	t.Run("nothing is left in the process", func(t *testing.T) {
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
	})
}

// cases are all there are, in the order in which they begin.
var cases = []struct {
	name string
	run  func(*trial)
}{
	{"mutual exclusion", mutualExclusion},
	{"mutual exclusion with tries and waits", mutualExclusionByTries},
	{"a state as it is told", inspection},
	{"a re-entry", reentry},
	{"a re-entry outlives the first hold", reentryOutOfOrder},
	{"a re-entry is held to the end", reentryToTheEnd},
	{"the lease of a re-entry", leaseOfAReentry},
	{"a try", try},
	{"a wait that is over", waitOver},
	{"a wait that is rewarded", waitRewarded},
	{"cancelled before", cancelledBefore},
	{"cancelled while waiting", cancelledWhileWaiting},
	{"cancelled when granted", cancelledWhenGranted},
	{"cancelled at random", cancelledAtRandom},
	{"a fixed lease ends and is told", leaseEnds},
	{"a fixed lease is released early", leaseReleased},
	{"a hold is kept beyond its TTL", keptAlive},
	{"a hold is kept for the next holder too", keptAliveForTheNext},
	{"a lock is deleted", deleted},
	{"a late release does not free the next holder's lock", lateRelease},
	{"a second release does not free the next holder's lock", secondRelease},
	{"passed on in one client", passedOn},
	{"passed on to another client", passedOnElsewhere},
	{"granted in order", order},
	{"the death of a holder", deathOfAHolder},
	{"the death of a waiter", deathOfAWaiter},
	{"a crash while held", crash},
	{"a forced release is told here", forcedHere},
	{"a forced release is told elsewhere", forcedElsewhere},
	{"a forced release of a free lock", forcedFree},
	{"a client is closed", closed},
	{"a client is killed", killed},
	{"a waiting client is killed", waiterKilled},
	{"tokens grow", tokensGrow},
	{"tokens grow after a loss", tokensGrowAfterALoss},
	{"tokens of a re-entry", tokensOfAReentry},
}

// trial is one run of one case: a lock of its own, and clients that it opens.
type trial struct {
	*testing.T
	adapter Adapter
	traits  Traits
	lock    string
	ctx     context.Context
}

var trials atomic.Int64

func newTrial(t *testing.T, a Adapter) *trial {
	tr := &trial{T: t, adapter: a, traits: a.Traits()}
	if tr.traits.Lease == 0 {
		tr.traits.Lease = tr.traits.TTL / 3
	}
	// No name begins as another does, and none has a character that means something to Redis.
	tr.lock = fmt.Sprintf("%s-%d.", strings.Map(plain, t.Name()), trials.Add(1))
	var cancel context.CancelFunc
	tr.ctx, cancel = context.WithTimeout(context.Background(), 6*Limit) // what should end sooner is seen to
	paused := pulse()
	t.Cleanup(func() {
		cancel()
		longest := paused()
		if t.Failed() {
			t.Logf("the longest that this process was kept from running meanwhile is %v, with a TTL of %v", longest, tr.traits.TTL)
		}
		if t.Failed() || t.Skipped() {
			return
		}
		var left []string
		if !within(Limit, func() bool { left = a.Left(t, tr.lock); return len(left) == 0 }) {
			t.Errorf("left in the storage: %v", left)
		}
	})
	return tr
}

// pulse watches for pauses of the process, in which leases may run out and nothing is
// wrong with the lock. It gives the longest so far, and ends.
func pulse() (longest func() time.Duration) {
	stop, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		const beat = 10 * time.Millisecond
		var most time.Duration
		for last := time.Now(); ; {
			select {
			case <-stop:
				result <- most
				return
			case <-time.After(beat):
			}
			now := time.Now()
			most, last = max(most, now.Sub(last)-beat), now
		}
	}()
	return func() time.Duration { close(stop); return <-result }
}

func plain(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return r
	}
	return '_'
}

// open opens a client that is closed at the end.
func (t *trial) open() Client {
	t.Helper()
	return t.adapter.Open(t.T)
}

func (t *trial) two() (a, b Client) {
	t.Helper()
	return t.open(), t.open()
}

func within(limit time.Duration, cond func() bool) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(3 * time.Millisecond) {
		late := time.Now().After(deadline) // taken before the last look
		if cond() {
			return true
		}
		if late {
			return false
		}
	}
}

func (t *trial) eventually(what string, cond func() bool) {
	t.Helper()
	if !within(Limit, cond) {
		t.Fatalf("not within %v: %s", Limit, what)
	}
}

// grant is how an Acquire ended.
type grant struct {
	hold Hold
	err  error
}

// soon acquires on a goroutine.
func (t *trial) soon(ctx context.Context, c Client, r Request) <-chan grant {
	granted := make(chan grant, 1)
	go func() {
		hold, err := c.Acquire(ctx, t.lock, r)
		granted <- grant{hold, err}
	}()
	return granted
}

// settled is how it ended; the test fails if it does not.
func (t *trial) settled(granted <-chan grant) grant {
	t.Helper()
	select {
	case g := <-granted:
		return g
	case <-time.After(Limit + time.Second):
		t.Fatalf("a request has no answer within %v", Limit)
		panic("not reached")
	}
}

func (t *trial) got(granted <-chan grant) Hold {
	t.Helper()
	g := t.settled(granted)
	if g.err != nil {
		t.Fatalf("acquire: %v", g.err)
	}
	return g.hold
}

func (t *trial) acquire(c Client, r Request) Hold {
	t.Helper()
	return t.got(t.soon(t.ctx, c, r))
}

// refused checks that a request ends with an error.
func (t *trial) refused(granted <-chan grant, want error) {
	t.Helper()
	g := t.settled(granted)
	if g.err == nil {
		t.Fatalf("granted, want %v", want)
	}
	if !errors.Is(g.err, want) {
		t.Fatalf("error %v, want %v", g.err, want)
	}
}

// ask makes a request that is not to wait long. On a loaded machine it may have no
// answer in that time, and is made again.
func (t *trial) ask(c Client, r Request) <-chan grant {
	t.Helper()
	answer := make(chan grant, 1)
	t.eventually("an answer of the storage", func() bool {
		g := t.settled(t.soon(t.ctx, c, r))
		if errors.Is(g.err, ErrUnavailable) {
			return false
		}
		answer <- g
		return true
	})
	return answer
}

// isHeld checks that nobody else gets the lock.
func (t *trial) isHeld(clients ...Client) {
	t.Helper()
	for _, c := range clients {
		t.refused(t.ask(c, Request{Try: true}), ErrHeld)
	}
}

// isFree checks that each client gets the lock at once.
func (t *trial) isFree(clients ...Client) {
	t.Helper()
	for _, c := range clients {
		t.release(t.got(t.ask(c, Request{Try: true})))
	}
}

// passes checks that each client gets the lock, which is free or about to be.
func (t *trial) passes(clients ...Client) {
	t.Helper()
	for _, c := range clients {
		t.release(t.acquire(c, Request{}))
	}
}

// released is the outcome of a release.
func (t *trial) released(h Hold) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- h.Release(t.ctx) }()
	select {
	case err := <-done:
		return err
	case <-time.After(Limit + time.Second):
		t.Fatalf("a release has no answer within %v", Limit)
		panic("not reached")
	}
}

// release gives a hold back. On a loaded machine the storage may be late to confirm it;
// the lock is free all the same when its TTL is over.
func (t *trial) release(h Hold) {
	t.Helper()
	switch err := t.released(h); {
	case errors.Is(err, ErrUnavailable):
		time.Sleep(t.traits.TTL)
	case err != nil:
		t.Fatalf("release: %v", err)
	}
}

// isLost waits until the holder is told of its loss.
func (t *trial) isLost(h Hold) {
	t.Helper()
	select {
	case <-h.Lost():
	case <-time.After(Limit):
		t.Fatalf("the holder is not told of its loss within %v", Limit)
	}
}

// lasts checks that the holder was not told of a loss.
func (t *trial) lasts(h Hold) {
	t.Helper()
	select {
	case <-h.Lost():
		t.Fatal("the hold was lost")
	default:
	}
}

// waiting waits until so many requests of a client wait.
func (t *trial) waiting(c Client, n int) {
	t.Helper()
	inspector, ok := c.(Inspector)
	if !ok {
		time.Sleep(t.traits.TTL / 10)
		return
	}
	t.eventually(fmt.Sprintf("%d requests wait", n), func() bool {
		status, err := inspector.Inspect(t.ctx, t.lock)
		return err == nil && status.Waiters == n
	})
}

// can skips the case if something that it needs is not there.
func can[T any](t *trial, of any) T {
	t.Helper()
	as, ok := of.(T)
	if !ok {
		t.Skipf("the adapter has no %s", reflect.TypeFor[T]())
	}
	return as
}
