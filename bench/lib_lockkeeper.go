package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
)

type ours struct{ system *lockkeeper.System }

func openLockkeeper(addr string, lease time.Duration, _ bool) (library, error) {
	client, err := lockkeeper.Connect("redis://" + addr)
	if err != nil {
		return nil, err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	s, err := lockkeeper.New(system, client, lockkeeper.Config{Watchdog: lease})
	return ours{s}, err
}

func (l ours) acquire(name string) (func() error, error) {
	hold, err := l.system.Lock(name).Acquire(context.Background())
	if err != nil {
		return nil, err
	}
	return func() error { return hold.Release(context.Background()) }, nil
}

func (l ours) hold(name string) error {
	_, err := l.system.Lock(name).Acquire(context.Background())
	return err
}
