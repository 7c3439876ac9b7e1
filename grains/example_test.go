package grains_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/grains"
)

// A grain is an actor like any other. There is at most one with its identity in all processes.
type account struct{ balance int64 }

func (a *account) Receive(ctx actor.Context) {
	if amount, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
		a.balance += amount.Value
		ctx.Respond(wrapperspb.Int64(a.balance))
	}
}

func Example() {
	client, err := lockkeeper.Connect("redis://127.0.0.1:6379")
	if err != nil {
		log.Fatal(err)
	}
	directory, err := grains.New(client, grains.Config{})
	if err != nil {
		log.Fatal(err)
	}
	kind := cluster.NewKind("account", actor.PropsFromProducer(func() actor.Actor { return &account{} }))
	bank := cluster.New(actor.NewActorSystem(), cluster.Configure("bank", directory.Provider(), directory.Lookup(),
		remote.Configure("127.0.0.1", 0), cluster.WithKinds(kind)))
	bank.StartMember()

	balance, err := bank.Request("1001", "account", wrapperspb.Int64(10))
	fmt.Println(balance, err)

	if err := directory.Leave(context.Background()); err != nil {
		log.Fatal(err)
	}
	bank.Shutdown(true)
	client.Close()
}
