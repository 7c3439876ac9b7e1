// Package lockkeeper gives Go distributed locks on Redis, as supervised proto.actor
// actors, wire-compatible with Redisson.
//
// Actors speak to the guardian with the messages of package messages; goroutines
// use the blocking face of this package:
//
//	client, err := lockkeeper.Connect("redis://127.0.0.1:6379")
//	sys, err := lockkeeper.New(actorSystem, client, lockkeeper.Config{})
//	defer sys.Close(ctx)
//
//	hold, err := sys.Lock("orders").Acquire(ctx)
//	if err != nil { … }
//	defer hold.Release(context.WithoutCancel(ctx))
//	work(hold.Context()) // cancelled, with the cause, when the lock is lost
package lockkeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// System is Lockkeeper inside one actor system, on one Redis.
type System struct {
	runtime *actors.Runtime
}

var extensionID = extensions.NextExtensionID()

// ExtensionID makes a System an extension of its actor system.
func (s *System) ExtensionID() extensions.ExtensionID { return extensionID }

// Connect opens a client for a Redis URL, set up as suits Lockkeeper; see
// redisio.Connect. The error is ErrInvalid if the URL is wrong, ErrUnavailable if
// there is no answer, and ErrRejected if Redis turns the client away.
func Connect(url string) (rueidis.Client, error) { return connected(redisio.Connect(url)) }

// ConnectLater is Connect for a single server that may be down. The client connects when
// it is first used after the server has come up; until then, requests wait or fail with
// ErrUnavailable. So a RedLock can be started while a minority of its servers is down.
// ConnectLater takes up to 5 s (dial_timeout in the URL) if the server does not answer.
// It is not for a cluster or for Sentinel. The error is ErrInvalid or ErrRejected.
func ConnectLater(url string) (rueidis.Client, error) { return connected(redisio.ConnectLater(url)) }

func connected(client rueidis.Client, err error) (rueidis.Client, error) {
	if err == nil {
		return client, nil
	}
	kind := ErrInvalid
	if answer := (*redisio.Error)(nil); errors.As(err, &answer) {
		if kind = ErrRejected; answer.Transient {
			kind = ErrUnavailable
		}
	}
	return nil, fmt.Errorf("lockkeeper: connect: %w: %w", kind, err)
}

// New starts Lockkeeper inside an actor system and registers it there as an
// extension. The caller closes the client, after the System; TLS, ACL user, database
// number and so on are the client's own options.
//
// With proto.actor's remote, start the remote first: the guardian's address is
// fixed when New is called.
//
// The error is ErrInvalid if system or client is nil, or the configuration cannot work.
func New(system *actor.ActorSystem, client rueidis.Client, config Config) (*System, error) {
	if system == nil {
		return nil, fmt.Errorf("lockkeeper: new: %w: the actor system is nil", ErrInvalid)
	}
	if client == nil {
		return nil, fmt.Errorf("lockkeeper: new: %w: the Redis client is nil", ErrInvalid)
	}
	config = config.withDefaults(system)
	if err := config.validate(); err != nil {
		return nil, err
	}
	s := &System{runtime: actors.Start(system, client, config.actors(client.Mode() == rueidis.ClientModeCluster))}
	system.Extensions.Register(s)
	return s, nil
}

// From returns the System that was started last in an actor system, even if it is closed,
// or nil if there is none. The methods of a nil System do not panic: they fail with
// ErrInvalid, and so do those of its locks.
func From(system *actor.ActorSystem) *System {
	s, _ := system.Extensions.Get(extensionID).(*System)
	return s
}

// Guardian is the address for the requests of package messages. After Close there is
// nobody: a request becomes a dead letter, and proto.actor answers its sender with a
// DeadLetterResponse; the same goes for a nil System.
func (s *System) Guardian() *actor.PID {
	if s.inner() == nil {
		return actor.NewPID("nonhost", "no Lockkeeper system")
	}
	return s.runtime.Guardian()
}

// inner is nil if there is no System.
func (s *System) inner() *actors.Runtime {
	if s == nil {
		return nil
	}
	return s.runtime
}

// ID is the client part of the owner fields that this System leaves in Redis, a UUID.
// MultiLocks and RedLocks have UUIDs of their own.
func (s *System) ID() string {
	if s.inner() == nil {
		return ""
	}
	return s.runtime.ID()
}

// Close ends the System: requests that wait are refused with ErrClosed, holders
// lose their locks with ErrClosed as the cause, the locks are released in Redis, and
// the actors and goroutines end. If ctx ends first, what Redis has not confirmed is left
// to expire, and the error says so; while Redis does not answer, a ctx that never ends
// makes Close wait for twice the longest lease. It returns an error too if a release has
// failed for good, as when the Redis client is closed before the System. Later calls are refused with ErrClosed; see
// Guardian for later messages. Close may be called more than once.
func (s *System) Close(ctx context.Context) error {
	if s.inner() == nil {
		return fmt.Errorf("lockkeeper: close: %w: the System is nil", ErrInvalid)
	}
	if s.runtime.Close(ctx.Done()) {
		return nil
	}
	const text = "lockkeeper: closed before Redis confirmed every release; what is left expires by itself"
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf(text+": %w", cause)
	}
	return errors.New(text + " (its Redis client was closed first, Redis refused, an earlier Close did not wait, or the guardian was stopped)")
}
