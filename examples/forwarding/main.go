// Forwarding shows actors that forward requests to the leader. Each desk takes orders, but only the one that holds the
// lock serves them. The note of its hold is its address, and each desk watches the lock and is sent a message when the
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

// order is answered by served. One that was forwarded is not forwarded again: the leader may have changed meanwhile.
type order struct {
	what      string
	forwarded bool
}

type served struct{ what, by string }

// leaderChanged is sent to a desk. leader is nil while there is none, or its address is not known yet.
type leaderChanged struct{ leader *actor.PID }

// desk takes orders, and leads or forwards them.
type desk struct {
	name string
	sys  *lockkeeper.System
	// leads: it holds the lock. leader is the desk that does, as far as is known, and may be out of date.
	leads  bool
	leader *actor.PID
	// kept are the orders that came without a leader. A real desk refuses some if there are many.
	kept []*actor.MessageEnvelope
	// unwatch ends the watch.
	unwatch context.CancelFunc
}

// Receive implements actor.Actor.
func (d *desk) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		d.watch(ctx)
		d.campaign(ctx)
	case *messages.Acquired:
		d.leads = true
		d.serveKept(ctx)
	case *messages.LeaseLost:
		d.leads = false
		d.campaign(ctx)
	case *messages.NotAcquired:
		log.Print(d.name, " does not stand for election any more: ", m.Detail)
	case leaderChanged:
		d.leader = m.leader
		d.serveKept(ctx)
	case order:
		d.serve(ctx, &actor.MessageEnvelope{Message: m, Sender: ctx.Sender()})
	case *actor.Stopping, *actor.Restarting:
		d.unwatch() // the death of the desk releases its lock
	}
}

// campaign asks for the lock. The note is the address of this desk: with proto.actor's remote, that of its node.
func (d *desk) campaign(ctx actor.Context) {
	self := ctx.Self()
	ctx.Request(d.sys.Guardian(), &messages.Acquire{Lock: leaderLock, Note: self.Address + "/" + self.Id})
}

// watch has the desk sent a leaderChanged for each change, until it stops.
func (d *desk) watch(ctx actor.Context) {
	watching, cancel := context.WithCancel(context.Background())
	self, root := ctx.Self(), ctx.ActorSystem().Root // ctx is for the actor's own goroutine
	d.unwatch = cancel
	go func() {
		for change, err := range d.sys.Lock(leaderLock.Name).Watch(watching) {
			if err != nil { // Redis is unavailable, or it is the last error
				root.Send(self, leaderChanged{})
				continue
			}
			root.Send(self, leaderChanged{addressOf(change.Note)})
		}
	}()
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
		for errors.Is(err, actor.ErrDeadLetter) { // it was forwarded to a leader that has just stopped
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
