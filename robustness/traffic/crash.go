package traffic

import (
	"math/rand/v2"

	"github.com/asynkron/protoactor-go/actor"
)

// crash is injected middleware that panics at random messages of an actor. If crashes is below
// 0, it panics at the actor's next message as well, which may be a life cycle message.
func (c *client) crash(next actor.ReceiverFunc) actor.ReceiverFunc {
	again := false // each actor has its own
	return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		n := c.crashes.Load()
		second := again && n < 0
		again = false
		if second || n != 0 && rand.Int64N(max(n, -n)) == 0 {
			again = n < 0 && !second
			panic("a crash on demand")
		}
		next(ctx, envelope)
	}
}
