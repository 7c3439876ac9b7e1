// Quickstart shows in a few seconds what Lockkeeper does. It needs nothing but Go: the Redis
// is inside the program.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	// An embedded Redis. An application connects to its own.
	redis := miniredis.NewMiniRedis()
	redis.ClockTTL(true) // keys expire
	check(redis.Start())
	defer redis.Close()
	client, err := lockkeeper.Connect("redis://" + redis.Addr() + "?protocol=2")
	check(err)
	defer client.Close()

	// A Lockkeeper in an actor system. There are two, as if this were two processes.
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
	config := lockkeeper.Config{Watchdog: 1500 * time.Millisecond} // the default of 30 s would make this a long story
	actorsHere, actorsThere := actor.NewActorSystem(quiet), actor.NewActorSystem(quiet)
	here, err := lockkeeper.New(actorsHere, client, config)
	check(err)
	defer here.Close(ctx)
	there, err := lockkeeper.New(actorsThere, client, config)
	check(err)
	defer there.Close(ctx)

	fmt.Println("A goroutine takes a lock:")
	hold, err := here.Lock("orders").Acquire(ctx)
	check(err)
	_, err = there.Lock("orders").TryAcquire(ctx)
	fmt.Println("  meanwhile another process is refused:", errors.Is(err, lockkeeper.ErrHeld))
	again, err := here.Lock("orders").Acquire(hold.Context()) // the context says who asks
	check(err)
	fmt.Println("  who has it may take it again: it is held", again.Count(), "times")
	check(again.Release(ctx))
	check(hold.Release(ctx))

	fmt.Println("Three actors ask for it, by message:")
	news := make(chan string, 3000)
	spawn := func(system *actor.ActorSystem, name string, keep bool) *actor.PID {
		return system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return &clerk{name: name, keep: keep, news: news}
		}))
	}
	tell := func(n int) {
		for range n {
			select {
			case line := <-news:
				fmt.Println(" ", line)
			case <-ctx.Done():
				log.Fatal("nothing happens any more")
			}
		}
	}
	for _, name := range []string{"anna", "bert", "carl"} {
		spawn(actorsHere, name, false)
	}
	tell(6)

	fmt.Println("A thousand actors ask for it; it is handed from one to the next without Redis:")
	began, before := time.Now(), redis.CommandCount()
	for range 1000 {
		spawn(actorsHere, "somebody", false)
	}
	for range 2000 {
		<-news
	}
	fmt.Printf("  1000 turns took %v and %d commands to Redis\n", time.Since(began).Round(time.Millisecond), redis.CommandCount()-before)

	fmt.Println("The holder dies, and an actor in another process waits:")
	dora := spawn(actorsHere, "dora", true)
	tell(1)
	spawn(actorsThere, "emil", false)
	for status := (lockkeeper.Status{}); status.Subscribers == 0; time.Sleep(time.Millisecond) {
		status, err = here.Lock("orders").Inspect(ctx)
		check(err)
	}
	actorsHere.Root.Stop(dora)
	tell(2)

	fmt.Println("Somebody deletes the key in Redis:")
	spawn(actorsHere, "fred", true)
	tell(1)
	redis.Del("orders")
	tell(1)

	fmt.Println("Another process takes the lock away by force:")
	hold, err = here.Lock("orders").Acquire(ctx)
	check(err)
	_, err = there.Lock("orders").ForceRelease(ctx)
	check(err)
	<-hold.Context().Done() // where the work would be that the lock protects
	fmt.Println("  the context of the work is cancelled:", context.Cause(hold.Context()))
}

// clerk is an actor that takes the lock when it starts, and gives it back or keeps it.
type clerk struct {
	name string
	keep bool
	news chan<- string
}

// Receive implements actor.Actor.
func (c *clerk) Receive(ctx actor.Context) {
	orders := &messages.Lock{Name: "orders"}
	switch m := ctx.Message().(type) {
	case *actor.Started:
		lockkeeper.Request(ctx, &messages.Acquire{Lock: orders}) // for this actor, until it gives it back or dies
	case *messages.Acquired:
		c.news <- c.name + " has the lock"
		if !c.keep {
			c.news <- c.name + " gives it back"
			lockkeeper.Request(ctx, &messages.Release{Lock: orders, HoldId: m.HoldId})
		}
	case *messages.Released:
		ctx.Stop(ctx.Self())
	case *messages.LeaseLost: // what the lock protects is somebody else's from now on
		c.news <- c.name + " is told: " + m.Detail
		ctx.Stop(ctx.Self())
	case *messages.NotAcquired, *messages.NotReleased:
		log.Fatal(m)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
