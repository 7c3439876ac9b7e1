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
	releases int              // how many Releases have no answer yet, in all lives of the importer
	mishaps  map[int64]func() // by row; each happens once
	finished chan struct{}
}

const rows = 5 // of each job

// importer acquires the lock, imports its rows, and releases the lock.
type importer struct {
	*job
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
	// The actor is the owner of the lock. The answers come as messages.
	request := func(m any) { lockkeeper.Request(ctx, m) }
	release := func(hold string) {
		i.releases++
		request(&messages.Release{Lock: ledgerLock, HoldId: hold})
	}
	switch m := ctx.Message().(type) {
	case *actor.Started:
		// Each life begins here, also after a crash. A restart is not a death: the PID stays, and so
		// do the requests and the hold of the last life. Cancel and release them. When all Releases
		// are answered, everything before is over. Answers do not say which life they are for: so those
		// that are to come are counted where a crash does not lose the number.
		request(&messages.Cancel{Lock: ledgerLock})
		release("")
	case *messages.Released, *messages.NotReleased:
		if i.releases--; i.releases > 0 {
			return // another one is to come
		}
		switch i.state {
		case arriving: // if not released, nothing was held
			if r, is := m.(*messages.Released); is && r.HoldCount > 0 {
				release("") // a life before the last had the lock, too
				return
			}
			request(&messages.Acquire{Lock: ledgerLock}) // the lock is renewed until the release; no wait limit
			i.state = waiting
		case leaving: // if not released, the lock was lost after the last row
			fmt.Println(i.name, "is done")
			close(i.finished)
			ctx.Stop(ctx.Self())
		}
	case *messages.Acquired:
		if i.state == waiting { // otherwise it was for the last life, and is released
			fmt.Println(i.name, "has the lock, and the ledger has", i.imported.Load(), "of its rows")
			i.hold, i.state = m.HoldId, importing
			ctx.Send(ctx.Self(), nextRow{i.hold})
		}
	case *messages.NotAcquired:
		if i.state == waiting { // otherwise it was cancelled
			panic(m.Detail) // the supervisor restarts the actor
		}
	case nextRow:
		if m.hold != i.hold {
			return // it was sent under a hold that is over
		}
		row := i.imported.Load() + 1
		if row > rows {
			release(i.hold)
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
		if i.state == importing && m.HoldId == i.hold {
			fmt.Println(i.name, "has lost the lock:", m.Detail)
			request(&messages.Acquire{Lock: ledgerLock})
			i.hold, i.state = "", waiting
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
