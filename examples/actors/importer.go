package main

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

const (
	// batch is how many rows make a commit.
	batch = 4
	// badRow is where a job has its mishap.
	badRow = 6
	// pace is how long it takes to read a row.
	pace = 20 * time.Millisecond
)

// job is what an importer has to do. It belongs to the desk, and outlives the importer.
type job struct {
	name string
	rows int
	// mishap happens once.
	mishap func()
}

// importer reads rows and commits them to the ledger, which it may do only under
// the ledger's lock. It arrives, waits, imports and leaves; every state is a
// behavior of its own, so that each message is handled where it means something.
type importer struct {
	actor.Behavior
	*office
	job *job

	hold string // names the hold; "" while there is none
	from int    // rows in the ledger
	read int    // rows read since then, which are of this hold and die with it
}

// nextRow has an importer read a row, if it still has the same hold.
type nextRow struct{ hold string }

func newImporter(o *office, j *job) actor.Actor {
	i := &importer{Behavior: actor.NewBehavior(), office: o, job: j}
	i.Become(i.arriving)
	return i
}

// arriving begins each life of an importer: the first, and every one after a crash.
//
// A restart is not a death. The PID stays, and so does Lockkeeper's watch on it:
// the lock that the last life held is still held, and still renewed; a request of
// its that waits still waits. The new life knows of neither. To carry on under
// that hold would be wrong even so: the crash may have left half of a change
// behind, and an importer that crashes over and over would never let anybody else
// have a turn. To ask again without giving back would re-enter it, and one Release
// would then free nothing.
//
// So an importer begins by withdrawing and giving back whatever may be left, by
// its PID, since a hold id may have died with the last life. Requests of one actor
// to one lock keep their order: when the Release is answered, everything before it
// is over, and an Acquired that comes until then is one that was just given back.
//
// (The other way is to have crashed importers stopped, and new ones spawned. Then
// the death releases the lock without any help, but what is in the mailbox is gone.)
func (i *importer) arriving(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		i.request(ctx, &messages.Cancel{Lock: ledgerLock})
		i.request(ctx, &messages.Release{Lock: ledgerLock})
	case *messages.Released:
		i.log.Info("has given back what was left of its last life", "importer", i.job.name)
		i.ask(ctx)
	case *messages.NotReleased: // as nothing is held
		i.ask(ctx)
	}
}

// ask asks for the lock. The sender will be its owner. Neither lease nor wait are
// named: the lease is renewed until the release, and the wait has no end.
func (i *importer) ask(ctx actor.Context) {
	i.request(ctx, &messages.Acquire{Lock: ledgerLock})
	i.Become(i.waiting)
}

func (i *importer) waiting(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *messages.Acquired:
		i.hold = m.HoldId
		i.from, i.read = i.ledger.committed(i.job.name), 0 // what was known before the lock counts for nothing
		i.log.Info("has the lock", "importer", i.job.name, "rows done", i.from)
		i.Become(i.importing)
		i.next(ctx)
	case *messages.NotAcquired:
		// With a wait that has no end, this is not about somebody else who holds the
		// lock. Whether to try again is for the desk to say.
		panic("no lock to be had: " + m.Detail)
	}
}

func (i *importer) importing(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *nextRow:
		if m.hold == i.hold { // else it was sent under a hold that is over
			i.readRow(ctx)
		}
	case *messages.LeaseAtRisk:
		if m.HoldId != i.hold {
			return
		}
		// The lock is ours for m.Validity more, whatever happens: the time to save
		// what is done.
		i.log.Warn("fears for the lock, and commits early", "importer", i.job.name, "why", m.Detail)
		i.commit()
		ctx.Send(ctx.Parent(), &alarm{m.Detail})
	case *messages.LeaseLost:
		if m.HoldId != i.hold {
			return
		}
		// From here on somebody else may have the ledger. The rows that were read
		// are dropped: they must be read again under the next hold.
		i.log.Warn("has lost the lock", "importer", i.job.name, "why", m.Detail, "rows dropped", i.read)
		i.hold, i.read = "", 0
		i.ask(ctx)
	}
}

// next has a row read, after the time that this takes; or gives the lock back, if
// there are no more. An actor never sleeps: it would not hear that its lock is lost.
func (i *importer) next(ctx actor.Context) {
	if i.from == i.job.rows {
		i.request(ctx, &messages.Release{Lock: ledgerLock, HoldId: i.hold})
		i.Become(i.leaving)
		return
	}
	root, self, next := ctx.ActorSystem().Root, ctx.Self(), &nextRow{i.hold} // ctx is not for the timer's goroutine
	time.AfterFunc(pace, func() { root.Send(self, next) })
}

func (i *importer) readRow(ctx actor.Context) {
	if row := i.from + i.read + 1; row == badRow && i.job.mishap != nil {
		mishap := i.job.mishap
		i.job.mishap = nil
		mishap()
	}
	i.read++
	if i.read == batch || i.from+i.read == i.job.rows {
		i.commit()
	}
	i.next(ctx)
}

func (i *importer) commit() {
	if err := i.ledger.commit(i.job.name, i.from, i.read); err != nil {
		panic(err)
	}
	i.from, i.read = i.from+i.read, 0
}

func (i *importer) leaving(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *messages.Released:
		i.log.Info("is done", "importer", i.job.name)
		ctx.Stop(ctx.Self())
	case *messages.NotReleased: // all is committed, so it is nobody's loss
		i.log.Warn("is done", "importer", i.job.name, "but", m.Detail)
		ctx.Stop(ctx.Self())
	}
}

// request sends to the guardian of the Lockkeeper in this actor system. The answer
// comes as a message, like everything else.
func (i *importer) request(ctx actor.Context, m any) {
	ctx.Request(lockkeeper.From(ctx.ActorSystem()).Guardian(), m)
}
