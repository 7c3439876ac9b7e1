package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// biller holds a lock itself, from message to message. If it stops or is restarted, the lock is released.
type biller struct{ invoices lockkeeper.Claim }

var invoices = &messages.Acquire{Lock: &messages.Lock{Name: "invoices"}, Wait: durationpb.New(10 * time.Second)}

func (b *biller) Receive(ctx actor.Context) {
	switch b.invoices.Handle(ctx) { // with every message
	case lockkeeper.ClaimGranted:
		fmt.Println("billing") // your work, or a message to start it
		b.invoices.Release(ctx)
	case lockkeeper.ClaimLost, lockkeeper.ClaimRefused, lockkeeper.ClaimReleased:
		fmt.Println("billed:", b.invoices.Err()) // <nil>, ErrTimeout, ErrLost: another owner may hold the lock, …
		ctx.Stop(ctx.Self())
	}
	if _, is := ctx.Message().(*actor.Started); is {
		b.invoices.Acquire(ctx, invoices)
	}
}

type ship struct{ order string }
type shipped struct{ err error }

// shipper starts a child, which does the blocking work under a lock and responds to the sender.
type shipper struct{ sys *lockkeeper.System }

func (s *shipper) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*ship); ok {
		s.sys.Lock("order:"+m.order).Respond(ctx, func(ctx context.Context) error {
			fmt.Println("shipping") // your work; ctx is cancelled if the lock is lost or the actor stops
			return nil
		}, func(err error) any { return shipped{err} }, lockkeeper.WithWait(10*time.Second))
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	system := actor.NewActorSystem()
	sys, err := lockkeeper.Open(ctx, cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379"),
		lockkeeper.WithActorSystem(system))
	if err != nil {
		log.Fatal(err)
	}

	ships := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &shipper{sys} }))
	answer, err := lockkeeper.Ask(ctx, system.Root, ships, &ship{"1001"})
	fmt.Println("answer:", answer, err)

	bills := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &biller{} }))
	_, _ = lockkeeper.Ask(ctx, system.Root, bills, "wait") // it does not answer: Ask returns when it has stopped

	_ = system.Root.StopFuture(ships).Wait()
	if err := sys.Close(ctx); err != nil { // after the actors that use locks
		log.Fatal(err)
	}
}
