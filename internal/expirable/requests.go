package expirable

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Acquire asks for a permit. The request joins the queue, unless it does not wait and others do.
func (p *Semaphore) Acquire(now Instant, req Request) {
	p.begin(now)
	defer p.settle()
	if req.Try {
		req.Deadline = now + p.cfg.TryTime()
	}
	switch {
	case p.closing:
		p.refuse(&req, machine.Closed, closing)
	case req.Try && p.queue.Len() > 0 && p.wait.refused:
		p.refuse(&req, machine.Held, noneFree)
	case p.queue.Len() >= p.cfg.QueueLimit:
		p.refuse(&req, machine.QueueFull, fmt.Sprintf("%d requests wait for a permit already, and the limit is %d", p.queue.Len(), p.cfg.QueueLimit))
	default:
		p.queue.Push(&req)
		if req.Deadline > 0 {
			p.wakeAt.sooner(req.Deadline)
		}
	}
}

const (
	closing  = "the system is closing"
	noneFree = "no permit is free"
)

// Release gives back the permit of a hold. shown says that its id was shown since it was granted.
func (p *Semaphore) Release(now Instant, id uint64, shown bool, ref any) {
	p.begin(now)
	defer p.settle()
	h := p.holdByID(id)
	switch {
	case h != nil:
		p.release(h, h.shown || shown, ref)
	case slices.Contains(p.lost.ids, id):
		p.answer(ref, machine.Answer{Kind: machine.NotFreed, Reason: machine.Lost, Detail: "the permit was lost before: " + p.lost.reason.String()})
	default:
		p.answer(ref, machine.Answer{Kind: machine.NotFreed, Reason: machine.NotHeld, Detail: "there is no such permit: it was never granted, or was released before"})
	}
}

// ReleaseID gives back a permit by its id, also one that another process holds. A holder here is notified.
func (p *Semaphore) ReleaseID(now Instant, permit machine.PermitID, ref any) {
	p.begin(now)
	defer p.settle()
	if p.closing {
		p.answer(ref, machine.Answer{Kind: machine.NotFreed, Reason: machine.Closed, Detail: closing})
		return
	}
	b := giveBack{permit: permit, ref: ref, unknown: true, until: now + p.cfg.TryTime()}
	if i := slices.IndexFunc(p.holds, func(h *hold) bool { return h.permit == permit }); i >= 0 {
		b.unknown, b.until = false, p.holds[i].until
		p.end(p.holds[i], machine.Forced, "it was released by its id")
	}
	p.giveBack(b)
}

// Cancel withdraws the waiting requests of an owner, or the request with that id.
func (p *Semaphore) Cancel(now Instant, id uint64, owner machine.Owner, ref any) {
	p.begin(now)
	defer p.settle()
	var withdrawn []*Request
	if req, found := p.queue.Take(id); found {
		withdrawn = []*Request{req}
	} else if id == 0 && owner != 0 {
		withdrawn = p.queue.RemoveOwner(uint64(owner))
	}
	for _, req := range withdrawn {
		p.refuse(req, machine.CancelledByRequest, "the request was withdrawn")
	}
	p.answer(ref, machine.Answer{Kind: machine.Withdrawn, Count: len(withdrawn)})
}

// OwnerGone says that an owner has died: its requests leave the queue unanswered, and its permits
// are given back.
func (p *Semaphore) OwnerGone(now Instant, owner machine.Owner) {
	p.begin(now)
	defer p.settle()
	if owner == 0 {
		return
	}
	p.queue.RemoveOwner(uint64(owner))
	for _, h := range p.holds {
		if h.owner == owner {
			p.release(h, h.shown, nil)
		}
	}
}

// Set sets how many permits there are.
func (p *Semaphore) Set(now Instant, how How, count int, ref any) {
	p.begin(now)
	defer p.settle()
	if p.closing {
		p.answer(ref, machine.Answer{Kind: machine.NotDone, Reason: machine.Closed, Detail: closing})
		return
	}
	p.sets = append(p.sets, set{how: how, count: count, ref: ref, until: now + p.cfg.TryTime()})
	p.wakeAt.sooner(now + p.cfg.TryTime())
}

// Tick lets time pass.
func (p *Semaphore) Tick(now Instant) {
	p.begin(now)
	p.settle()
}

// Close refuses the waiters, takes the permits from their holders, and gives them back.
func (p *Semaphore) Close(now Instant) {
	p.begin(now)
	defer p.settle()
	p.closing = true
	for _, req := range p.queue.Remove(func(*Request) bool { return true }) {
		p.refuse(req, machine.Closed, closing)
	}
	for _, h := range p.holds {
		p.lose(h, machine.Closed, closing)
	}
}

// Signal says that permits may have become free.
func (p *Semaphore) Signal(now Instant) {
	p.begin(now)
	defer p.settle()
	if p.main.kind == Acquire {
		p.wait.again = true
	} else if !p.wait.defers && p.queue.Len() > 0 {
		p.tryAt(p.now)
	}
}

// Subscribed says that from now on no message of the channel is missed; earlier ones may have been.
func (p *Semaphore) Subscribed(now Instant) {
	if p.sub != unsubscribed {
		p.sub = listening
		p.Signal(now)
	}
}

// Idle reports whether there is nothing to do and no state to keep.
func (p *Semaphore) Idle() bool {
	return len(p.holds)+p.queue.Len()+len(p.back)+len(p.sets) == 0 && p.main.kind == 0 && p.renewal.kind == 0 &&
		p.sub == unsubscribed && p.taken == len(p.effects)
}

// Sent returns the number of the last numbered command, 0 before the first; certain: none that was sent is still on
// its way.
func (p *Semaphore) Sent() (number uint64, certain bool) {
	return p.number, !p.mayArrive && p.main.kind == 0
}

// Snapshot is what this process knows without asking Redis: how many permits it holds, how many
// requests wait, and until when the first of the permits is valid if it is not renewed.
func (p *Semaphore) Snapshot() (held, waiters int, until Instant) {
	for _, h := range p.holds {
		if until == 0 || h.end() < until {
			until = h.end()
		}
	}
	return len(p.holds), p.queue.Len(), until
}

// Outstanding returns the holders, and the requests that await an answer. It is for a Semaphore
// that is given up.
func (p *Semaphore) Outstanding() (holders []machine.Holder, pending []any) {
	for _, h := range p.holds {
		holders = append(holders, machine.Holder{Ref: h.ref, ID: h.id})
	}
	add := func(ref any) {
		if ref != nil {
			pending = append(pending, ref)
		}
	}
	for req := range p.queue.All() {
		add(req.Ref)
	}
	for _, b := range p.back {
		add(b.ref)
	}
	for _, s := range p.sets {
		add(s.ref)
	}
	for _, e := range p.effects[p.taken:] {
		if e.Kind == machine.Reply {
			add(e.Ref)
		}
	}
	return holders, pending
}

// Next returns the Ref of the first request that waits, or nil.
func (p *Semaphore) Next() any {
	if p.queue.Len() == 0 {
		return nil
	}
	return p.queue.Head().Ref
}

// Load returns how many permits are held and how many requests wait, and the Ref of the first holder,
// or else of the first that waits.
func (p *Semaphore) Load() (holds, waiters int, first any) {
	if first = p.Next(); len(p.holds) > 0 {
		first = p.holds[0].ref
	}
	return len(p.holds), p.queue.Len(), first
}

// First returns the first hold of an owner; 0 if it has none.
func (p *Semaphore) First(owner machine.Owner) uint64 {
	for _, h := range p.holds {
		if owner != 0 && h.owner == owner {
			return h.id
		}
	}
	return 0
}

// Cleanup returns the commands that give back everything of this process, and for how long from now
// they have a use. It is for a Semaphore that is given up.
func (p *Semaphore) Cleanup(now Instant) (all []Command, ttl time.Duration) {
	ids, until := p.main.ids(), now+p.cfg.Watchdog
	for _, req := range p.main.requests {
		until = max(until, now+p.lease(req))
	}
	for _, h := range p.holds {
		ids, until = append(ids, h.permit), max(until, h.until)
	}
	for _, b := range p.back {
		ids, until = append(ids, b.permit), max(until, b.until)
	}
	for batch := range slices.Chunk(ids, releaseBatch) {
		p.numbered(now)
		all = append(all, Command{Kind: Release, Number: p.number, IDs: batch})
	}
	return all, until - now + p.cfg.CallTimeout
}
