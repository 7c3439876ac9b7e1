// Package embedded gives the examples a Redis without any set-up: one inside their
// own process, or a real one by its URL.
package embedded

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
)

// Redis is a client and, unless it speaks to a real server, the server behind it.
type Redis struct {
	rueidis.Client
	server *miniredis.Miniredis
}

// Open connects to the Redis of a URL. Without one it starts a Redis in this process.
func Open(url string) (*Redis, error) {
	if url != "" {
		client, err := lockkeeper.Connect(url)
		if err != nil {
			return nil, err
		}
		return &Redis{Client: client}, nil
	}
	return Start()
}

// Start starts a Redis in this process.
func Start() (*Redis, error) {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // else leases would never run out by themselves
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start an embedded Redis: %w", err)
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{server.Addr()},
		ForceSingleClient: true,
		AlwaysRESP2:       true, // as the embedded Redis speaks it
		DisableCache:      true, // it cannot do client-side caching
		DisableRetry:      true, // Lockkeeper knows better when to try again
	})
	if err != nil {
		server.Close()
		return nil, fmt.Errorf("connect to the embedded Redis: %w", err)
	}
	return &Redis{Client: client, server: server}, nil
}

// Embedded reports whether the server is inside this process.
func (r *Redis) Embedded() bool { return r.server != nil }

// Fail makes an embedded Redis refuse every command, like a server that has just
// been started again and still loads its data; Recover ends that.
func (r *Redis) Fail() { r.server.SetError("LOADING Redis is loading the dataset in memory") }

// Recover lets an embedded Redis serve commands again.
func (r *Redis) Recover() { r.server.SetError("") }

// Close closes the client, and stops an embedded server.
func (r *Redis) Close() {
	r.Client.Close()
	if r.server != nil {
		r.server.Close()
	}
}
