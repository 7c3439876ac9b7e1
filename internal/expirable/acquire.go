package expirable

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

const (
	// acquireBatch bounds how many permits one command takes.
	acquireBatch = 100
	// repeatTime is how long an Acquire is sent again. Redis remembers commands for twice as long.
	repeatTime = 30 * time.Minute
)

// startAcquire asks for permits for the first waiting requests.
func (p *Semaphore) startAcquire() {
	o := op{kind: Acquire, requests: p.queue.Front(acquireBatch)}
	o.until = min(trust(p.now, slices.Min(p.leases(&o))), p.now+repeatTime)
	p.start(o)
}

// leases are those of an acquire's permits.
func (p *Semaphore) leases(o *op) (all []time.Duration) {
	for _, req := range o.requests {
		all = append(all, p.lease(req))
	}
	return all
}

func (p *Semaphore) lease(req *Request) time.Duration {
	if req.Lease > 0 {
		return req.Lease
	}
	return p.cfg.Watchdog
}

// tryAt sets when the next try is, unless something comes before.
func (p *Semaphore) tryAt(at Instant) {
	p.wait.nextAt = at
	if at > p.now {
		p.wakeAt.sooner(at)
	}
}

// acquired gives the requests that were served their permits. A permit of one that has left goes back.
func (p *Semaphore) acquired(o op, r Result) {
	p.wait.tries, p.wait.lastErr = 0, ""
	if r.Missing {
		p.missing()
		return
	}
	if r.Served > 0 {
		p.turnUntil = p.now + p.cfg.HandOffLimit
		if p.forcedYieldAt == 0 {
			p.forcedYieldAt = p.now + p.cfg.ForcedYield
		}
	}
	for _, req := range o.requests[:min(r.Served, len(o.requests))] {
		h := hold{permit: o.permit(req), fixed: req.Lease > 0, sentAt: o.sentAt, until: trust(o.sentAt, p.lease(req))}
		late := p.now >= h.until
		if _, waits := p.queue.Find(req.ID); !waits || late {
			p.giveBack(giveBack{permit: h.permit, until: h.until})
			if waits && o.tries == 0 { // another try would be late as well, and hold up the requests behind it
				p.queue.Take(req.ID)
				p.refuse(req, machine.Unavailable, fmt.Sprintf("Redis took %v to answer, too long for a lease of %v", p.now-o.sentAt, p.lease(req)))
			}
			continue
		}
		p.queue.Take(req.ID)
		p.grant(req, h, false)
		if !h.fixed {
			p.renewBy(h.sentAt + p.cfg.Renewal)
		}
	}
	if r.Served >= len(o.requests) {
		p.tryAt(p.now)
		return
	}
	p.refuseTries(o.requests)
	tries := p.queue.Len() > 0 && p.queue.Head().Try // they have come since
	p.wait.refused = !tries
	next := p.now + min(p.cfg.Poll, p.cfg.Watchdog/2)
	if r.Wait >= 0 {
		next = min(next, p.now+r.Wait+time.Millisecond) // Redis's time is rounded down
	}
	if p.wait.again || tries {
		next = p.now
	}
	p.tryAt(next)
	if p.sub == requested {
		// Not confirmed since the last try: ask again, in case the first got lost.
		p.effect(machine.Effect{Kind: machine.Subscribe})
	}
}

// missing has the number of permits set again if a request says it, and refuses the others.
func (p *Semaphore) missing() {
	for _, req := range p.queue.Remove(func(req *Request) bool { return req.Total == 0 }) {
		p.refuse(req, machine.NoPermits, noNumber)
	}
	if p.queue.Len() > 0 {
		p.sets = slices.Insert(slices.Clone(p.sets), 0, set{how: Restore, count: p.queue.Head().Total, until: p.now + p.cfg.TryTime()})
		p.tryAt(p.now)
	}
}

// restored tries again, when the number is set at the earliest. Requests that do not wait are refused before.
func (p *Semaphore) restored(r Result) {
	p.tryAt(p.now + r.Wait)
	if r.Wait <= 0 {
		return
	}
	p.wait.refused = true
	for _, req := range p.queue.RemoveTries(func(*Request) bool { return true }) {
		p.refuse(req, machine.NoPermits, fmt.Sprintf("%s; it is set again in %v, when all leases from before are over", noNumber, r.Wait))
	}
}

// restoreFailed tries again later, or refuses all requests if that has no use.
func (p *Semaphore) restoreFailed(r Result, reason machine.Reason, detail string) {
	for _, req := range p.queue.Remove(func(req *Request) bool { return req.Try || !r.Transient }) {
		p.refuse(req, reason, detail)
	}
	p.tryAt(p.now + p.backoff(p.wait.tries))
	p.wait.tries++
}

// noNumber is what a process can say of permits that are not there.
const noNumber = "it was never set, or Redis has lost its data"

// trusted are the permits that this process holds, and for how long each is trusted.
func (p *Semaphore) trusted() (ids []machine.PermitID, rests []time.Duration) {
	for _, h := range p.holds {
		if rest := h.until - p.now; rest > 0 {
			ids, rests = append(ids, h.permit), append(rests, rest)
		}
	}
	return ids, rests
}

// refuseTries refuses the tries: those of an acquire that was refused, and those behind
// a request that waits.
func (p *Semaphore) refuseTries(asked []*Request) {
	first, waits := p.queue.FirstWaiting()
	for _, req := range p.queue.RemoveTries(func(req *Request) bool {
		return req.ID <= asked[len(asked)-1].ID || waits && req.ID > first.ID
	}) {
		p.refuse(req, machine.Held, noneFree)
	}
}

// acquireFailed tries again later, or refuses all requests if that has no use. It reports whether the
// command is over: one that may have been carried out is repeated.
func (p *Semaphore) acquireFailed(o *op, r Result) (over bool) {
	reason, detail := failure(r)
	for _, req := range p.queue.Remove(func(req *Request) bool { return req.Try || !r.Transient }) {
		p.refuse(req, reason, detail)
	}
	p.tryAt(p.now + p.backoff(p.wait.tries))
	p.wait.tries++
	if !o.unsure {
		return true
	}
	waits := func(req *Request) bool {
		_, found := p.queue.Find(req.ID)
		return found
	}
	if slices.ContainsFunc(o.requests, waits) && p.now < o.until {
		return false
	}
	// What it may have taken goes back, which also keeps a late copy from taking it.
	for _, req := range o.requests {
		p.giveBack(giveBack{permit: o.permit(req), until: p.now + p.lease(req)})
	}
	return true
}
