package semaphore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// What is deleted leaves no key but the records of commands, which expire. Those that wait are notified, in this process
// and in others: they do not have to poll.
func TestDelete_LeavesNothingThatStays(t *testing.T) {
	t.Parallel()
	here, k := locktest.NewOnOwnServer(t, locktest.NoPolling)
	there := locktest.Open(t, k.Server.URL(), locktest.NoPolling)
	ctx := locktest.Within(t)
	deleted := func(what string, f func() (bool, error), want bool) {
		t.Helper()
		if got, err := f(); got != want || err != nil {
			t.Errorf("%s: deleted %v, %v; want %v", what, got, err, want)
		}
	}

	slots := func(s *locktest.Site) *lockkeeper.Semaphore { return s.Semaphore("slots") }
	deleted("no semaphore", func() (bool, error) { return slots(here).Delete(ctx) }, false)
	locktest.Must(slots(here).TrySetPermits(ctx, 1, 0))(t)
	locktest.OK(t, slots(here).Acquire(ctx, 1))
	waits := locktest.Go(func() error { return slots(there).Acquire(ctx, 1) })
	there.AwaitWaiting(t, 1)
	locktest.Key{Server: k.Server, Channel: "redisson_sc:{slots}"}.AwaitSubscribers(t, 1)
	deleted("a semaphore", func() (bool, error) { return slots(here).Delete(ctx) }, true)
	if err := locktest.Await(t, "the waiter", waits); !errors.Is(err, lockkeeper.ErrNoPermits) {
		t.Errorf("it waited for a semaphore that was deleted, and gets %v", err)
	}
	if err := slots(here).Release(ctx, 1); !errors.Is(err, lockkeeper.ErrNoPermits) {
		t.Errorf("a late release: %v", err)
	}

	gate := func(s *locktest.Site) *lockkeeper.Latch { return s.Latch("gate") }
	locktest.Must(gate(here).TrySetCount(ctx, 2))(t)
	locktest.OK(t, gate(here).CountDownOnce(ctx, "one"))
	opens := locktest.Go(func() error { return gate(there).Wait(ctx) })
	there.AwaitWaiting(t, 1)
	locktest.Key{Server: k.Server, Channel: "redisson_countdownlatch__channel__{gate}"}.AwaitSubscribers(t, 1)
	deleted("a latch", func() (bool, error) { return gate(here).Delete(ctx) }, true)
	locktest.OK(t, locktest.Await(t, "the latch to open", opens))
	deleted("an open latch", func() (bool, error) { return gate(here).Delete(ctx) }, false)
	locktest.Must(gate(here).TrySetCount(ctx, 2))(t)
	locktest.OK(t, gate(here).CountDownOnce(ctx, "one")) // counts again
	if n := locktest.Must(gate(here).Count(ctx))(t); n != 1 {
		t.Errorf("the next latch of the name has a count of %d", n)
	}

	permits := here.ExpirableSemaphore("permits")
	locktest.Must(permits.TrySetPermits(ctx, 2))(t)
	permit := locktest.Must(permits.Acquire(ctx))(t)
	deleted("a semaphore with a taken permit", func() (bool, error) { return permits.Delete(ctx) }, false)
	locktest.OK(t, permit.Release(ctx))
	deleted("an expirable semaphore", func() (bool, error) { return permits.Delete(ctx) }, true)
	if _, err := permits.Available(ctx); !errors.Is(err, lockkeeper.ErrNoPermits) {
		t.Errorf("it has permits: %v", err)
	}

	p := here.Probe(t)
	if a := locktest.Ask[*messages.LatchChanged](t, p, &messages.DeleteLatch{Latch: &messages.Latch{Name: "gate"}}); !a.Done {
		t.Errorf("by message: %v", a)
	}
	locktest.Must(slots(here).TrySetPermits(ctx, 1, 0))(t)
	locktest.Must(permits.TrySetPermits(ctx, 1))(t)
	for _, want := range []bool{true, false} {
		plain := locktest.Ask[*messages.PermitsChanged](t, p, &messages.DeletePermits{Semaphore: &messages.Semaphore{Name: "slots"}})
		expirable := locktest.Ask[*messages.ExpirablePermitsSet](t, p, &messages.SetExpirablePermits{
			Lock: &messages.Lock{Name: "permits", Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE}, How: messages.SetPermitsHow_SET_PERMITS_HOW_DELETE,
		})
		if plain.Done != want || expirable.Set != want {
			t.Errorf("by message: %v, %v; want %v", plain, expirable, want)
		}
	}
	for _, key := range k.Server.Keys(t, "*") {
		if ttl := k.Number(t, "PTTL", key); ttl < 0 || ttl > (8*24*time.Hour).Milliseconds() {
			t.Errorf("%s stays, with a TTL of %d ms", key, ttl)
		}
	}
}
