package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A process stays subscribed for a moment after its wait. At the end of a tenure it does
// not take itself for somebody who waits.
func TestOwnSubscriptionIsNobodyWhoWaits(t *testing.T) {
	server := redistest.Start(t)
	k := locktest.NewKey(t, server)
	s := locktest.Open(t, server.URL(), lockkeeper.Config{Tenure: time.Millisecond, Poll: redistest.Limit})
	k.TakeAs(t, locktest.Redisson, time.Minute)
	granted := s.AcquireSoon(t, k)
	k.AwaitSubscribers(t, 1)
	k.Unlock(t)
	hold := locktest.Got(t, granted).Hold // with nobody behind it, which ends the subscription
	ctx, stop := context.WithCancel(locktest.Within(t))
	defer stop()
	var users []<-chan error
	for range 8 {
		done := make(chan error, 1)
		users = append(users, done)
		go func() {
			for {
				hold, err := s.Lock(k.LockName).Acquire(ctx)
				if err != nil {
					done <- nil
					return
				}
				if err := hold.Release(context.WithoutCancel(ctx)); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	s.AwaitWaiters(t, k, 8)
	server.ResetStats(t)
	locktest.Release(t, hold)
	redistest.Eventually(t, "the end of a few tenures", func() bool { return server.Calls(t)["pubsub|numsub"] > 5 })
	if n := server.Calls(t)["publish"]; n > 0 {
		t.Errorf("the lock was released %d times for nobody", n)
	}
	stop()
	for _, done := range users {
		if err := locktest.Await(t, "the user to end", done); err != nil {
			t.Error(err)
		}
	}
}
