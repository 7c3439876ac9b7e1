package main

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// clerk is an actor that asks for the lock when it starts, and stops when it has
// it no more.
type clerk struct {
	process *process
	name    string // "" is one of the crowd, of whom nothing is told
	// then is what it does when it is given the lock.
	then func(c *clerk, ctx actor.Context, m *messages.Acquired)
	// hold names what it was granted, so that it never gives back anything else.
	hold string
}

// workDone tells a clerk to give the lock back.
type workDone struct{}

// Receive implements actor.Actor.
func (c *clerk) Receive(ctx actor.Context) {
	s := c.process.story
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.ask(ctx)
	case *messages.Acquired:
		s.granted(c.name, int(m.HoldCount))
		c.hold = m.HoldId
		c.then(c, ctx, m)
	case workDone:
		c.giveBack(ctx)
	case *messages.Released:
		if m.HoldCount == 0 {
			ctx.Stop(ctx.Self())
		}
	case *messages.LeaseLost:
		// Whatever the lock protects is not this actor's any more.
		s.lost(c.name, "is told that it is lost: "+m.Detail)
		ctx.Stop(ctx.Self())
	case *messages.NotAcquired:
		s.try(fmt.Errorf("%s does not get the lock: %s", c.name, m.Detail))
	case *messages.NotReleased:
		s.try(fmt.Errorf("%s cannot give the lock back: %s", c.name, m.Detail))
	}
	if m, ok := ctx.Message().(proto.Message); ok {
		s.heard <- event{c.name, m}
	}
}

// ask asks for the lock. The owner is the sender, and so this actor; with no lease
// and no wait named, the lease is renewed until the release, and the wait has no end.
func (c *clerk) ask(ctx actor.Context) {
	c.process.story.say(c.name, "asks for it")
	ctx.Request(c.process.locks.Guardian(), &messages.Acquire{Lock: theLock})
}

func (c *clerk) giveBack(ctx actor.Context) {
	c.process.story.letGo(c.name, "gives it back")
	ctx.Request(c.process.locks.Guardian(), &messages.Release{Lock: theLock, HoldId: c.hold})
}

// work keeps the lock for a while. An actor does not sleep, it has itself told.
func work(d time.Duration) func(*clerk, actor.Context, *messages.Acquired) {
	return func(c *clerk, ctx actor.Context, _ *messages.Acquired) {
		if d == 0 {
			c.giveBack(ctx)
			return
		}
		root, self := ctx.ActorSystem().Root, ctx.Self() // ctx is not for other goroutines
		time.AfterFunc(d, func() { root.Send(self, workDone{}) })
	}
}

// keep keeps the lock.
func keep(*clerk, actor.Context, *messages.Acquired) {}

// takeTwice asks again while it has the lock, and then gives it back twice.
func takeTwice(c *clerk, ctx actor.Context, m *messages.Acquired) {
	if m.HoldCount == 1 {
		c.ask(ctx)
		return
	}
	c.giveBack(ctx)
	c.giveBack(ctx)
}
