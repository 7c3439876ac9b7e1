// Fairqueue shows a fair lock: it is granted in the order in which it was asked for, over all
// processes. A plain lock prefers waiters in the process that has it, which is faster.
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

// serve waits for the desk, and says who has it. It says so under the lock, and thus in the
// order of the grants.
func serve(ctx context.Context, desk *lockkeeper.Lock, who string, said chan<- string) {
	hold, err := desk.Acquire(ctx)
	if errors.Is(err, context.Canceled) {
		said <- who + " has left"
		return
	}
	demo.Check(err)
	said <- who + " is served"
	demo.Check(hold.Release(context.WithoutCancel(ctx)))
}

// queued waits until so many stand in the queue, over all processes.
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
	said := make(chan string)
	var all sync.WaitGroup
	impatient, leave := context.WithCancel(ctx)
	for i, who := range []string{"anna", "bert", "carl", "dora", "emil", "fred"} {
		ctx := ctx
		if who == "carl" {
			ctx = impatient
		}
		all.Go(func() { serve(ctx, desks[i%2], who, said) })
		queued(ctx, desks[0], i+1)
		fmt.Println(who, "comes")
	}
	leave()
	fmt.Println(<-said) // who leaves holds up nobody
	demo.Check(hold.Release(ctx))
	for range 5 {
		fmt.Println(<-said)
	}
	all.Wait() // the last has given the lock back
}
