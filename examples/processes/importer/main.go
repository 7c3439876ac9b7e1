// Importer shows a singleton: an actor that exists once in several processes. It imports rows. One process is stopped, and
// the importer moves to another one; that one is killed, and it moves again.
//
//	go run -C examples/importer .
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
)

func main() {
	log.SetFlags(0)
	url := flag.String("redis", "", "`URL` of a Redis; without it, there is one inside this program")
	name := flag.String("candidate", "", "run a process that may have the importer, of this `name`")
	flag.Parse()
	switch {
	case *name != "":
		check(candidate(*url, *name))
	default:
		if *url == "" {
			server := miniredis.NewMiniRedis()
			server.ClockTTL(true) // leases end by themselves
			check(server.Start())
			defer server.Close()
			*url = "redis://" + server.Addr() + "?protocol=2"
		}
		check(tour(*url))
	}
}

// node connects this process to the others. The remote is started first, so that all actors have an address.
func node(ctx context.Context, url string) (system *actor.ActorSystem, locks *lockkeeper.System, leave func(), err error) {
	system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	network := remote.NewRemote(system, remote.Configure("127.0.0.1", 0))
	network.Start()
	// The importer of a killed process is missed for as long as Watchdog, so that is short here.
	locks, err = lockkeeper.Open(ctx, url, lockkeeper.WithActorSystem(system), lockkeeper.WithConfig(lockkeeper.Config{Watchdog: 2 * time.Second}))
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
		// Here it would write the row to a database, with the fencing token of lockkeeper.HoldFrom(i.term).
		ctx.Respond(wrapperspb.String(i.process + " has imported " + row.Value))
	}
}

// candidate runs a process that may have the importer, until it gets SIGTERM, or the process that has started it ends.
func candidate(url, name string) error {
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	system, locks, leave, err := node(context.Background(), url)
	if err != nil {
		return err
	}
	defer leave()
	candidate := system.Root.Spawn(locks.Singleton("importer").Props(func(term context.Context) *actor.Props {
		return actor.PropsFromProducer(func() actor.Actor { return &importer{name, term} })
	}))
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
			check(err)
			fmt.Println(answer.(*wrapperspb.StringValue).Value)
			return
		}
	}

	north, err := start(url, "north")
	if err != nil {
		return err
	}
	defer north.end()
	send("row 1")
	south, err := start(url, "south")
	if err != nil {
		return err
	}
	defer south.end()
	send("row 2")

	fmt.Println("north is stopped")
	check(north.end())
	send("row 3")

	north, err = start(url, "north")
	if err != nil {
		return err
	}
	defer north.end()
	fmt.Println("south is killed")
	check(south.Process.Kill())
	send("row 4")
	return nil
}

// process is a candidate's.
type process struct{ *exec.Cmd }

func start(url, name string) (*process, error) {
	p := &process{Cmd: exec.Command(os.Args[0], "-redis", url, "-candidate", name)}
	p.Stderr = os.Stderr
	if _, err := p.StdinPipe(); err != nil { // which ends with this process
		return nil, err
	}
	return p, p.Start()
}

// end ends a process in good order.
func (p *process) end() error {
	if p.ProcessState != nil {
		return nil // it has ended
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil && p.ProcessState.ExitCode() >= 0 {
		return err
	}
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
