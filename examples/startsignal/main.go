// Startsignal shows two latches: runners in several processes report that they are ready, and
// start when the signal comes.
//
//	go run ./examples/startsignal
package main

import (
	"context"
	"fmt"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// run is a runner that gets ready, waits for the signal, and runs.
func run(ctx context.Context, sys *lockkeeper.System, name string, ran chan<- string) {
	// A runner that gets ready again, for example after a crash, counts once.
	demo.Check(sys.Latch("ready").CountDownOnce(ctx, name))
	demo.Check(sys.Latch("ready").CountDownOnce(ctx, name))
	demo.Check(sys.Latch("start").Wait(ctx))
	ran <- name
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	here, stop := demo.Process(client, lockkeeper.Config{})
	defer stop()
	there, stop := demo.Process(client, lockkeeper.Config{})
	defer stop()
	ctx, ran := context.Background(), make(chan string)

	ready, start := here.Latch("ready"), here.Latch("start")
	_, err := start.TrySetCount(ctx, 1)
	demo.Check(err)
	_, err = ready.TrySetCount(ctx, 4)
	demo.Check(err)

	go run(ctx, here, "anna", ran)
	go run(ctx, there, "bert", ran)
	go run(ctx, here, "carl", ran)
	missing, err := ready.Count(ctx)
	demo.Check(err)
	fmt.Println("some are missing:", missing > 0)
	go run(ctx, there, "dora", ran)
	demo.Check(ready.Wait(ctx))
	fmt.Println("all are ready")
	select {
	case name := <-ran:
		fmt.Println(name, "did not wait")
	default:
		demo.Check(start.CountDown(ctx))
	}
	for range 4 {
		<-ran
	}
	fmt.Println("all have run")
}
