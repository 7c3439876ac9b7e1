package grains

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper"
)

// view contains the members whose leases lasted at the last look, by their ids. A view is only a hint: a registration
// looks at the leases.
type view map[string]Member

// callTimeout bounds a call to Redis.
const callTimeout = 2 * time.Second

// watch looks for members again and again, until the Directory ends.
func (d *Directory) watch() {
	const perPoll = 20 // the most looks in one Poll, even if more are asked for
	for reported := false; d.ctx.Err() == nil; {
		ctx, cancel := context.WithTimeout(d.ctx, callTimeout)
		err := d.refresh(ctx) // on an error the last view stays
		cancel()
		refused := errors.Is(err, lockkeeper.ErrRejected)
		if refused && !reported {
			d.post.Host.Error("this process cannot look for members, or remove dead ones", "error", err)
		}
		reported = refused
		select {
		case <-time.After(d.cfg.Locks.Poll / perPoll):
		case <-d.ctx.Done():
		}
		select {
		case <-time.After(d.cfg.Locks.Poll):
		case <-d.look:
		case <-d.ctx.Done():
		}
	}
}

// lookSoon asks for a look at the members.
func (d *Directory) lookSoon() {
	select {
	case d.look <- struct{}{}:
	default:
	}
}

// refresh reads which processes are members. It never shows an older view after a newer one: proto.actor would block a
// member for good that was missing in one view.
func (d *Directory) refresh(ctx context.Context) error {
	d.looking.Lock()
	defer d.looking.Unlock()
	alive, dead, err := d.redis.list(ctx)
	if err != nil {
		return failed(err)
	}
	d.view.Store((*view)(&alive))
	d.silent.Range(func(id, _ any) bool {
		if _, is := alive[id.(string)]; !is {
			d.silent.Delete(id)
		}
		return true
	})
	grace := d.cfg.Locks.Poll / 4
	missing := d.topology.update(alive, time.Now(), grace)
	for _, m := range missing {
		d.cluster.PidCache.RemoveByMember(m) // so that no message is on its way there when proto.actor ends the connection
	}
	if len(missing) > 0 {
		time.AfterFunc(grace, d.lookSoon)
	}
	d.announce(d.topology.list())
	t := d.term.Load()
	if t == nil {
		return nil
	}
	if _, is := alive[t.member.ID]; !is && t.hold.Valid() { // Redis has lost the record
		return failed(d.redis.join(ctx, t.member))
	}
	for id := range alive {
		if id < t.member.ID {
			return nil // the member with the lowest id cleans up for all
		}
	}
	d.cursor, err = d.redis.bury(ctx, d.cursor, alive, dead)
	return failed(err)
}

// announce shows a list of members to proto.actor, which runs the host's log handler and the subscribers to the event
// stream. This code of the host must not delay the looks at the members: if it blocks, proto.actor sees the latest list
// afterwards.
func (d *Directory) announce(members cluster.Members) {
	if d.announced.Swap(&members) == nil {
		d.announcer.Announce(func() { d.cluster.MemberList.UpdateClusterTopology(*d.announced.Swap(nil)) })
	}
}

// join starts the candidacy of this process, and waits until it is a member.
func (d *Directory) join(ctx context.Context) error {
	if err := d.startActivator(); err != nil {
		return err
	}
	first := make(chan error, 1)
	d.done.Go(func() { d.campaign(first) })
	select {
	case err := <-first:
		return err
	case <-ctx.Done():
		return fmt.Errorf("lockkeeper: grains: %w: this process has no lease after %v", lockkeeper.ErrUnavailable, startTimeout)
	}
}

// campaign makes this process a member, under another id for each term, until it resigns. first receives the result of
// the first term's start.
func (d *Directory) campaign(first chan<- error) {
	defer close(d.resigned)
	for pause := firstPause; d.candidacy.Err() == nil; {
		id := uuid.NewString()
		candidacy, end := context.WithCancel(d.candidacy)
		served := false
		err := d.System().Lock(d.redis.lease(id)).Elect(candidacy, func(ctx context.Context) error {
			defer end() // the next term has another id
			return d.serve(ctx, id, func() {
				served = true
				select {
				case first <- nil:
				default:
				}
			})
		}, lockkeeper.WithDrain(d.cfg.Drain))
		end()
		if served {
			pause = firstPause
			continue
		}
		select {
		case first <- err:
		default:
		}
		if d.candidacy.Err() == nil {
			d.post.Host.Error("this process cannot become a member, and tries again", "error", err)
		}
		select {
		case <-time.After(pause - rand.N(pause/2)):
		case <-d.candidacy.Done():
		}
		pause = min(2*pause, d.cfg.Locks.Poll)
	}
	select {
	case first <- errLeft:
	default:
	}
}

var errDrained = errors.New("the lease of the member was not renewed")

// serve runs grains until ctx ends. Then it stops the grains, and returns when the last grain has stopped.
func (d *Directory) serve(ctx context.Context, id string, ready func()) error {
	hold := lockkeeper.HoldFrom(ctx)
	t := &term{
		member: Member{ID: id, Address: d.cluster.ActorSystem.Address(), Kinds: d.cluster.GetClusterKinds()},
		hold:   hold, drain: d.cfg.Drain,
	}
	t.ctx, t.end = context.WithCancelCause(context.WithoutCancel(ctx))
	defer t.end(errDrained)
	if err := d.redis.join(ctx, t.member); err != nil {
		return failed(err)
	}
	d.term.Store(t)
	d.counts.terms.Add(1)
	d.post.Deliver(d.activator, t) // unlike Root.Send, Deliver runs no sender middleware of the host
	_ = d.refresh(ctx)             // so that this process finds its own grains at once
	ready()
	d.checkEntries(ctx)
	if errors.Is(context.Cause(ctx), lockkeeper.ErrLost) {
		t.end(context.Cause(ctx))
	}
	over := &termOver{stopped: make(chan struct{})}
	d.post.Deliver(d.activator, over)
	awaitStop(t, over.stopped)
	d.term.Store(nil)
	d.counts.late.Add(int64(over.late))
	if over.late > 0 {
		d.post.Host.Error(
			"grains have stopped after the lease of their member had ended, and others may have run alongside them",
			"grains", over.late)
	}
	// Once the lease is released, the entries of this member do not keep other members from running the grains. They
	// are removed only to keep Redis tidy.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if d.sweeper.flush(last) {
		_ = d.redis.forget(last, id)
	}
	return nil
}

// checkEntries lets the activator look at its entries again and again, until ctx ends, since a failover or an operator
// may have removed entries.
func (d *Directory) checkEntries(ctx context.Context) {
	ticker := time.NewTicker(d.cfg.Locks.Watchdog / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.post.Deliver(d.activator, checkEntries{})
		case <-ctx.Done():
			return
		}
	}
}

// awaitStop returns when all grains of a term have stopped. When their time runs out, they begin no further messages.
func awaitStop(t *term, stopped <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-timer.C:
			left := t.hold.Left() - t.drain
			if left <= 0 {
				t.end(errDrained)
			} else {
				timer.Reset(left)
			}
		}
	}
}
