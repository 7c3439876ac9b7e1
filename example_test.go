package lockkeeper_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// start connects and starts Lockkeeper in an actor system, as an application does once. The examples leave out its
// error handling, and share the function stop.
func start() (sys *lockkeeper.System, actors *actor.ActorSystem, stop func()) {
	client, err := lockkeeper.Connect(redistest.SharedURL()) // "redis://127.0.0.1:6379"
	if err != nil {
		panic(err)
	}
	actors = quiet.ActorSystem() // actor.NewActorSystem()
	if sys, err = lockkeeper.New(actors, client, lockkeeper.Config{}); err != nil {
		panic(err)
	}
	return sys, actors, func() {
		_ = sys.Close(context.Background())
		client.Close()
	}
}

// Open is enough for a program without actors.
func ExampleOpen() {
	ctx := context.Background()
	sys, err := lockkeeper.Open(ctx, redistest.SharedURL(), // "redis://127.0.0.1:6379"
		lockkeeper.WithConfig(lockkeeper.Config{Logger: slog.Default()}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sys.Close(ctx)

	_ = sys.Lock("orders").Do(ctx, func(ctx context.Context) error {
		work(ctx)
		return nil
	})
	// Output: working
}

// Work under a lock, and release it however the work ends.
func ExampleLock_Acquire() {
	sys, _, stop := start()
	defer stop()
	ctx := context.Background()

	hold, err := sys.Lock("orders").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(context.WithoutCancel(ctx))
	work(hold.Context()) // cancelled, with the cause, when the lock is lost
	// Output: working
}

// Run a function under a lock, and release it however the function ends.
func ExampleLock_Do() {
	sys, _, stop := start()
	defer stop()

	err := sys.Lock("orders").Do(context.Background(), func(ctx context.Context) error {
		work(ctx) // cancelled with the caller's context, and when the lock is lost
		return nil
	})
	fmt.Println(err)
	// Output:
	// working
	// <nil>
}

// Lead until the context ends. Every process of the service does the same, and one of them leads.
func ExampleLock_Elect() {
	sys, _, stop := start()
	defer stop()
	ctx, shutdown := context.WithCancel(context.Background())

	err := sys.Lock("leader").Elect(ctx, func(ctx context.Context) error {
		fmt.Println("leading")
		shutdown() // as a signal would
		<-ctx.Done()
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// leading
	// context canceled
}

// The leader's note is its address. Other processes watch the lock to learn it, and of each new leader.
func ExampleLock_Watch() {
	sys, _, stop := start()
	defer stop()
	ctx := context.Background()

	hold, err := sys.Lock("leader").Acquire(ctx, lockkeeper.WithNote("10.0.0.1:8080")) // or Elect, Lead, LeaderProps
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx)

	for change, err := range sys.Lock("leader").Watch(ctx) {
		if errors.Is(err, lockkeeper.ErrUnavailable) {
			continue // the state follows when Redis answers again
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("the leader is at", change.Note)
		break
	}
	// Output: the leader is at 10.0.0.1:8080
}

// Lead with an actor, which lives while this process leads.
func ExampleLock_LeaderProps() {
	sys, actors, stop := start()
	defer stop()

	leading := make(chan bool)
	leader := actors.Root.Spawn(sys.Lock("leader").LeaderProps(func(term context.Context) *actor.Props {
		return actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				leading <- lockkeeper.HoldFrom(term).Valid()
			case *actor.Stopping: // the lock is released afterwards
				fmt.Println("no longer leading")
			}
		})
	}))

	fmt.Println("leading:", <-leading)
	_ = actors.Root.StopFuture(leader).Wait()
	// Output:
	// leading: true
	// no longer leading
}

func work(context.Context) { fmt.Println("working") }

// Do not wait for a lock that is held.
func ExampleLock_TryAcquire() {
	sys, _, stop := start()
	defer stop()
	ctx := context.Background()
	held, _ := sys.Lock("report").Acquire(ctx)
	defer held.Release(ctx)

	_, err := sys.Lock("report").TryAcquire(ctx)
	fmt.Println(errors.Is(err, lockkeeper.ErrHeld))
	// Output: true
}

// A fixed lease ends by itself, and its holder is notified.
func ExampleWithLease() {
	sys, _, stop := start()
	defer stop()
	hold, _ := sys.Lock("cache").Acquire(context.Background(), lockkeeper.WithLease(time.Second))

	<-hold.Context().Done()
	fmt.Println(errors.Is(context.Cause(hold.Context()), lockkeeper.ErrLost), hold.Valid())
	// Output: true false
}

// A function that is called under the lock may take it again, with the context of the hold.
func ExampleHold_Context() {
	sys, _, stop := start()
	defer stop()
	ctx := context.Background()
	outer, _ := sys.Lock("account").Acquire(ctx)
	defer outer.Release(ctx)

	inner, _ := sys.Lock("account").Acquire(outer.Context())
	defer inner.Release(ctx)
	fmt.Println("held", inner.Count(), "times")
	// Output: held 2 times
}

// Make sure that the lock stays held for the next step.
func ExampleHold_Ensure() {
	sys, _, stop := start()
	defer stop()
	ctx := context.Background()
	hold, _ := sys.Lock("transfer").Acquire(ctx)
	defer hold.Release(ctx)

	if err := hold.Ensure(ctx, 5*time.Second); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("certain for 5 s")
	// Output: certain for 5 s
}

// A fencing token lets the protected resource refuse a client that has lost the lock without noticing.
func ExampleSystem_FencedLock() {
	sys, _, stop := start()
	defer stop()
	ctx := context.Background()
	first, _ := sys.FencedLock("stock").Acquire(ctx)
	_ = first.Release(ctx)
	second, _ := sys.FencedLock("stock").Acquire(ctx)
	defer second.Release(ctx)

	fmt.Println(second.Token() > first.Token())
	// Output: true
}

// Readers share the lock; a writer excludes all others.
func ExampleSystem_ReadWriteLock() {
	sys, _, stop := start()
	defer stop()
	ctx := context.Background()
	prices := sys.ReadWriteLock("prices")
	one, _ := prices.Read().Acquire(ctx)
	two, _ := prices.Read().Acquire(ctx)

	_, err := prices.Write().TryAcquire(ctx)
	fmt.Println(one.Valid(), two.Valid(), errors.Is(err, lockkeeper.ErrHeld))
	_, _ = one.Release(ctx), two.Release(ctx)
	// Output: true true true
}

// Take all of several locks, or none.
func ExampleMultiLock() {
	sys, _, stop := start()
	defer stop()
	ctx := context.Background()

	both := lockkeeper.MultiLock(sys.Lock("anna"), sys.Lock("bert"))
	hold, _ := both.Acquire(ctx)
	_, err := sys.Lock("bert").TryAcquire(ctx)
	fmt.Println(errors.Is(err, lockkeeper.ErrHeld))
	_ = hold.Release(ctx)
	// Output: true
}

// An actor requests a lock by message. Its death would release the lock.
func ExampleRequest() {
	_, actors, stop := start()
	defer stop()
	done := make(chan struct{})
	invoices := &messages.Lock{Name: "invoices"}

	actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			lockkeeper.Request(ctx, &messages.Acquire{Lock: invoices, Wait: durationpb.New(time.Second)})
		case *messages.Acquired:
			fmt.Println("acquired", m.HoldCount)
			lockkeeper.Request(ctx, &messages.Release{Lock: invoices, HoldId: m.HoldId})
		case *messages.Released:
			fmt.Println("released")
			close(done)
		case *messages.NotAcquired, *messages.NotReleased, *messages.LeaseLost:
			fmt.Println(m)
			close(done)
		}
	}))
	<-done
	// Output:
	// acquired 1
	// released
}
