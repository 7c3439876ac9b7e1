// Importer shows a singleton: an actor that exists once in several processes. It imports rows. One process is stopped,
// and the importer moves to another process; that process is killed, and the importer moves again.
//
//	go run -C examples/processes/importer .
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/processes/internal/process"
)

func main() { process.Main(tour, candidate) }

// node connects this process to the others. The remote is started first, so that all actors have an address.
func node(ctx context.Context, url string) (system *actor.ActorSystem, locks *lockkeeper.System, leave func(), err error) {
	system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	network := remote.NewRemote(system, remote.Configure("127.0.0.1", 0))
	network.Start()
	// The importer of a killed process is missing for as long as Watchdog, so Watchdog is short here.
	locks, err = lockkeeper.Open(ctx, url,
		lockkeeper.WithActorSystem(system),
		lockkeeper.WithConfig(lockkeeper.Config{Watchdog: 2 * time.Second}),
	)
	return system, locks, func() {
		_ = locks.Close(ctx)
		time.Sleep(100 * time.Millisecond) // a remote that is shut down drops the last answers
		network.Shutdown(false)            // a graceful one waits for the connection to a killed process
	}, err
}

// importer is the actor that exists once.
type importer struct {
	process string
	term    context.Context
}

func (i *importer) Receive(ctx actor.Context) {
	if row, ok := ctx.Message().(*wrapperspb.StringValue); ok {
		// Here the importer would write the row to a database, with the fencing token of lockkeeper.HoldFrom(i.term).
		ctx.Respond(wrapperspb.String(i.process + " has imported " + row.Value))
	}
}

// candidate is a process that may have the importer, until it is terminated.
func candidate(terminated context.Context, url, name string) error {
	system, locks, leave, err := node(context.Background(), url)
	if err != nil {
		return err
	}
	defer leave()
	candidate := system.Root.Spawn(locks.Singleton("importer").Props(func(term context.Context) *actor.Props {
		return actor.PropsFromProducer(func() actor.Actor { return &importer{name, term} })
	}))
	fmt.Println("ready")
	<-terminated.Done()
	return system.Root.StopFuture(candidate).Wait() // the importer has stopped then, and may start elsewhere
}

// tour starts the other processes, and sends rows to the importer, wherever it is.
func tour(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	system, locks, leave, err := node(ctx, url)
	if err != nil {
		return err
	}
	defer leave()
	rows := system.Root.Spawn(locks.Singleton("importer").Proxy())
	defer func() { _ = system.Root.StopFuture(rows).Wait() }()
	send := func(row string) {
		for {
			answer, err := lockkeeper.Ask(ctx, system.Root, rows, wrapperspb.String(row))
			if errors.Is(err, actor.ErrDeadLetter) {
				continue // the row may be imported or not: the import must be safe to repeat
			}
			process.Check(err)
			fmt.Println(answer.(*wrapperspb.StringValue).Value)
			return
		}
	}

	north, err := process.Start(url, "north")
	if err != nil {
		return err
	}
	defer north.End()
	send("row 1")
	south, err := process.Start(url, "south")
	if err != nil {
		return err
	}
	defer south.End()
	send("row 2")

	fmt.Println("north is stopped")
	process.Check(north.End())
	send("row 3")

	north, err = process.Start(url, "north")
	if err != nil {
		return err
	}
	defer north.End()
	fmt.Println("south is killed")
	process.Check(south.Process.Kill())
	send("row 4")
	return nil
}
