// Cache shows a read/write lock: requests read a cached page at the same time. When the page is out of date, one
// request renews it while the others wait.
//
//	go run ./examples/cache
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// page stands for a file that all processes share, protected by the lock.
type page struct {
	text    string
	fresh   bool
	renewed int
}

// read returns the page's text, and renews it first if need be.
func read(ctx context.Context, locks *lockkeeper.ReadWrite, p *page) (text string, err error) {
	reading, err := locks.Read().Acquire(ctx)
	if err != nil {
		return "", err
	}
	if !p.fresh {
		// A reader cannot become a writer: two readers that tried would wait for each other.
		if err := reading.Release(ctx); err != nil {
			return "", err
		}
		if reading, err = renew(ctx, locks, p); err != nil {
			return "", err
		}
	}
	defer func() { err = errors.Join(err, reading.Release(context.WithoutCancel(ctx))) }()
	return p.text, nil
}

// renew makes the page fresh. It returns a read hold, so that no other request can change the page
// before the caller has read it.
func renew(ctx context.Context, locks *lockkeeper.ReadWrite, p *page) (*lockkeeper.Hold, error) {
	writing, err := locks.Write().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer writing.Release(context.WithoutCancel(ctx))
	if !p.fresh { // no other request has renewed the page meanwhile
		p.renewed++
		p.text, p.fresh = fmt.Sprintf("edition %d", p.renewed), true
	}
	// A writer may also read: the context identifies the same holder.
	return locks.Read().Acquire(writing.Context())
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	var processes []*lockkeeper.ReadWrite
	for range 2 {
		sys, stop := demo.Process(client, lockkeeper.Config{})
		defer stop()
		processes = append(processes, sys.ReadWriteLock("page"))
	}
	ctx := context.Background()
	var p page

	for range 2 {
		var requests sync.WaitGroup
		var seen sync.Map
		for i := range 50 {
			requests.Go(func() {
				text, err := read(ctx, processes[i%2], &p)
				demo.Check(err)
				seen.Store(text, true)
			})
		}
		requests.Wait()
		seen.Range(func(text, _ any) bool {
			fmt.Println("50 requests in 2 processes have read", text)
			return true
		})

		hold, err := processes[0].Write().Acquire(ctx)
		demo.Check(err)
		p.fresh = false
		demo.Check(hold.Release(ctx))
	}

	// Readers share.
	one, err := processes[0].Read().Acquire(ctx)
	demo.Check(err)
	two, err := processes[1].Read().Acquire(ctx)
	demo.Check(err)
	_, err = processes[0].Write().TryAcquire(ctx)
	fmt.Println("while two read, a writer is refused:", errors.Is(err, lockkeeper.ErrHeld))
	demo.Check(errors.Join(one.Release(ctx), two.Release(ctx)))
}
