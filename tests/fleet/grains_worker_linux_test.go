package fleet_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/grains"
)

// workGrains is the main function of a worker that runs grains (a host), or sends to them (a caller). It ends with SIGTERM.
func workGrains(s settings) {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	logger := slog.New(quiet{slog.NewTextHandler(os.Stderr, nil)})
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	client, err := lockkeeper.Connect(s.redis)
	if err != nil {
		panic(err)
	}
	directory, err := grains.New(client, grains.Config{Locks: lockkeeper.Config{Watchdog: s.watchdog, Poll: 200 * time.Millisecond}})
	if err != nil {
		panic(err)
	}
	c := cluster.New(system, cluster.Configure(name, directory.Provider(), directory.Lookup(), remote.Configure("127.0.0.1", s.port),
		cluster.WithKinds(cluster.NewKind("counter", actor.PropsFromProducer(func() actor.Actor { return &counter{settings: s} })))))
	switch s.role {
	case "host":
		c.StartMember()
		report("ready", 0)
		<-terminated
		report("stopping", 0)
	case "caller":
		c.StartClient()
		report("ready", 0)
		s.call(c, terminated)
	}
	if err := directory.Leave(context.Background()); err != nil {
		panic(err)
	}
	client.Close()
	c.Remote.Shutdown(true)
}

// counter is a grain that answers with what it is sent.
type counter struct {
	settings
	grain string
}

func (c *counter) Receive(ctx actor.Context) {
	token := grains.TermOf(ctx).Token()
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.grain = cluster.GetClusterIdentity(ctx).Identity
		report("started/"+c.grain, token)
	case *actor.Stopped:
		<-time.After(c.stopping)
		report("stopped/"+c.grain, token)
	case *wrapperspb.Int64Value:
		report(fmt.Sprintf("begins/%s/%d", c.grain, token), m.Value)
		<-time.After(c.handling)
		report(fmt.Sprintf("ends/%s/%d", c.grain, token), m.Value)
		ctx.Respond(m)
	}
}

// call asks random grains, from s.rate goroutines, until it is terminated. Every second request looks the grain up. New grains
// come up all the time.
func (s settings) call(c *cluster.Cluster, terminated <-chan os.Signal) {
	done := make(chan struct{})
	var running sync.WaitGroup
	next := make(chan int64)
	go func() {
		for n := int64(1); ; n++ {
			select {
			case next <- n:
			case <-done:
				close(next)
				return
			}
		}
	}()
	for range s.rate {
		running.Go(func() {
			for n := range next {
				grain := fmt.Sprint(n/1000, ".", rand.N(s.burst))
				if n%2 == 0 {
					c.PidCache.Remove(grain, "counter")
				}
				report("sent", n)
				if _, err := c.Request(grain, "counter", wrapperspb.Int64(n)); err != nil {
					report("failed-"+strings.ReplaceAll(err.Error(), " ", "_"), n)
				} else {
					report("answered", n)
				}
			}
		})
	}
	<-terminated
	close(done)
	running.Wait()
}
