package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
const beside = 48

// Run runs all cases as subtests of t. It ends with a look for goroutines that were not
// there when it began, so nothing else may start any meanwhile, and what Open shares
// between clients must have been started before.
func Run(t *testing.T, a Adapter) { RunAll(t, map[string]Adapter{"": a}) }

// RunAll is Run for several adapters beside each other, by their names.
func RunAll(t *testing.T, adapters map[string]Adapter) {
	before := goleak.IgnoreCurrent()
	places := make(chan struct{}, beside)
	var running sync.WaitGroup
	for name, a := range adapters {
		running.Go(func() {
			if name == "" {
				runCases(t, a, places)
				return
			}
			t.Run(name, func(t *testing.T) { runCases(t, a, places) })
		})
	}
	running.Wait()
	t.Run("nothing is left in the process", func(t *testing.T) {
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
	})
}

func runCases(t *testing.T, a Adapter, places chan struct{}) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, c := range cases {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			t.Run(c.name, func(t *testing.T) {
				for _, needed := range c.needs {
					if slices.Contains(a.Traits().Lacks, needed) {
						t.Skipf("the adapter lacks: %s", needed)
					}
				}
				c.run(newTrial(t, a))
			})
		})
	}
}

// cases are all there are, in the order in which they begin: the longest first.
var cases = []struct {
	name  string
	run   func(*trial)
	needs []Capability
}{
	{"a hold is kept beyond its TTL", keptAlive, nil},
	{"a crash while held", crash, []Capability{Crash}},
	{"a hold is kept for the next holder too", keptAliveForTheNext, nil},
	{"a client is killed", killed, []Capability{Kill}},
	{"a fixed lease is released early", leaseReleased, nil},
	{"the lease of a re-entry", leaseOfAReentry, []Capability{Reentry}},
	{"a fixed lease ends and is told", leaseEnds, nil},
	{"mutual exclusion", mutualExclusion, nil},
	{"mutual exclusion with tries and waits", mutualExclusionByTries, nil},
	{"a state as it is told", inspection, []Capability{Inspection}},
	{"a re-entry", reentry, []Capability{Reentry}},
	{"a re-entry that is refused", reentryRefused, []Capability{Refusal}},
	{"a re-entry outlives the first hold", reentryOutOfOrder, []Capability{Reentry}},
	{"a re-entry is held to the end", reentryToTheEnd, []Capability{Reentry}},
	{"a try", try, nil},
	{"a wait that is over", waitOver, nil},
	{"a wait that is rewarded", waitRewarded, nil},
	{"cancelled before", cancelledBefore, nil},
	{"cancelled while waiting", cancelledWhileWaiting, nil},
	{"cancelled when granted", cancelledWhenGranted, nil},
	{"cancelled at random", cancelledAtRandom, nil},
	{"a lock is deleted", deleted, []Capability{Deletion}},
	{"a late release does not free the next holder's lock", lateRelease, nil},
	{"a second release does not free the next holder's lock", secondRelease, nil},
	{"passed on in one client", passedOn, nil},
	{"passed on to another client", passedOnElsewhere, nil},
	{"granted in order", order, []Capability{Order, Inspection}},
	{"the death of a holder", deathOfAHolder, []Capability{Death}},
	{"the death of a waiter", deathOfAWaiter, []Capability{Death}},
	{"a forced release is told here", forcedHere, []Capability{Force}},
	{"a forced release is told elsewhere", forcedElsewhere, []Capability{Force}},
	{"a forced release of a free lock", forcedFree, []Capability{Force}},
	{"a client is closed", closed, nil},
	{"a waiting client is killed", waiterKilled, []Capability{Kill}},
	{"tokens grow", tokensGrow, []Capability{Tokens}},
	{"tokens grow after a loss", tokensGrowAfterALoss, []Capability{Tokens}},
	{"tokens of a re-entry", tokensOfAReentry, []Capability{Tokens, Reentry}},
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
	t.Cleanup(func() {
		cancel()
		if t.Failed() {
			return
		}
		var left []string
		if !within(Limit, func() bool { left = a.Left(t, tr.lock); return len(left) == 0 }) {
			t.Errorf("left in the storage: %v", left)
		}
	})
	return tr
}

func plain(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return r
	}
	return '_'
}

func (t *trial) can(c Capability) bool { return !slices.Contains(t.traits.Lacks, c) }

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

// await is what comes through a channel; the test fails if nothing does.
func await[T any](t *trial, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Limit + time.Second):
		t.Fatalf("not within %v: %s", Limit, what)
		panic("not reached")
	}
}

// settled is how a request ended.
func (t *trial) settled(granted <-chan grant) grant {
	t.Helper()
	return await(t, "the answer to a request", granted)
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
	if g := t.settled(granted); !errors.Is(g.err, want) {
		t.Fatalf("error %v, want %v", g.err, want)
	}
}

// pending checks that a request has no answer yet.
func (t *trial) pending(granted ...<-chan grant) {
	t.Helper()
	for _, each := range granted {
		select {
		case g := <-each:
			t.Fatalf("somebody was granted the lock out of turn: %v", g.err)
		default:
		}
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
	return await(t, "the answer to a release", done)
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

// notReleased checks that a hold cannot be released, for one of these reasons.
func (t *trial) notReleased(h Hold, want ...error) {
	t.Helper()
	if err := t.released(h); !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		t.Fatalf("release of what is over: error %v, want %v", err, want)
	}
}

// isLost waits until the holder is told of its loss.
func (t *trial) isLost(h Hold) {
	t.Helper()
	await(t, "the news of a loss", h.Lost())
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
	if !t.can(Inspection) {
		time.Sleep(t.traits.TTL / 10)
		return
	}
	t.eventually(fmt.Sprintf("%d requests wait", n), func() bool {
		status, err := c.Inspect(t.ctx, t.lock)
		return err == nil && status.Waiters == n
	})
}

// queued waits until so many requests of all clients stand in line.
func (t *trial) queued(c Client, n int) {
	t.Helper()
	if !t.can(Inspection) || !t.traits.Ordered {
		return
	}
	t.eventually(fmt.Sprintf("%d requests stand in line", n), func() bool {
		status, err := c.Inspect(t.ctx, t.lock)
		return err == nil && status.Queue == n
	})
}
