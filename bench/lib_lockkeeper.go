package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/lockkeeper-go/lockkeeper"
)

type locks struct {
	system *lockkeeper.System
	kind   kind
	mu     sync.Mutex
	held   []*lockkeeper.Hold
}

// limitedHandler passes on only the first 5 messages: the messages of 100,000 locks would take longer than the
// measurement.
type limitedHandler struct {
	slog.Handler
	written *atomic.Int64
}

func (h limitedHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level) && h.written.Add(1) <= 5
}

// start starts Lockkeeper in an actor system of its own.
func start(addr string, lease time.Duration, s scenario) (*actor.ActorSystem, *lockkeeper.System, error) {
	client, err := lockkeeper.Connect("redis://" + addr)
	if err != nil {
		return nil, nil, err
	}
	logger := slog.New(limitedHandler{slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}), new(atomic.Int64)})
	host := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	config := lockkeeper.Config{Watchdog: lease, Linger: s.linger, Meter: s.meter}
	if s.oneKey {
		config.QueueLimit = s.size // 0 is the default
	}
	system, err := lockkeeper.New(host, client, config)
	return host, system, err
}

// openMetered is Lockkeeper with the meter of OpenTelemetry's SDK, without a reader of the metrics.
func openMetered(addr string, lease time.Duration, s scenario) (library, error) {
	s.meter = metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())).Meter("lockkeeper")
	return openLockkeeper(addr, lease, s)
}

func openLockkeeper(addr string, lease time.Duration, s scenario) (library, error) {
	if s.systems > 0 {
		return openSystems(addr, lease, s)
	}
	return openSystem(addr, lease, s)
}

func openSystem(addr string, lease time.Duration, s scenario) (library, error) {
	_, system, err := start(addr, lease, s)
	if err == nil && s.kind == semaphore {
		return openSemaphore(system, s)
	}
	for i := 0; err == nil && s.kind == expirable && i < s.goroutines; i++ {
		_, err = system.ExpirableSemaphore(keyOf(i)).TrySetPermits(context.Background(), 1)
	}
	return &locks{system: system, kind: s.kind}, err
}

func (l *locks) lock(name string) *lockkeeper.Lock {
	switch l.kind {
	case fenced:
		return l.system.FencedLock(name)
	case fair:
		return l.system.FairLock(name)
	case read:
		return l.system.ReadWriteLock(name).Read()
	case write, readWrite:
		return l.system.ReadWriteLock(name).Write()
	case multi:
		return lockkeeper.MultiLock(l.system.Lock(name), l.system.Lock(name+" too"))
	default:
		return l.system.Lock(name)
	}
}

func (l *locks) acquire(name string) (func() error, error) {
	if l.kind != expirable {
		return acquire(l.lock(name))
	}
	permit, err := l.system.ExpirableSemaphore(name).Acquire(context.Background())
	if err != nil {
		return nil, err
	}
	return func() error { return permit.Release(context.Background()) }, nil
}

func (l *locks) read(name string) (func() error, error) {
	return acquire(l.system.ReadWriteLock(name).Read())
}

func acquire(lock *lockkeeper.Lock) (func() error, error) {
	hold, err := lock.Acquire(context.Background())
	if err != nil {
		return nil, err
	}
	return func() error { return hold.Release(context.Background()) }, nil
}

func (l *locks) hold(name string) error {
	hold, err := l.lock(name).Acquire(context.Background())
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, hold)
	return nil
}

// check reports whether everything is still held.
func (l *locks) check() error {
	for _, hold := range l.held {
		if err := hold.Err(); err != nil {
			return err
		}
	}
	return nil
}
