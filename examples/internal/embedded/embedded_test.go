package embedded_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/embedded"
	"github.com/lockkeeper-go/lockkeeper/internal/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) {
	// After a failed connect rueidis sleeps out a second on a goroutine of its own.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

func start(t *testing.T, r *embedded.Redis, config lockkeeper.Config) *lockkeeper.System {
	t.Helper()
	locks, err := lockkeeper.New(quiet.ActorSystem(), r, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return locks
}

func open(t *testing.T) *embedded.Redis {
	t.Helper()
	r, err := embedded.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	if !r.Embedded() {
		t.Error("not embedded")
	}
	return r
}

// Everything that the scripts need is there: two systems pass a lock back and forth.
func TestTwoSystems(t *testing.T) {
	r := open(t)
	a, b := start(t, r, lockkeeper.Config{}).Lock("x"), start(t, r, lockkeeper.Config{}).Lock("x")
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	for range 20 {
		first, err := a.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.TryAcquire(ctx); !errors.Is(err, lockkeeper.ErrHeld) {
			t.Fatalf("of a lock that is held: %v", err)
		}
		again, err := a.Acquire(first.Context())
		if err != nil || again.Count() != 2 {
			t.Fatalf("re-entry: %v", err)
		}
		second := make(chan error, 1)
		go func() {
			hold, err := b.Acquire(ctx)
			if err == nil {
				err = hold.Release(ctx)
			}
			second <- err
		}()
		redistest.Eventually(t, "b listens", func() bool {
			status, err := b.Inspect(ctx)
			return err == nil && status.Subscribers == 1 && status.HoldCount == 2
		})
		if err := errors.Join(again.Release(ctx), first.Release(ctx), <-second); err != nil {
			t.Fatal(err)
		}
	}
	if held, err := a.ForceRelease(ctx); held || err != nil {
		t.Errorf("left over: %v, %v", held, err)
	}
}

// Time passes for keys.
func TestLeaseEnds(t *testing.T) {
	r := open(t)
	r.Do(t.Context(), r.B().Hset().Key("x").FieldValue().FieldValue("somebody:1", "1").Build())
	r.Do(t.Context(), r.B().Pexpire().Key("x").Milliseconds(50).Build())
	hold, err := start(t, r, lockkeeper.Config{}).Lock("x").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFailAndRecover(t *testing.T) {
	r := open(t)
	risk := make(chan time.Duration, 1)
	locks := start(t, r, lockkeeper.Config{Watchdog: 3 * time.Second, Renewal: 20 * time.Millisecond})
	hold, err := locks.Lock("x").Acquire(t.Context(), lockkeeper.WithAtRisk(func(left time.Duration) { risk <- left }))
	if err != nil {
		t.Fatal(err)
	}
	r.Fail()
	if left := <-risk; left <= 0 || left > 3*time.Second {
		t.Errorf("at risk with %v left", left)
	}
	r.Recover()
	if err := hold.Ensure(t.Context(), 2900*time.Millisecond); err != nil && !errors.Is(err, lockkeeper.ErrUnavailable) {
		t.Errorf("after the outage: %v", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpenReal(t *testing.T) {
	server := redistest.Start(t)
	r, err := embedded.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Embedded() {
		t.Error("a real one is said to be embedded")
	}
	if err := r.Do(t.Context(), r.B().Ping().Build()).Error(); err != nil {
		t.Error(err)
	}
	server.Kill(t)
	if _, err := embedded.Open(server.URL()); err == nil {
		t.Error("opened where there is no server")
	}
}
