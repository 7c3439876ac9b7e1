// Package quiet provides an actor system that does not log, for tests and drivers.
//
//	system := quiet.ActorSystem()
//	defer system.Shutdown()
package quiet

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// ActorSystem returns an actor system that logs nothing.
func ActorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond)) // a logged dead letter keeps a goroutine for that long
}
