//go:build unix

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
	"github.com/lockkeeper-go/lockkeeper/internal/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// Wherever an importer crashes, before it handles a message or afterwards, it imports every
// row once, leaves no hold behind, and keeps nobody out.
func TestCrashAnywhere(t *testing.T) {
	client := redistest.Shared(t).Client(t)
	const received = 6 + rows // Started, answers to Cancel and Release, Acquired, a nextRow each and one more, Released
	for n := 1; n <= received; n++ {
		for _, when := range []string{"before", "after"} {
			t.Run(fmt.Sprintf("%s message %d", when, n), func(t *testing.T) {
				system := quiet.ActorSystem()
				locks, err := lockkeeper.New(system, client, lockkeeper.Config{KeyPrefix: redistest.Name(t)})
				demo.Check(err)
				defer locks.Close(t.Context())
				seen := 0
				crash := actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
					return func(ctx actor.ReceiverContext, m *actor.MessageEnvelope) {
						switch m.Message.(type) {
						case *actor.Restarting, *actor.Stopping, *actor.Stopped: // must not panic
							next(ctx, m)
							return
						}
						seen++
						crashes := seen == n
						if crashes && when == "before" {
							panic("crash")
						}
						next(ctx, m)
						if crashes && when == "after" {
							panic("crash")
						}
					}
				})
				defer func() {
					redistest.Eventually(t, "the lock is free", func() bool {
						status, err := locks.Lock(ledgerLock.Name).Inspect(t.Context())
						return err == nil && !status.Locked && status.Waiters == 0
					})
				}()
				for name, options := range map[string][]actor.PropsOption{"crashing": {crash}, "healthy": nil} {
					j := &job{name: name, finished: make(chan struct{})}
					system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &importer{job: j} }, options...))
					defer func() {
						select {
						case <-j.finished:
						case <-time.After(redistest.Limit):
							t.Errorf("%s is not done, and the ledger has %d rows of it", name, j.imported.Load())
						}
						if n := j.imported.Load(); n != rows {
							t.Errorf("the ledger has %d rows of %s", n, name)
						}
					}()
				}
			})
		}
	}
}
