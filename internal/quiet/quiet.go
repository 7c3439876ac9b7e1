// Package quiet gives programs an actor system that leaves the talking to them.
package quiet

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// ActorSystem makes an actor system that logs nothing. An application would rather give
// it a logger of its own.
func ActorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond)) // a logged dead letter keeps a goroutine for that long
}
