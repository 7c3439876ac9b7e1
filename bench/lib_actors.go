package main

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// byMessage is Lockkeeper as actors use it. A user of pairs is an actor that handles every
// grant and every release itself; in s5 and s6 one actor is the holder, and the scenario's
// goroutines make its requests and wait for the answers by futures.
type byMessage struct {
	host     *actor.ActorSystem
	guardian *actor.PID
	holder   *actor.PID
}

func openActors(addr string, lease time.Duration, s scenario) (library, error) {
	host, system, err := start(addr, lease, s)
	if err != nil {
		return nil, err
	}
	holder := host.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if lost, ok := ctx.Message().(*messages.LeaseLost); ok {
			fail(fmt.Errorf("lost %s: %s", lost.Lock.GetName(), lost.Detail))
		}
	}))
	return byMessage{host: host, guardian: system.Guardian(), holder: holder}, nil
}

// loop runs the user as an actor.
func (l byMessage) loop(u *user) {
	ended := make(chan struct{})
	l.host.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &turns{user: u, guardian: l.guardian, lock: &messages.Lock{Name: u.key}, ended: ended}
	}))
	<-ended
}

// turns is an actor that acquires and releases the lock until the time is over.
type turns struct {
	user     *user
	guardian *actor.PID
	lock     *messages.Lock
	ended    chan<- struct{}
}

func (a *turns) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.ask(ctx)
	case *messages.Acquired:
		a.user.enter()
		a.user.leave()
		ctx.Request(a.guardian, &messages.Release{Lock: a.lock, HoldId: m.HoldId})
	case *messages.Released:
		a.user.done()
		a.ask(ctx)
	case *messages.NotAcquired, *messages.NotReleased, *messages.LeaseLost:
		fail(fmt.Errorf("%T: %v", m, m))
	}
}

func (a *turns) ask(ctx actor.Context) {
	if a.user.over() {
		close(a.ended)
		return
	}
	a.user.begin()
	if a.user.s.fresh {
		a.lock = &messages.Lock{Name: a.user.key}
	}
	ctx.Request(a.guardian, &messages.Acquire{Lock: a.lock})
}

// acquire is for one goroutine at a time on each key, since all have the same owner.
func (l byMessage) acquire(name string) (func() error, error) {
	lock := &messages.Lock{Name: name}
	answer, err := l.request(&messages.Acquire{Lock: lock, Owner: l.holder})
	if err != nil {
		return nil, err
	}
	acquired, ok := answer.(*messages.Acquired)
	if !ok {
		return nil, fmt.Errorf("%T: %v", answer, answer)
	}
	return func() error {
		answer, err := l.request(&messages.Release{Lock: lock, HoldId: acquired.HoldId})
		if _, ok := answer.(*messages.Released); !ok && err == nil {
			err = fmt.Errorf("%T: %v", answer, answer)
		}
		return err
	}, nil
}

func (l byMessage) hold(name string) error {
	_, err := l.acquire(name)
	return err
}

func (l byMessage) request(m any) (any, error) {
	return l.host.Root.RequestFuture(l.guardian, m, -1).Result()
}
