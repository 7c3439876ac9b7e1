package traffic

import (
	"math/rand/v2"

	"github.com/asynkron/protoactor-go/actor"
)

// crash is injected, and panics over a message of an actor now and then. Below 0 it
// panics over the actor's next message as well, which may be about its life cycle.
func (c *client) crash(next actor.ReceiverFunc) actor.ReceiverFunc {
	again := false // guarded by the actor: one function is made for each
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
