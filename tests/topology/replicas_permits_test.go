package topology_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A change of a synchronizer is on the replica when the call returns. A change that no replica confirms counts as not
// done: permits that were taken are given back.
func TestReplicas_ConfirmSynchronizers(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica, link := redistest.ReplicaBehind(t, master)
	cfg := replicated
	cfg.CallTimeout = 2 * time.Second // for what fails
	s, hasty, ctx := locktest.Open(t, master.URL(), replicated), locktest.Open(t, master.URL(), cfg), locktest.Within(t)
	semaphore, latch, permits := s.Semaphore("semaphore"), s.Latch("latch"), s.ExpirableSemaphore("permits")
	link.Delay(*lag)
	for _, step := range []struct {
		name string
		do   func(context.Context) error
		key  string
		want int64
	}{
		{"permits are set", func(ctx context.Context) error { _, err := semaphore.TrySetPermits(ctx, 5, 0); return err }, "semaphore", 5},
		{"two are taken", func(ctx context.Context) error { return semaphore.Acquire(ctx, 2) }, "semaphore", 3},
		{"one is given back", func(ctx context.Context) error { return semaphore.Release(ctx, 1) }, "semaphore", 4},
		{"one is added", func(ctx context.Context) error { return semaphore.AddPermits(ctx, 1) }, "semaphore", 5},
		{"a latch is closed", func(ctx context.Context) error { _, err := latch.TrySetCount(ctx, 3); return err }, "latch", 3},
		{"it is counted down", latch.CountDown, "latch", 2},
		{"it is counted down by id", func(ctx context.Context) error { return latch.CountDownOnce(ctx, "a") }, "latch", 1},
		{"permits that expire are set", func(ctx context.Context) error { _, err := permits.TrySetPermits(ctx, 2); return err }, "permits", 2},
		{"more of them are added", func(ctx context.Context) error { return permits.AddPermits(ctx, 2) }, "permits", 4},
	} {
		if err := step.do(ctx); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if n, err := replica.Do(t, "GET", step.key).AsInt64(); err != nil || n != step.want {
			t.Errorf("%s, and the replica has %d, want %d (%v)", step.name, n, step.want, err)
		}
	}

	link.Freeze(true)
	redistest.Eventually(t, "a refusal in time", func() bool {
		err := hasty.Semaphore("semaphore").Acquire(ctx, 1, lockkeeper.WithWait(3*time.Second))
		if !errors.Is(err, lockkeeper.ErrUnavailable) {
			t.Errorf("the replica has not confirmed it: %v", err)
		}
		return strings.Contains(fmt.Sprint(err), "0 of the 1 replicas")
	})
	link.Freeze(false)
	redistest.Eventually(t, "the permit to be given back, on the replica as well", func() bool {
		n, err := replica.Do(t, "GET", "semaphore").AsInt64()
		return err == nil && n == 5
	})
}

// An ACL user without the right to wait for replicas: the permits that a semaphore took are given back, and permits
// that were given back are not given back twice.
func TestReplicas_WithoutRightSynchronizersLoseNothing(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	redistest.Replica(t, master)
	cfg := replicated
	cfg.CallTimeout = 2 * time.Second // for what fails
	s, hasty, ctx := locktest.Open(t, master.URL(), replicated), locktest.Open(t, master.URL(), cfg), locktest.Within(t)
	semaphore := s.Semaphore("semaphore")
	redistest.Eventually(t, "the replica to confirm", func() bool {
		_, err := semaphore.TrySetPermits(ctx, 5, 0)
		return err == nil
	})
	permits := s.ExpirableSemaphore("permits")
	locktest.Must(permits.TrySetPermits(ctx, 2))(t)
	semaphore, permits = hasty.Semaphore("semaphore"), hasty.ExpirableSemaphore("permits")
	master.Do(t, "ACL", "SETUSER", "default", "-wait")
	_, err := permits.Acquire(ctx)
	locktest.IsError(t, err, lockkeeper.ErrRejected, "wait")
	locktest.IsError(t, permits.AddPermits(ctx, 1), lockkeeper.ErrUnavailable, "wait")
	locktest.IsError(t, semaphore.Acquire(ctx, 2, lockkeeper.WithWait(3*time.Second)), lockkeeper.ErrUnavailable, "wait")
	locktest.IsError(t, semaphore.Release(ctx, 1), lockkeeper.ErrUnavailable, "")
	master.Do(t, "ACL", "SETUSER", "default", "+wait")
	redistest.Eventually(t, "all permits to be given back", func() bool {
		n, err := master.Do(t, "GET", "semaphore").AsInt64()
		left, _ := master.Do(t, "GET", "permits").AsInt64()
		return err == nil && n == 6 && left == 3
	})
}
