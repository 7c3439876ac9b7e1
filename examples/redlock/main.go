// Redlock shows a lock on the majority of three independent Redis servers: the lock survives the loss of one server.
//
//	go run ./examples/redlock
//
// The program starts three servers of its own, for which redis-server must be installed (build/need.sh redis-server).
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// A server that has just started may have lost locks: it has no vote until the process has watched it for the time of
// the watchdog. The default of 30 s would make a long example.
const watchdog = 2 * time.Second

// join starts a process that uses the lock: it has a System on each server.
func join(servers []*server) (lock *lockkeeper.Lock, leave func()) {
	var systems []*lockkeeper.System
	var clients []rueidis.Client
	for _, s := range servers {
		client, err := lockkeeper.ConnectLater(s.url) // the server may be down
		demo.Check(err)
		sys, err := lockkeeper.New(demo.ActorSystem(), client, lockkeeper.Config{Watchdog: watchdog})
		demo.Check(err)
		systems, clients = append(systems, sys), append(clients, client)
	}
	red, err := lockkeeper.NewRedLock(systems...)
	demo.Check(err)
	return red.Lock("till"), func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for i, sys := range systems {
			_ = sys.Close(ctx) // locks on dead servers expire
			clients[i].Close()
		}
	}
}

func main() {
	var servers []*server
	for range 3 {
		s := startServer()
		defer s.kill()
		servers = append(servers, s)
	}
	ctx := context.Background()
	anna, leave := join(servers)
	defer leave()
	bert, leave := join(servers)
	defer leave()

	hold, err := anna.Acquire(ctx) // granted when the servers have a vote
	demo.Check(err)
	fmt.Println("anna has the lock on 3 servers")
	_, err = bert.TryAcquire(ctx)
	fmt.Println("bert is refused:", errors.Is(err, lockkeeper.ErrHeld))

	servers[0].kill()
	demo.Check(hold.Ensure(ctx, watchdog*3/4)) // renewed on the others
	fmt.Println("one server is killed: anna's lease is renewed on the other 2")
	demo.Check(hold.Release(ctx))

	hold, err = bert.Acquire(ctx)
	demo.Check(err)
	fmt.Println("anna releases it, and bert is granted it")

	servers[1].kill()
	<-hold.Context().Done() // no majority, no renewal
	fmt.Println("a second one is killed: bert is notified:", errors.Is(context.Cause(hold.Context()), lockkeeper.ErrLost))
	_, err = anna.Acquire(ctx, lockkeeper.WithWait(watchdog))
	fmt.Println("anna does not get it either:", errors.Is(err, lockkeeper.ErrUnavailable) || errors.Is(err, lockkeeper.ErrTimeout))
}

// server is a redis-server that keeps nothing on disk.
type server struct {
	url     string
	process *exec.Cmd
}

func startServer() *server {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // to find a free port
	demo.Check(err)
	address := listener.Addr().String()
	demo.Check(listener.Close())
	port := address[strings.LastIndex(address, ":")+1:]
	s := &server{"redis://" + address,
		exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", os.TempDir())}
	demo.Check(s.process.Start())
	return s
}

// kill kills a server, whose data is lost. It may be killed already.
func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}
