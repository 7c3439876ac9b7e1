// Leader shows the election of a leader: of all the processes of a service, one does what
// only one may do. When it stops, or loses the lock, another one takes over.
//
//	go run ./examples/leader
package main

import (
	"context"
	"fmt"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// candidate has a process of that name campaign until it resigns. Its terms are sent to the
// channel.
func candidate(name string, sys *lockkeeper.System, terms chan<- string) (resign func()) {
	leader := sys.Lock("leader").Lead(func(ctx context.Context) error {
		terms <- name + " leads"
		<-ctx.Done() // where the leader's work would be; it ends with this context
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

	// Whoever loses the lock is told at once if it is the same process, and else at the next
	// renewal. Here an operator takes it away.
	_, err := there.Lock("leader").ForceRelease(context.Background())
	demo.Check(err)
	fmt.Println(<-terms)
	fmt.Println(<-terms)
	stopBert()
	fmt.Println(<-terms)
}
