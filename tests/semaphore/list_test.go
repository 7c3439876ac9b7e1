package semaphore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A System lists the semaphores and latches that have waiters in it, by message or on a goroutine, and no others. If
// one cannot answer, the rest is listed.
func TestLocks_ListsSemaphoresAndLatchesWithWaiters(t *testing.T) {
	t.Parallel()
	faults, s, k := locktest.NewFaultInjector(t, locktest.NoPolling)
	semaphore, latch, p, ctx := s.Semaphore(k.LockName), s.Latch(k.LockName+" too"), s.Probe(t), locktest.Within(t)
	closes(t, latch, 1, true)
	k.Do(t, "SET", k.LockName, "0")
	began := time.Now()
	got, passed := soon(t, semaphore, 1), make(chan error, 1)
	go func() { passed <- latch.Wait(ctx) }()
	p.Send(&messages.AcquirePermits{Semaphore: &messages.Semaphore{Name: k.LockName}})
	p.Send(&messages.AwaitLatch{Latch: &messages.Latch{Name: k.LockName + " too"}})
	s.AwaitWaiting(t, 4)
	all, err := s.Locks(ctx)
	ok(t, err)
	want := []lockkeeper.LockInfo{
		{Name: k.LockName, Kind: messages.Kind_KIND_SEMAPHORE, Waiters: 2},
		{Name: k.LockName + " too", Kind: messages.Kind_KIND_LATCH, Waiters: 2},
	}
	for i := range all {
		if waiting := all[i].Waiting; waiting <= 0 || waiting > time.Since(began) {
			t.Errorf("%+v, %v after the test began", all[i], time.Since(began))
		}
		all[i].Waiting = 0
	}
	if !slices.Equal(all, want) {
		t.Errorf("listed %+v, want %+v", all, want)
	}
	faults.Hit(locktest.Once("*request.Call"), nil)
	if all, err = s.Locks(ctx); len(all) != 1 || err != nil {
		t.Errorf("listed %+v, %v, while one of two crashes", all, err)
	}
	ok(t, semaphore.Release(ctx, 2))
	ok(t, locktest.Await(t, "the permit", got))
	ok(t, latch.CountDown(ctx))
	ok(t, locktest.Await(t, "the latch to open", passed))
	s.AwaitWaiting(t, 0)
	if all, err = s.Locks(ctx); err != nil || len(all) > 0 {
		t.Errorf("listed %+v, %v, want none", all, err)
	}
}
