package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	sys, err := lockkeeper.Open(ctx, cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatal(err)
	}

	// Do waits for the lock (10 s at most), runs the function, and releases the lock.
	err = sys.Lock("orders").Do(ctx, func(ctx context.Context) error {
		fmt.Println("shipping") // your work; ctx is cancelled if the lock is lost
		return nil
	}, lockkeeper.WithWait(10*time.Second))
	switch {
	case errors.Is(err, lockkeeper.ErrTimeout):
		fmt.Println("another process has the lock")
	case err != nil:
		log.Fatal(err)
	}

	// Lead runs the function while this process holds the lock. Start the program twice: one leads.
	resign := sys.Lock("cleaner").Lead(func(ctx context.Context) error {
		fmt.Println("leading")
		<-ctx.Done() // your work; ctx ends when the lock is lost, or when the program resigns
		return ctx.Err()
	})
	<-ctx.Done() // until Ctrl-C

	shutdown, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := errors.Join(resign(shutdown), sys.Close(shutdown)); err != nil {
		log.Fatal(err)
	}
	fmt.Println("released")
}
