// Orders shows a lock for each order: a queue delivers an order twice, as queues may, and only
// one worker ships it.
//
//	go run ./examples/orders
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// worker ships the orders that are delivered to it. Each worker is a process.
type worker struct {
	name    string
	locks   *lockkeeper.System
	shipped *sync.Map // stands for the shop's database
}

// handle ships an order, unless it is shipped or being shipped.
func (w *worker) handle(ctx context.Context, order string, ship func(context.Context)) error {
	hold, err := w.locks.Lock("order:" + order).TryAcquire(ctx)
	if errors.Is(err, lockkeeper.ErrHeld) {
		fmt.Println(w.name, "skips order", order+": another worker is shipping it")
		return nil
	}
	if err != nil {
		return err // for example Redis is unavailable: let the queue deliver the order again
	}
	defer hold.Release(context.WithoutCancel(ctx))

	// Check under the lock: the other delivery may have come earlier.
	if _, done := w.shipped.Load(order); done {
		fmt.Println(w.name, "skips order", order+": it is shipped")
		return nil
	}
	ship(hold.Context()) // cancelled when the lock is lost
	if err := hold.Err(); err != nil {
		return err // another worker may have the order now
	}
	w.shipped.Store(order, true)
	fmt.Println(w.name, "has shipped order", order)
	return nil
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	var shipped sync.Map
	var workers []*worker
	for _, name := range []string{"anna", "bert"} {
		locks, stop := demo.Process(client, lockkeeper.Config{})
		defer stop()
		workers = append(workers, &worker{name: name, locks: locks, shipped: &shipped})
	}
	anna, bert := workers[0], workers[1]
	ctx := context.Background()
	quickly := func(context.Context) {}

	demo.Check(anna.handle(ctx, "1001", func(context.Context) {
		fmt.Println("anna is packing order 1001")
		// Meanwhile the queue delivers the order once more, to another worker, and then the next order.
		demo.Check(bert.handle(ctx, "1001", quickly))
		demo.Check(bert.handle(ctx, "1002", quickly))
	}))
	demo.Check(bert.handle(ctx, "1001", quickly))
}
