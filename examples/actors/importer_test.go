package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/embedded"
	"github.com/lockkeeper-go/lockkeeper/internal/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Wherever an importer crashes, before it handles a message or afterwards, it imports
// every row once, leaves no hold behind, and keeps nobody out.
func TestCrashAnywhere(t *testing.T) {
	const rows = 5
	const received = 10 // by an importer that does not crash: Started, two answers, Acquired, a nextRow each, Released
	for n := int64(1); n <= received; n++ {
		for _, when := range []string{"before", "after"} {
			t.Run(fmt.Sprintf("%s message %d", when, n), func(t *testing.T) {
				t.Parallel()
				system, locks := startLocks(t)
				o := &office{ledger: newLedger(), log: slog.New(slog.DiscardHandler)}
				jobs := []*job{{name: "crashing", rows: rows}, {name: "healthy", rows: rows}}
				var seen atomic.Int64
				crashing := actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
					return func(ctx actor.ReceiverContext, m *actor.MessageEnvelope) {
						switch m.Message.(type) {
						case *actor.Restarting, *actor.Stopping, *actor.Stopped: // must not panic
							next(ctx, m)
							return
						}
						now := seen.Add(1)
						if when == "before" && now == n {
							panic("crash")
						}
						next(ctx, m)
						if when == "after" && now == n {
							panic("crash")
						}
					}
				})
				first := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return newImporter(o, jobs[0]) }, crashing))
				second := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return newImporter(o, jobs[1]) }))
				for _, pid := range []*actor.PID{first, second} {
					redistest.Eventually(t, "the importer is done", func() bool {
						_, lives := system.ProcessRegistry.GetLocal(pid.Id)
						return !lives
					})
				}
				if err := o.ledger.check(jobs); err != nil {
					t.Error(err)
				}
				redistest.Eventually(t, "the lock is free", func() bool {
					status, err := locks.Lock(ledgerLock.Name).Inspect(context.Background())
					return err == nil && !status.Locked && status.Waiters == 0
				})
				if seen.Load() < n {
					t.Error("there was no crash")
				}
			})
		}
	}
}

func startLocks(t *testing.T) (*actor.ActorSystem, *lockkeeper.System) {
	t.Helper()
	redis, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Close)
	system := quiet.ActorSystem()
	locks, err := lockkeeper.New(system, redis, lockkeeper.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return system, locks
}
