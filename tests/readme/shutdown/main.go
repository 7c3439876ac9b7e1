package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
)

var errShutdown = errors.New("the service shuts down")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	system := actor.NewActorSystem()
	sys, err := lockkeeper.Open(ctx, cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379"),
		lockkeeper.WithActorSystem(system))
	if err != nil {
		log.Fatal(err)
	}

	resign := sys.Lock("cleaner").Lead(func(ctx context.Context) error {
		fmt.Println("leading")
		<-ctx.Done()
		return ctx.Err()
	})
	actors := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {})) // yours, which use locks
	base, end := context.WithCancelCause(context.Background())               // of all requests by HTTP
	defer end(nil)
	server := &http.Server{
		Addr:        "127.0.0.1:0", // ":8080"
		BaseContext: func(net.Listener) context.Context { return base },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			work := func(ctx context.Context) error { return nil } // returns context.Cause(ctx) when ctx ends
			if err := sys.Lock("orders").Do(r.Context(), work, lockkeeper.WithWait(2*time.Second)); err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}),
	}
	go func() { _ = server.ListenAndServe() }()
	<-ctx.Done() // SIGTERM, or Ctrl-C

	// 1. Leaders and candidates of singletons, so that other processes take over. The release takes up to 5 s.
	within(6*time.Second, resign) // and StopFuture for LeaderProps and candidates

	// 2. Requests by HTTP. The second time, the functions of Do end, with errShutdown as the cause.
	if !within(4*time.Second, server.Shutdown) {
		end(errShutdown)
		within(4*time.Second, server.Shutdown)
	}

	// 3. Actors that use locks, and proxies: this ends the functions of Respond. Wait gives up after 10 s.
	_ = system.Root.StopFuture(actors).Wait()

	// 4. What is left is released. Work that still runs has lost its lock then.
	within(5*time.Second, sys.Close) // with grains, directory.Leave

	// 5. proto.actor: a remote drops answers that are not sent yet.
	time.Sleep(100 * time.Millisecond) // with a remote; then its Shutdown(false)
	system.Shutdown()
	fmt.Println("closed")
}

// within calls a step of the shutdown, logs its error, and reports whether there was none.
func within(d time.Duration, step func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	err := step(ctx)
	if err != nil {
		log.Print(err)
	}
	return err == nil
}
