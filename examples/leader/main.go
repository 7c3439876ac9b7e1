// Leader shows the election of a leader: of all the processes of a service, one does the work that only one may do.
// When the leader stops, or loses the lock, another process takes over.
//
//	go run ./examples/leader
package main

import (
	"context"
	"fmt"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// candidate lets a process campaign until it resigns. The start and the end of its terms are
// sent to the channel.
func candidate(name string, sys *lockkeeper.System, terms chan<- string) (resign func()) {
	leader := sys.Lock("leader").Lead(func(ctx context.Context) error {
		terms <- name + " leads"
		<-ctx.Done() // here the leader would work until ctx ends
		terms <- fmt.Sprintf("%s leads no more: %v", name, context.Cause(ctx))
		return nil
	})
	return func() { demo.Check(leader(context.Background())) } // the lock is free then
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	here, stop := demo.Process(client, lockkeeper.Config{})
	defer stop()
	there, stop := demo.Process(client, lockkeeper.Config{})
	defer stop()
	terms := make(chan string, 10)

	stopAnna := candidate("anna", here, terms)
	fmt.Println(<-terms)
	stopBert := candidate("bert", there, terms)
	stopAnna()
	fmt.Println(<-terms)
	fmt.Println(<-terms)

	// Here an operator releases the lock by force. The leader is notified at once if its own process released it,
	// otherwise with the next renewal.
	_, err := there.Lock("leader").ForceRelease(context.Background())
	demo.Check(err)
	fmt.Println(<-terms)
	fmt.Println(<-terms)
	stopBert()
	fmt.Println(<-terms)
}
