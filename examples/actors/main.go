// Actors is a proto.actor application that embeds Lockkeeper: a desk supervises
// importers, who write to one ledger in turns, under one lock. Each of them has a
// mishap on the way, and all rows arrive once all the same:
//
//   - north is warned that its lease is at risk, since Redis is out of order;
//   - south crashes amidst its work, and is restarted by the desk;
//   - west loses the lock, since somebody frees it by force.
//
// Start with importer.go, which is what an actor of one's own looks like.
//
//	go run ./examples/actors
//
// needs nothing but Go: the Redis is inside the program. With -redis redis://…
// a real one is used, which is not put out of order.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/embedded"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/program"
	"github.com/lockkeeper-go/lockkeeper/internal/quiet"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// patience is how long the program may take before something must have gone wrong.
const patience = 20 * time.Second

func main() { program.Main("actors", importAll) }

// importAll has the importers do their jobs, and checks the ledger afterwards.
func importAll(redis *embedded.Redis, out io.Writer) (err error) {
	log := newLog(out)
	system := quiet.ActorSystem()
	locks, err := lockkeeper.New(system, redis, lockkeeper.Config{
		KeyPrefix: "actors-example:",
		Watchdog:  3 * time.Second,
		Renewal:   100 * time.Millisecond, // often, so that an outage is noticed within the example's time
	})
	if err != nil {
		return err
	}
	// Last in, first out: the actors that hold locks go before Lockkeeper, and it before its client.
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err = errors.Join(err, locks.Close(ctx))
	}()

	ledger := newLedger()
	jobs := []*job{
		{name: "north", rows: 12, mishap: func() {
			if redis.Embedded() {
				log.Info("Redis is out of order")
				redis.Fail()
			}
		}},
		{name: "south", rows: 12, mishap: func() { panic("a row that cannot be read") }},
		{name: "west", rows: 12, mishap: func() {
			log.Info("somebody frees the lock by force")
			system.Root.Send(locks.Guardian(), &messages.ForceRelease{Lock: ledgerLock})
		}},
	}
	repair := func() {
		if redis.Embedded() {
			redis.Recover()
			log.Info("Redis is repaired")
		}
	}
	finished := make(chan error, 1)
	desk := system.Root.Spawn(newDesk(&office{ledger: ledger, log: log, repair: repair}, jobs, finished))
	defer func() { err = errors.Join(err, system.Root.StopFuture(desk).Wait()) }()
	select {
	case err := <-finished:
		if err != nil {
			return err
		}
	case <-time.After(patience):
		return fmt.Errorf("the importers were not done within %v", patience)
	}
	log.Info("all is imported", "ledger", ledger)
	return ledger.check(jobs)
}

// newLog writes lines that people read.
func newLog(out io.Writer) *slog.Logger {
	began := time.Now()
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey:
			return slog.Duration("after", time.Since(began).Round(time.Millisecond))
		case slog.LevelKey:
			return slog.Attr{}
		}
		return a
	}}))
}
