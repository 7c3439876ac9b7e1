package main

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/quiet"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

const (
	lockName = "orders"
	prefix   = "quickstart:"
	key      = prefix + lockName // in Redis
)

var theLock = &messages.Lock{Name: lockName}

// process stands for a process of an application: an actor system, and Lockkeeper in it.
type process struct {
	story *story
	root  *actor.RootContext
	locks *lockkeeper.System
}

func (s *story) newProcess() (*process, error) {
	system := quiet.ActorSystem()
	locks, err := lockkeeper.New(system, s.redis, lockkeeper.Config{
		KeyPrefix: prefix,
		Watchdog:  1500 * time.Millisecond, // the default of 30 s would make a long story
	})
	if err != nil {
		return nil, err
	}
	return &process{story: s, root: system.Root, locks: locks}, nil
}

// end gives back what is held, and ends all goroutines of Lockkeeper.
func (p *process) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.locks.Close(ctx)
}

func (p *process) clerk(name string, then func(*clerk, actor.Context, *messages.Acquired)) *actor.PID {
	return p.root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &clerk{process: p, name: name, then: then}
	}))
}

// inspect asks about the lock from outside of any actor.
func (p *process) inspect() *messages.Status {
	answer, err := p.root.RequestFuture(p.locks.Guardian(), &messages.Inspect{Lock: theLock}, patience).Result()
	p.story.try(err)
	status, ok := answer.(*messages.Status)
	p.story.check(ok, "an Inspect is answered by a Status")
	return status
}
