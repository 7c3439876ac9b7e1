// Actors shows actors that take turns under one lock, by message. Importers write rows to one ledger. The first
// importer crashes during its work, and its supervisor restarts it; the second loses the lock. All rows arrive, and
// each row once.
//
//	go run ./examples/actors
package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

var ledgerLock = &messages.Acquire{Lock: &messages.Lock{Name: "ledger"}} // renewed until the release; no wait limit

// job is the work of an importer. It outlives the importer.
type job struct {
	name     string
	imported atomic.Int64     // its rows in the ledger, which stands for a table
	mishaps  map[int64]func() // by row; each happens once
	finished chan struct{}
}

const rows = 5 // of each job

// importer acquires the lock, imports its rows, and releases the lock.
type importer struct {
	*job
	ledger lockkeeper.Claim
}

// nextRow makes an importer import a row, if it still has the same hold.
type nextRow struct{ under *messages.Acquired }

// Receive implements actor.Actor.
func (i *importer) Receive(ctx actor.Context) {
	switch i.ledger.Handle(ctx) {
	case lockkeeper.ClaimGranted:
		fmt.Println(i.name, "has the lock, and the ledger has", i.imported.Load(), "of its rows")
		ctx.Send(ctx.Self(), nextRow{i.ledger.Held()})
	case lockkeeper.ClaimLost:
		fmt.Println(i.name, "has lost the lock:", i.ledger.Err().(*lockkeeper.Error).Detail)
		i.ledger.Acquire(ctx, ledgerLock)
	case lockkeeper.ClaimRefused:
		panic(i.ledger.Err()) // the supervisor restarts the actor
	case lockkeeper.ClaimReleased:
		fmt.Println(i.name, "is done")
		close(i.finished)
		ctx.Stop(ctx.Self())
	}
	switch m := ctx.Message().(type) {
	case *actor.Started: // each life begins here, also after a crash
		i.ledger.Acquire(ctx, ledgerLock)
	case nextRow:
		if m.under == i.ledger.Held() { // otherwise the message was sent under a hold that is over
			i.importRow(ctx, m)
		}
	}
}

func (i *importer) importRow(ctx actor.Context, m nextRow) {
	row := i.imported.Load() + 1
	if row > rows {
		i.ledger.Release(ctx)
		return
	}
	if mishap := i.mishaps[row]; mishap != nil {
		delete(i.mishaps, row)
		mishap()
		return // the loss comes as a message
	}
	// A lock that can be lost does not protect data by itself: the ledger refuses a late row.
	if !i.imported.CompareAndSwap(row-1, row) {
		panic("a late row")
	}
	ctx.Send(ctx.Self(), m) // never loop or sleep: the actor could not be notified of a loss
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	system := demo.ActorSystem()
	locks, err := lockkeeper.New(system, client, lockkeeper.Config{})
	demo.Check(err)
	defer locks.Close(context.Background()) // before the client, after the actors that hold locks

	jobs := []*job{
		{name: "north", mishaps: map[int64]func(){3: func() { panic("a row that cannot be read") }}},
		{name: "south", mishaps: map[int64]func(){4: func() {
			fmt.Println("an operator releases the lock of south by force")
			system.Root.Send(locks.Guardian(), &messages.ForceRelease{Lock: ledgerLock.Lock})
		}}},
		{name: "west"},
	}
	for _, j := range jobs {
		j.finished = make(chan struct{})
		// By default actors that crash are restarted.
		system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &importer{job: j} }))
	}
	for _, j := range jobs {
		<-j.finished
		fmt.Println("the ledger has", j.imported.Load(), "rows of", j.name)
	}
}
