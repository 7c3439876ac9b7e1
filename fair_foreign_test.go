package lockkeeper_test

// The fair lock beside waiters that are not ours.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Whoever finds the head dead wakes the next.
func TestFairDeadHeadIsFoundByAStranger(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Start(t))
	k.stand(t, redisson)
	waiter, passerBy := open(t, k.server.URL(), noPolling), open(t, k.server.URL(), noPolling)
	granted, entry := k.enqueue(t, within(t), waiter)
	k.awaitEar(t, entry)
	redistest.Eventually(t, "the try after that", func() bool { return k.server.Calls(t)["time"] >= 2 })
	pending(t, granted, "another is first")

	k.do(t, "ZADD", k.timeouts, fmt.Sprint(k.now(t)-1), redisson)
	_, err := k.of(passerBy).TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)
	found := time.Now()
	g := got(t, granted)
	if wait := g.at.Sub(found); wait > soon {
		t.Errorf("the next got the lock %v after the head was found dead", wait)
	}
	release(t, g.hold)
	k.awaitNothing(t)
}

// Redisson's waiters have their turns among ours, and ours among theirs.
func TestFairForeignWaiters(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Start(t))
	cfg := lockkeeper.Config{Poll: 200 * time.Millisecond, WaiterTimeout: 5 * time.Second}
	a, b := open(t, k.server.URL(), cfg), open(t, k.server.URL(), cfg)
	hold := obtain(t, k.of(a))
	const other = "0e8dd9d4-cbde-4d1c-b5ea-1f1f5a3f0d11:8"
	k.stand(t, redisson)
	k.attend(t, redisson)
	first, _ := k.enqueue(t, within(t), a)
	k.stand(t, other)
	k.attend(t, other)
	second, _ := k.enqueue(t, within(t), b)

	told := k.key
	told.channel += ":" + redisson
	heard := told.listen(t)
	release(t, hold)
	if messages := heard.messages(t); !slices.Equal(messages, []string{"0"}) {
		t.Errorf("the head was told %q", messages)
	}
	k.server.ResetStats(t)
	redistest.Eventually(t, "some looks of ours", func() bool { return k.server.Calls(t)["evalsha"] >= 8 })
	if line := k.line(t); k.exists(t) || len(line) != 4 || line[0] != redisson {
		t.Fatalf("the foreign head was not respected: held %v, queue %v", k.owners(t), line)
	}
	_, err := k.of(b).TryAcquire(within(t))
	isError(t, err, lockkeeper.ErrHeld)

	// Its turn. It moves the others' timeouts up by its own patience, more than ours.
	k.step(t, redisson)
	for _, owner := range k.line(t) {
		if until, now := k.timeout(t, owner), k.now(t); until <= now {
			t.Errorf("%s counts as dead since %d ms", owner, now-until)
		}
	}
	k.pass(t)
	hold = got(t, first).hold
	if until, now := k.timeout(t, other), k.now(t); until <= now {
		t.Errorf("the foreign waiter behind ours counts as dead since %d ms", now-until)
	}
	release(t, hold)
	pending(t, second, "a foreign waiter is before it")
	k.step(t, other)
	k.pass(t)
	release(t, got(t, second).hold)
	k.awaitNothing(t)
}

// A foreign head that nobody can tell, since its process is dead, costs no more than one
// of ours, whatever its timeout.
func TestFairDeadForeignHead(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	cfg := lockkeeper.Config{Poll: 200 * time.Millisecond, WaiterTimeout: time.Second}
	s := open(t, k.server.URL(), cfg)
	k.stand(t, redisson) // for five minutes
	began := k.now(t)
	granted := obtainSoon(within(t), k.of(s))
	hold := got(t, granted).hold
	if waited := k.now(t) - began; waited < cfg.WaiterTimeout.Milliseconds()-1 {
		t.Errorf("granted after %d ms, and the head had %v", waited, cfg.WaiterTimeout)
	}
	release(t, hold)
	k.awaitNothing(t)
}

// A foreign head that does not come keeps its place until its timeout, and no longer.
func TestFairForeignHeadIsEvicted(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	k.stand(t, redisson)
	until := k.now(t) + 1500
	k.do(t, "ZADD", k.timeouts, fmt.Sprint(until), redisson)
	granted := obtainSoon(within(t), k.of(s))
	hold := got(t, granted).hold
	if early := until - k.now(t); early > 0 {
		t.Errorf("granted %d ms before the foreign waiter's time was over", early)
	}
	if line := k.line(t); len(line) != 0 {
		t.Errorf("the queue is %v", line)
	}
	release(t, hold)
	k.awaitNothing(t)
}

// An entry without a timeout would stand there for ever.
func TestFairHeadWithoutATimeout(t *testing.T) {
	k := newFairKey(t, redistest.Shared(t))
	s := open(t, k.server.URL(), noPolling)
	k.do(t, "RPUSH", k.queue, redisson)
	release(t, obtain(t, k.of(s)))
	k.awaitNothing(t)
}
