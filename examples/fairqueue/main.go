// Fairqueue shows a fair lock, which is granted in order of arrival, over all processes. A plain lock prefers waiters
// in the process that holds it, which is faster.
//
//	go run ./examples/fairqueue
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// serve waits for the desk, and sends the customer's name under the lock, and thus in the order
// of the grants.
func serve(ctx context.Context, desk *lockkeeper.Lock, customer string, events chan<- string) {
	hold, err := desk.Acquire(ctx)
	if errors.Is(err, context.Canceled) {
		events <- customer + " has left"
		return
	}
	demo.Check(err)
	events <- customer + " is served"
	demo.Check(hold.Release(context.WithoutCancel(ctx)))
}

// queued waits until n requests are in the queue, over all processes.
func queued(ctx context.Context, desk *lockkeeper.Lock, n int) {
	for {
		status, err := desk.Inspect(ctx)
		demo.Check(err)
		if status.Subscribers == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	ctx := context.Background()
	var desks []*lockkeeper.Lock // the same lock, as two processes see it
	for range 2 {
		sys, stop := demo.Process(client, lockkeeper.Config{})
		defer stop()
		desks = append(desks, sys.FairLock("desk"))
	}

	hold, err := desks[0].Acquire(ctx)
	demo.Check(err)
	events := make(chan string)
	var all sync.WaitGroup
	impatient, leave := context.WithCancel(ctx)
	for i, customer := range []string{"anna", "bert", "carl", "dora", "emil", "fred"} {
		ctx := ctx
		if customer == "carl" {
			ctx = impatient
		}
		all.Go(func() { serve(ctx, desks[i%2], customer, events) })
		queued(ctx, desks[0], i+1)
		fmt.Println(customer, "comes")
	}
	leave()
	fmt.Println(<-events) // a customer that leaves delays no other
	demo.Check(hold.Release(ctx))
	for range 5 {
		fmt.Println(<-events)
	}
	all.Wait() // the last has released the lock
}
