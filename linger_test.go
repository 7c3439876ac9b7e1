package lockkeeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A process stays subscribed for a moment after its wait. At the end of a tenure it does
// not take itself for somebody who waits.
func TestOwnSubscriptionIsNobodyWhoWaits(t *testing.T) {
	server := redistest.Start(t)
	k := newKey(t, server)
	s := open(t, server.URL(), lockkeeper.Config{Tenure: time.Millisecond, Poll: redistest.Limit})
	k.takeAs(t, redisson, time.Minute)
	granted := s.acquireSoon(t, k)
	k.awaitSubscribers(t, 1)
	k.unlock(t)
	hold := got(t, granted).hold // with nobody behind it, which ends the subscription
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	var users []<-chan error
	for range 8 {
		done := make(chan error, 1)
		users = append(users, done)
		go func() {
			for {
				hold, err := s.Lock(k.lock).Acquire(ctx)
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
	s.awaitWaiters(t, k, 8)
	server.ResetStats(t)
	release(t, hold)
	redistest.Eventually(t, "the end of a few tenures", func() bool { return server.Calls(t)["pubsub|numsub"] > 5 })
	if n := server.Calls(t)["publish"]; n > 0 {
		t.Errorf("the lock was released %d times for nobody", n)
	}
	stop()
	for _, done := range users {
		if err := await(t, "the user to end", done); err != nil {
			t.Error(err)
		}
	}
}
