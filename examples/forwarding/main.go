// Forwarding shows actors that forward requests to the leader. Each desk takes orders, but only the desk that holds the
// lock serves them. The note of its hold is its address. Each desk follows the lock: it receives a message when the
// leader has changed.
//
//	go run ./examples/forwarding
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

var leaderLock = &messages.Lock{Name: "leader"}

// order is answered by served. An order that was forwarded is not forwarded again: the leader may have changed
// meanwhile.
type order struct {
	what      string
	forwarded bool
}

type served struct{ what, by string }

// desk takes orders, and leads or forwards them.
type desk struct {
	name string
	sys  *lockkeeper.System
	// leads: the desk holds the lock.
	leads bool
	// leader is the desk that holds the lock, as far as this desk knows; nil for none.
	leader *actor.PID
	// kept are the orders that came without a leader. A real desk refuses orders if there are many.
	kept []*actor.MessageEnvelope
}

// Receive implements actor.Actor.
func (d *desk) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		d.sys.Lock(leaderLock.Name).Follow(ctx)
		d.campaign(ctx) // the death of the desk releases its lock
	case *messages.Acquired:
		d.leads = true
		d.serveKept(ctx)
	case *messages.LeaseLost:
		d.leads = false
		d.campaign(ctx)
	case *messages.NotAcquired:
		log.Print(d.name, " is no longer a candidate: ", m.Detail)
	case *lockkeeper.Changed:
		d.leader = addressOf(m.Note) // nil while Redis is unavailable
		d.serveKept(ctx)
	case order:
		d.serve(ctx, &actor.MessageEnvelope{Message: m, Sender: ctx.Sender()})
	}
}

// campaign asks for the lock. The note is the address of this desk, which includes its node with proto.actor's remote.
func (d *desk) campaign(ctx actor.Context) {
	self := ctx.Self()
	ctx.Request(d.sys.Guardian(), &messages.Acquire{Lock: leaderLock, Note: self.Address + "/" + self.Id})
}

// addressOf reads the note of a leader; nil for a note of another form.
func addressOf(note string) *actor.PID {
	address, id, is := strings.Cut(note, "/")
	if !is {
		return nil
	}
	return actor.NewPID(address, id)
}

// serve answers an order, forwards it to the leader, or keeps it.
func (d *desk) serve(ctx actor.Context, e *actor.MessageEnvelope) {
	o := e.Message.(order)
	switch {
	case d.leads:
		ctx.Send(e.Sender, served{o.what, d.name})
	case d.leader != nil && !o.forwarded && !d.leader.Equal(ctx.Self()):
		ctx.RequestWithCustomSender(d.leader, order{o.what, true}, e.Sender)
	default:
		d.kept = append(d.kept, e)
	}
}

// serveKept serves the orders that were kept. They may be forwarded now, even if they were before.
func (d *desk) serveKept(ctx actor.Context) {
	kept := d.kept
	d.kept = nil
	for _, e := range kept {
		d.serve(ctx, &actor.MessageEnvelope{Message: order{what: e.Message.(order).what}, Sender: e.Sender})
	}
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	// One actor system stands for the nodes of a service, which proto.actor's remote would connect.
	system := demo.ActorSystem()
	open := func(name string) (d *actor.PID, end func()) {
		sys, err := lockkeeper.New(system, client, lockkeeper.Config{Application: name, Poll: 100 * time.Millisecond})
		demo.Check(err)
		d, err = system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return &desk{name: name, sys: sys} }), name)
		demo.Check(err)
		return d, func() {
			_ = system.Root.StopFuture(d).Wait()
			demo.Check(sys.Close(context.Background()))
		}
	}
	ask := func(d *actor.PID, what string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		answer, err := lockkeeper.Ask(ctx, system.Root, d, order{what: what})
		for errors.Is(err, actor.ErrDeadLetter) { // the order was forwarded to a leader that has just stopped
			time.Sleep(50 * time.Millisecond)
			answer, err = lockkeeper.Ask(ctx, system.Root, d, order{what: what})
		}
		demo.Check(err)
		fmt.Printf("%s asks %s: served by %s\n", what, d.Id, answer.(served).by)
	}

	anna, stopAnna := open("anna")
	ask(anna, "tea")
	bert, stopBert := open("bert")
	ask(bert, "coffee")
	stopAnna()
	ask(bert, "cake")
	stopBert()
}
