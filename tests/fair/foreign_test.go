package fair_test

// The fair lock beside waiters that are not ours.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Whoever finds the head dead wakes the next.
func TestFairDeadHeadIsFoundByAStranger(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Start(t))
	k.stand(t, locktest.Redisson)
	waiter, passerBy := locktest.Open(t, k.Server.URL(), locktest.NoPolling), locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	granted, entry := k.enqueue(t, locktest.Within(t), waiter)
	k.awaitEar(t, entry)
	redistest.Eventually(t, "the try after that", func() bool { return k.Server.Calls(t)["time"] >= 2 })
	locktest.Pending(t, granted, "another is first")

	k.Do(t, "ZADD", k.timeouts, fmt.Sprint(k.now(t)-1), locktest.Redisson)
	_, err := k.of(passerBy).TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)
	found := time.Now()
	g := locktest.Got(t, granted)
	if wait := g.At.Sub(found); wait > locktest.Soon {
		t.Errorf("the next got the lock %v after the head was found dead", wait)
	}
	locktest.Release(t, g.Hold)
	k.awaitNothing(t)
}

// Redisson's waiters have their turns among ours, and ours among theirs.
func TestFairForeignWaiters(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Start(t))
	cfg := lockkeeper.Config{Poll: 200 * time.Millisecond, WaiterTimeout: 5 * time.Second}
	a, b := locktest.Open(t, k.Server.URL(), cfg), locktest.Open(t, k.Server.URL(), cfg)
	hold := locktest.Acquire(t, k.of(a))
	const other = "0e8dd9d4-cbde-4d1c-b5ea-1f1f5a3f0d11:8"
	k.stand(t, locktest.Redisson)
	k.attend(t, locktest.Redisson)
	first, _ := k.enqueue(t, locktest.Within(t), a)
	k.stand(t, other)
	k.attend(t, other)
	second, _ := k.enqueue(t, locktest.Within(t), b)

	told := k.Key
	told.Channel += ":" + locktest.Redisson
	heard := told.Listen(t)
	locktest.Release(t, hold)
	if messages := heard.Messages(t); !slices.Equal(messages, []string{"0"}) {
		t.Errorf("the head was told %q", messages)
	}
	k.Server.ResetStats(t)
	redistest.Eventually(t, "some looks of ours", func() bool { return k.Server.Calls(t)["evalsha"] >= 8 })
	if line := k.line(t); k.Exists(t) || len(line) != 4 || line[0] != locktest.Redisson {
		t.Fatalf("the foreign head was not respected: held %v, queue %v", k.Owners(t), line)
	}
	_, err := k.of(b).TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrHeld)

	// Its turn. It moves the others' timeouts up by its own patience, more than ours.
	k.step(t, locktest.Redisson)
	for _, owner := range k.line(t) {
		if until, now := k.timeout(t, owner), k.now(t); until <= now {
			t.Errorf("%s counts as dead since %d ms", owner, now-until)
		}
	}
	k.pass(t)
	hold = locktest.Got(t, first).Hold
	if until, now := k.timeout(t, other), k.now(t); until <= now {
		t.Errorf("the foreign waiter behind ours counts as dead since %d ms", now-until)
	}
	locktest.Release(t, hold)
	locktest.Pending(t, second, "a foreign waiter is before it")
	k.step(t, other)
	k.pass(t)
	locktest.Release(t, locktest.Got(t, second).Hold)
	k.awaitNothing(t)
}

// A foreign head that nobody can tell, since its process is dead, costs no more than one
// of ours, whatever its timeout.
func TestFairDeadForeignHead(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	cfg := lockkeeper.Config{Poll: 200 * time.Millisecond, WaiterTimeout: time.Second}
	s := locktest.Open(t, k.Server.URL(), cfg)
	k.stand(t, locktest.Redisson) // for five minutes
	began := k.now(t)
	granted := locktest.AcquireSoon(locktest.Within(t), k.of(s))
	hold := locktest.Got(t, granted).Hold
	if waited := k.now(t) - began; waited < cfg.WaiterTimeout.Milliseconds()-1 {
		t.Errorf("granted after %d ms, and the head had %v", waited, cfg.WaiterTimeout)
	}
	locktest.Release(t, hold)
	k.awaitNothing(t)
}

// A foreign head that does not come keeps its place until its timeout, and no longer.
func TestFairForeignHeadIsEvicted(t *testing.T) {
	t.Parallel()
	k := newFairKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	k.stand(t, locktest.Redisson)
	until := k.now(t) + 1500
	k.Do(t, "ZADD", k.timeouts, fmt.Sprint(until), locktest.Redisson)
	granted := locktest.AcquireSoon(locktest.Within(t), k.of(s))
	hold := locktest.Got(t, granted).Hold
	if early := until - k.now(t); early > 0 {
		t.Errorf("granted %d ms before the foreign waiter's time was over", early)
	}
	if line := k.line(t); len(line) != 0 {
		t.Errorf("the queue is %v", line)
	}
	locktest.Release(t, hold)
	k.awaitNothing(t)
}

// An entry without a timeout would stand there for ever.
func TestFairHeadWithoutATimeout(t *testing.T) {
	k := newFairKey(t, redistest.Shared(t))
	s := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	k.Do(t, "RPUSH", k.queue, locktest.Redisson)
	locktest.Release(t, locktest.Acquire(t, k.of(s)))
	k.awaitNothing(t)
}
