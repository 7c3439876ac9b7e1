// Quickstart shows Lockkeeper in a few seconds. It needs only Go: the Redis is inside the program.
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

	// An embedded Redis. An application connects to its own Redis.
	redis := miniredis.NewMiniRedis()
	redis.ClockTTL(true) // keys expire
	check(redis.Start())
	defer redis.Close()
	client, err := lockkeeper.Connect("redis://" + redis.Addr() + "?protocol=2")
	check(err)
	defer client.Close()

	// Two Systems, each in its actor system, as in two processes.
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
	config := lockkeeper.Config{Watchdog: 3 * time.Second} // the default of 30 s would make a long example
	actorsHere, actorsThere := actor.NewActorSystem(quiet), actor.NewActorSystem(quiet)
	here, err := lockkeeper.New(actorsHere, client, config)
	check(err)
	defer here.Close(ctx)
	there, err := lockkeeper.New(actorsThere, client, config)
	check(err)
	defer there.Close(ctx)

	fmt.Println("A goroutine acquires a lock:")
	hold, err := here.Lock("orders").Acquire(ctx)
	check(err)
	_, err = there.Lock("orders").TryAcquire(ctx)
	fmt.Println("  meanwhile another process is refused:", errors.Is(err, lockkeeper.ErrHeld))
	again, err := here.Lock("orders").Acquire(hold.Context()) // the context identifies the holder
	check(err)
	fmt.Println("  the holder may acquire it again: it is held", again.Count(), "times")
	check(again.Release(ctx))
	check(hold.Release(ctx))

	fmt.Println("Three actors request it, by message:")
	events := make(chan string, 3000)
	spawn := func(system *actor.ActorSystem, name string, keep bool) *actor.PID {
		return system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return &clerk{name: name, keep: keep, events: events}
		}))
	}
	printEvents := func(n int) {
		for range n {
			select {
			case line := <-events:
				fmt.Println(" ", line)
			case <-ctx.Done():
				log.Fatal("no further events")
			}
		}
	}
	for _, name := range []string{"anna", "bert", "carl"} {
		spawn(actorsHere, name, false)
	}
	printEvents(6)

	fmt.Println("A thousand actors request it; it is handed off from one to the next without Redis:")
	began, before := time.Now(), redis.CommandCount()
	for range 1000 {
		spawn(actorsHere, "another", false)
	}
	for range 2000 {
		<-events
	}
	fmt.Printf("  1000 turns took %v and %d commands to Redis\n", time.Since(began).Round(time.Millisecond), redis.CommandCount()-before)

	fmt.Println("The holder dies, and an actor in another process waits:")
	dora := spawn(actorsHere, "dora", true)
	printEvents(1)
	spawn(actorsThere, "emil", false)
	for status := (lockkeeper.Status{}); status.Subscribers == 0; time.Sleep(time.Millisecond) {
		status, err = here.Lock("orders").Inspect(ctx)
		check(err)
	}
	actorsHere.Root.Stop(dora)
	printEvents(2)

	fmt.Println("An operator deletes the key in Redis:")
	spawn(actorsHere, "fred", true)
	printEvents(1)
	redis.Del("orders")
	printEvents(1)

	fmt.Println("Another process releases the lock by force:")
	hold, err = here.Lock("orders").Acquire(ctx)
	check(err)
	_, err = there.Lock("orders").ForceRelease(ctx)
	check(err)
	<-hold.Context().Done() // here the protected work would run
	fmt.Println("  the context of the work is cancelled:", context.Cause(hold.Context()))
}

// clerk is an actor that acquires the lock when it starts, and releases or keeps it.
type clerk struct {
	name   string
	keep   bool
	events chan<- string
}

// Receive implements actor.Actor.
func (c *clerk) Receive(ctx actor.Context) {
	orders := &messages.Lock{Name: "orders"}
	switch m := ctx.Message().(type) {
	case *actor.Started:
		lockkeeper.Request(ctx, &messages.Acquire{Lock: orders}) // for this actor, until it releases the lock or dies
	case *messages.Acquired:
		c.events <- c.name + " has the lock"
		if !c.keep {
			c.events <- c.name + " releases it"
			lockkeeper.Request(ctx, &messages.Release{Lock: orders, HoldId: m.HoldId})
		}
	case *messages.Released:
		ctx.Stop(ctx.Self())
	case *messages.LeaseLost: // another holder may have the lock from now on
		c.events <- c.name + " is notified: " + m.Detail
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
