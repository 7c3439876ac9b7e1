// Semaphore shows a limit on concurrency: of 50 workers in two processes, at most 10 call a service
// at the same time.
//
//	go run ./examples/semaphore
package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

const permits, workers = 10, 50

// service counts its calls, and the highest number of calls at the same time.
type service struct{ calls, most, served atomic.Int64 }

func (s *service) call() {
	if now := s.calls.Add(1); now > s.most.Load() {
		s.most.Store(now)
	}
	time.Sleep(time.Millisecond)
	s.calls.Add(-1)
	s.served.Add(1)
}

// work calls the service as soon as there is a permit.
func work(ctx context.Context, sem *lockkeeper.Semaphore, s *service) error {
	if err := sem.Acquire(ctx, 1); err != nil {
		return err
	}
	// Always release the permit: it does not expire.
	defer func() { demo.Check(sem.Release(context.WithoutCancel(ctx), 1)) }()
	s.call()
	return nil
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	here, stop := demo.Process(client, lockkeeper.Config{})
	defer stop()
	there, stop := demo.Process(client, lockkeeper.Config{})
	defer stop()
	ctx := context.Background()

	// Every process may set the number of permits: the first one creates the semaphore.
	for _, process := range []*lockkeeper.System{here, there} {
		created, err := process.Semaphore("service").TrySetPermits(ctx, permits, 0)
		demo.Check(err)
		fmt.Println("the semaphore is created:", created)
	}

	var s service
	var all sync.WaitGroup
	for i := range workers {
		sem := []*lockkeeper.System{here, there}[i%2].Semaphore("service")
		all.Go(func() {
			for range 4 {
				demo.Check(work(ctx, sem, &s))
			}
		})
	}
	all.Wait()
	free, err := here.Semaphore("service").Available(ctx)
	demo.Check(err)
	fmt.Printf("%d calls were served, more than %d at the same time: %v\n", s.served.Load(), permits, s.most.Load() > permits)
	fmt.Printf("%d permits are free\n", free)
}
