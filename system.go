// Package lockkeeper provides distributed locks, semaphores and latches on Redis. They are
// supervised proto.actor actors, and wire-compatible with Redisson.
//
// A program without actors needs this:
//
//	sys, err := lockkeeper.Open(ctx, "redis://127.0.0.1:6379") // or New, in an actor system
//	if err != nil { … }
//	defer sys.Close(context.WithoutCancel(ctx))
//
//	err = sys.Lock("orders").Do(ctx, func(ctx context.Context) error {
//		return work(ctx) // ctx is cancelled, with the cause, when the lock is lost
//	})
//
// To start, use [Open]. Use [New] with a client of [Connect] if the client is also used for other things, and with a
// client of [ConnectLater] if the server may be down.
//
// What to use for what:
//
//   - [System.Lock]: one holder at a time.
//   - [System.FencedLock]: if the store that the lock protects can refuse the write of a former holder.
//   - [System.FairLock]: if requests must be granted in their order across processes.
//   - [System.ReadWriteLock]: many long reads, few writes.
//   - [MultiLock]: several locks at once.
//   - [NewRedLock]: locks that survive the loss of a server, with three or five servers.
//   - [System.ExpirableSemaphore]: at most n at once; the permits of a dead process come back.
//   - [System.Semaphore]: at most n at once; any process may release the permits, and a dead one keeps them.
//   - [System.Latch]: waiting until a number of others are done.
//
// How to use it on a goroutine:
//
//   - [Lock.Do]: a function runs under the lock.
//   - [Lock.Acquire], [Lock.TryAcquire]: the lock is released elsewhere than it is acquired.
//   - [Lock.Lead]: a function runs in one of all processes, as long as that process holds the lock. [Lock.Elect] is the
//     same without a goroutine of its own.
//   - [Lock.Watch]: which process holds the lock, and each change; [WithNote] is a text that others see with a hold.
//
// And in an actor, which must not block:
//
//   - [Lock.Spawn], [Lock.Respond]: a function runs under the lock on another goroutine, and the actor or the sender
//     of its message gets the result.
//   - [Lock.LeaderProps]: an actor runs in one of all processes.
//   - [System.Singleton]: such an actor, with proxies that forward messages to it from all processes.
//   - [Claim]: the actor owns the lock itself, and is notified of grants and losses.
//   - [Request]: the same without a Claim, and for semaphores and latches: the actor gets the messages of package
//     messages; [ErrorOf] returns the error in an answer. [Ask] sends a message to an actor from a goroutine.
//
// Module grains runs the grains of proto.actor's cluster, each at most once.
//
// The terms are defined in [docs/glossary.md].
//
// [docs/glossary.md]: https://github.com/lockkeeper-go/lockkeeper/blob/main/docs/glossary.md
package lockkeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/whereabouts"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// System runs Lockkeeper inside one actor system, on one Redis.
type System struct {
	runtime *actors.Runtime
	// owned is what Open has created for the System; nil if New was called.
	owned *openedResources
	// actors is the actor system, for singletons.
	actors *actor.ActorSystem
	// host runs the host's code.
	host *host.Host
	// board reads and writes the whereabouts of singletons in Redis.
	board *whereabouts.Board
}

// GuardianName is the id of the guardian's PID, by which other nodes can address it over proto.actor's remote:
// actor.NewPID(address, lockkeeper.GuardianName). If there are several Systems in one actor system, the first one has
// the name.
const GuardianName = request.GuardianName

var extensionID = extensions.NextExtensionID()

// ExtensionID makes a System an extension of its actor system.
func (s *System) ExtensionID() extensions.ExtensionID { return extensionID }

// Connect opens a client for New, from a Redis URL and with the settings that suit Lockkeeper; see redisio.Connect. The
// error is ErrInvalid if the URL is wrong, ErrUnavailable if Redis does not answer or the file of option password_file
// cannot be read, and ErrRejected if Redis refuses the client.
func Connect(url string) (rueidis.Client, error) {
	client, err := redisio.Connect(url)
	return connectResult("connect", client, err)
}

// ConnectLater is like Connect, for a single server that may be down. The client connects
// when it is first used after the server has come up; until then, requests wait or fail with
// ErrUnavailable. So a service starts before its Redis, and a RedLock while a minority of its servers is down.
// ConnectLater takes up to 5 s (dial_timeout in the URL) if the server does not answer. It
// supports neither clusters nor Sentinel. The error is ErrInvalid or ErrRejected, or ErrUnavailable if the
// file of option password_file cannot be read.
func ConnectLater(url string) (rueidis.Client, error) {
	client, err := redisio.ConnectLater(url)
	return connectResult("connect", client, err)
}

// connectResult returns the client, or the error of the package for err.
func connectResult(op string, client rueidis.Client, err error) (rueidis.Client, error) {
	if err == nil {
		return client, nil
	}
	kind := ErrInvalid
	if answer := (*redisio.Error)(nil); errors.As(err, &answer) {
		if kind = ErrRejected; answer.Transient {
			kind = ErrUnavailable
		}
	}
	return nil, fmt.Errorf("lockkeeper: %s: %w: %w", op, kind, err)
}

// New starts Lockkeeper inside an actor system and registers it there as an extension. Open does the
// same for a program that has neither an actor system nor a Redis client. TLS,
// ACL user, database number and so on are options of the client. The caller closes the
// client, after the System.
//
// With proto.actor's remote, start the remote first, since the guardian's address is fixed when New is called.
//
// The error is ErrInvalid if system or client is nil, or if config is not valid. With ShardedAuto, New
// asks a cluster whether it supports sharded pub/sub: the error is ErrUnavailable if no server answers
// within Config.CallTimeout, and ErrRejected if Redis refuses to answer.
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
	if config.OneTokenCounter && client.Mode() == rueidis.ClientModeCluster {
		return nil, fmt.Errorf("lockkeeper: config: %w: OneTokenCounter is not for a cluster, "+
			"whose servers could not draw a token and take the lock in one step", ErrInvalid)
	}
	if config.Linger > 0 && client.Mode() == rueidis.ClientModeCluster {
		return nil, fmt.Errorf("lockkeeper: config: %w: Linger is not for a cluster, whose processes do not ask each other for locks", ErrInvalid)
	}
	sharded, err := config.shards(client)
	if err != nil {
		return nil, err
	}
	blind := client.Mode() == rueidis.ClientModeCluster && !sharded
	s := &System{
		runtime: actors.Start(system, client, config.actors(sharded, blind)),
		actors:  system,
		host:    host.New(system, config.Logger),
		board:   whereabouts.New(client, config.CallTimeout, config.Watchdog+keepWhereabouts, config.tokenCounter()),
	}
	system.Extensions.Register(s)
	return s, nil
}

// From returns the System that was started last in an actor system, even if it is closed, or
// nil if there is none. The methods of a nil System and of its locks fail with ErrInvalid; they
// do not panic.
func From(system *actor.ActorSystem) *System {
	if system == nil {
		return nil
	}
	s, _ := system.Extensions.Get(extensionID).(*System)
	return s
}

// Guardian returns the address for the requests of package messages. After Close, and for a nil System, a request
// becomes a dead letter, and proto.actor answers its sender with a DeadLetterResponse, unless another System in the
// actor system has the name by then.
func (s *System) Guardian() *actor.PID {
	if s.inner() == nil {
		return actor.NewPID("nonhost", "no Lockkeeper system")
	}
	return s.runtime.Guardian()
}

// inner returns the runtime, or nil for a nil System.
func (s *System) inner() *actors.Runtime {
	if s == nil {
		return nil
	}
	return s.runtime
}

// ID returns the client part of the owner fields that this System writes to Redis, a UUID.
// MultiLocks and RedLocks have UUIDs of their own, whose first 18 characters are the same.
func (s *System) ID() string {
	if s.inner() == nil {
		return ""
	}
	return s.runtime.ID()
}

// Close ends the System. It refuses waiting requests with ErrClosed, cancels the contexts of all
// holds with ErrClosed as a cause, releases the locks in Redis, and stops the actors and
// goroutines. Later calls fail with ErrClosed; see Guardian for later messages. Close may be
// called more than once.
//
// If ctx ends before Redis has confirmed every release, Close returns an error. Locks and expirable permits whose
// release Redis has not confirmed are free when their leases end. Permits of a Semaphore whose release Redis has not
// confirmed may stay taken, and count-downs of a Latch may be missing: the error mentions this, and the log names them.
// Permits of a Semaphore that the program has not released stay taken in any case. If ctx never ends and Redis does not
// answer, Close returns after at most twice the longest lease, five Config.CallTimeout and 3 s. Close also returns an
// error if a release cannot succeed, for instance because the Redis client was closed before the System; the error
// wraps ErrRejected if Redis rejects a release or a withdrawal.
//
// Close also closes the client and the actor system if Open has created them. If ctx ends first, they are closed in the
// background, when the calls to Redis in progress have ended.
func (s *System) Close(ctx context.Context) error {
	if s.inner() == nil {
		return fmt.Errorf("lockkeeper: close: %w: the System is nil", ErrInvalid)
	}
	if ctx == nil {
		return fmt.Errorf("lockkeeper: close: %w: %w", ErrInvalid, errNoContext) // the System stays open
	}
	complete := s.runtime.Close(ctx.Done())
	s.board.Close(ctx.Done())
	if s.owned != nil {
		s.owned.closeAfter(ctx, s.runtime.Ended())
	}
	if complete {
		return nil
	}
	text := "lockkeeper: closed before Redis confirmed every release: " + s.unreleased()
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w", text, cause)
	}
	if rejection := s.runtime.Observer().Rejection(); rejection != nil {
		return fmt.Errorf("%s: %w: %w", text, ErrRejected, rejection)
	}
	return errors.New(text + " (Redis did not answer or refused, the Redis client was closed first, " +
		"an earlier Close did not wait, or the guardian was stopped)")
}

// unreleased describes what happens to locks and permits that were not released.
func (s *System) unreleased() string {
	text := "locks and expirable permits are free when their leases end"
	permits, counts := s.runtime.Forgotten()
	if permits {
		text += "; permits of a semaphore may stay taken until AddPermits adds them"
	}
	if counts {
		text += "; count-downs of a latch may be missing"
	}
	return text
}
