package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// office is what the desk and its importers have in common.
type office struct {
	ledger *ledger
	log    *slog.Logger
	// repair is called when an importer fears for its lock.
	repair func()
}

// desk is the parent of the importers: it spawns one for every job, restarts it when
// it crashes, and says when all of them have stopped.
type desk struct {
	*office
	jobs     []*job
	finished chan<- error
	working  map[string]*job // by the id of the importer's PID
}

// alarm says that an importer fears for its lock.
type alarm struct{ why string }

func newDesk(o *office, jobs []*job, finished chan<- error) *actor.Props {
	restart := func(reason any) actor.Directive {
		o.log.Warn("an importer has crashed, and is restarted", "why", reason)
		return actor.RestartDirective
	}
	return actor.PropsFromProducer(
		func() actor.Actor { return &desk{office: o, jobs: jobs, finished: finished} },
		actor.WithSupervisor(actor.NewOneForOneStrategy(3, 10*time.Second, restart)))
}

// Receive implements actor.Actor.
func (d *desk) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		d.working = map[string]*job{}
		for _, j := range d.jobs {
			pid := ctx.Spawn(actor.PropsFromProducer(func() actor.Actor { return newImporter(d.office, j) }))
			d.working[pid.Id] = j
		}
	case *alarm:
		d.repair()
	case *actor.Terminated: // a parent need not watch its children
		j := d.working[m.Who.Id]
		delete(d.working, m.Who.Id)
		if d.ledger.committed(j.name) < j.rows {
			d.tell(fmt.Errorf("the importer %s has crashed too often", j.name))
		}
		if len(d.working) == 0 {
			d.tell(nil)
		}
	}
}

// tell tells the first thing that there is to tell, and never blocks.
func (d *desk) tell(err error) {
	select {
	case d.finished <- err:
	default:
	}
}
