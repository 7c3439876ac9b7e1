// Package demo is the set-up that the examples share; quickstart has its own set-up, in one file.
package demo

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
)

// URL returns the URL of the flag -redis, or of a Redis inside this process.
func URL() (url string, stop func()) {
	given := flag.String("redis", "", "`URL` of a Redis; without it, there is one inside this program")
	flag.Parse()
	if *given != "" {
		return *given, func() {}
	}
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases end by themselves
	Check(server.Start())
	return "redis://" + server.Addr() + "?protocol=2", server.Close
}

// Redis connects to the Redis of URL.
func Redis() (client rueidis.Client, stop func()) {
	url, end := URL()
	client, err := lockkeeper.Connect(url)
	Check(err)
	return client, func() {
		client.Close()
		end()
	}
}

// Process stands for a process of an application: a System in an actor system.
func Process(client rueidis.Client, config lockkeeper.Config) (sys *lockkeeper.System, stop func()) {
	sys, err := lockkeeper.New(ActorSystem(), client, config)
	Check(err)
	return sys, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		Check(sys.Close(ctx))
	}
}

// ActorSystem makes an actor system that logs nothing, since examples print their own output.
func ActorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

// Check ends the program on an error that an example does not handle.
func Check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
