// Actors shows actors that take turns under one lock, by message. Importers write rows to one
// ledger. The first crashes during its work and is restarted by its supervisor; the second loses
// the lock. All rows arrive, and each of them once.
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

var ledgerLock = &messages.Lock{Name: "ledger"}

// job is the work of an importer. It outlives the importer.
type job struct {
	name     string
	imported atomic.Int64     // the rows of it in the ledger, which stands for a table
	lives    int              // of the importer, which is restarted after a crash
	mishaps  map[int64]func() // by row; each happens once
	finished chan struct{}
}

const rows = 5 // of each job

// importer acquires the lock, imports its rows, and releases the lock.
type importer struct {
	*job
	life  string // the correlation id of its requests
	state state
	hold  string // names the hold; "" while there is none
}

type state int

const (
	arriving state = iota
	waiting
	importing
	leaving
)

// nextRow makes an importer import a row, if it still has the same hold.
type nextRow struct{ hold string }

// Receive implements actor.Actor.
func (i *importer) Receive(ctx actor.Context) {
	if m, is := ctx.Message().(interface{ GetCorrelationId() string }); is && m.GetCorrelationId() != i.life {
		return // it is for an earlier life
	}
	// The actor is the owner of the lock. The answers come as messages.
	acquire := func() {
		lockkeeper.Request(ctx, &messages.Acquire{Lock: ledgerLock, CorrelationId: i.life}) // renewed until the release; no wait limit
		i.hold, i.state = "", waiting
	}
	release := func() {
		lockkeeper.Request(ctx, &messages.Release{Lock: ledgerLock, HoldId: i.hold, CorrelationId: i.life})
	}
	switch m := ctx.Message().(type) {
	case *actor.Started:
		// Each life begins here, also after a crash. A restart is not a death: the PID stays, and so do the requests and
		// the hold of the last life. Cancel and release them.
		i.lives++
		i.life = fmt.Sprint(i.name, " ", i.lives)
		lockkeeper.Request(ctx, &messages.Cancel{Lock: ledgerLock, CorrelationId: i.life})
		release()
	case *messages.Released, *messages.NotReleased:
		r, is := m.(*messages.Released)
		switch {
		case is && r.HoldCount > 0: // a life before the last had the lock, too
			release()
		case i.state == arriving: // if not released, nothing was held
			acquire()
		default: // if not released, the lock was lost after the last row
			fmt.Println(i.name, "is done")
			close(i.finished)
			ctx.Stop(ctx.Self())
		}
	case *messages.Acquired:
		fmt.Println(i.name, "has the lock, and the ledger has", i.imported.Load(), "of its rows")
		i.hold, i.state = m.HoldId, importing
		ctx.Send(ctx.Self(), nextRow{i.hold})
	case *messages.NotAcquired:
		panic(m.Detail) // the supervisor restarts the actor
	case nextRow:
		if m.hold != i.hold {
			return // it was sent under a hold that is over
		}
		row := i.imported.Load() + 1
		if row > rows {
			release()
			i.state = leaving
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
		ctx.Send(ctx.Self(), nextRow{i.hold}) // never loop or sleep: the actor could not be notified of a loss
	case *messages.LeaseAtRisk:
		// The lease is valid for another m.Validity: time to save the work.
	case *messages.LeaseLost:
		if i.state == importing {
			fmt.Println(i.name, "has lost the lock:", m.Detail)
			acquire()
		}
	}
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
			system.Root.Send(locks.Guardian(), &messages.ForceRelease{Lock: ledgerLock})
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
