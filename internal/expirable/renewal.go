package expirable

import (
	"cmp"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// renewalBatch bounds how many permits one command renews.
const renewalBatch = 1000

// renew has the watchdog renew its permits, those with the oldest lease first if they are many.
func (p *Semaphore) renew() {
	if p.renewAt == 0 || p.now < p.renewAt {
		return
	}
	watched := p.watched()
	if len(watched) == 0 {
		p.renewAt, p.renewal, p.late = 0, op{}, nil
		return
	}
	p.renewal = op{kind: Renew, tries: p.renewal.tries, holds: watched[:min(len(watched), renewalBatch)]}
	p.send(&p.renewal)
}

// watched are the holds of the watchdog, in the order of their renewal.
func (p *Semaphore) watched() (all []*hold) {
	for _, h := range p.holds {
		if !h.fixed {
			all = append(all, h)
		}
	}
	slices.SortStableFunc(all, func(a, b *hold) int { return cmp.Compare(a.sentAt, b.sentAt) })
	return all
}

// renewBy has the watchdog renew a permit by then.
func (p *Semaphore) renewBy(at Instant) {
	if p.renewAt == 0 || at < p.renewAt {
		p.renewAt = at
		if at > p.now { // else settle renews it
			p.wakeAt.sooner(at)
		}
	}
}

// renewalOverdue has a renewal sent again whose reply is late. The process may be too busy to read it, and the
// next reply would be late as well, so a late one still counts.
func (p *Semaphore) renewalOverdue() {
	o := op{seq: p.renewal.seq, sentAt: p.renewal.sentAt, holds: p.renewal.holds}
	p.late = append(slices.Clone(p.late[max(0, len(p.late)-machine.MaxLateTries+1):]), o)
	p.notRenewed(noReply)
}

// renewalLate handles the late reply to a renewal. A failure changes nothing, since it has been sent again.
func (p *Semaphore) renewalLate(i int, r Result) {
	o := p.late[i]
	if r.Err != nil {
		return
	}
	p.late = p.late[i+1:] // the earlier ones have set no later expiry
	if !p.renewal.inFlight {
		p.renewal = op{}
	}
	p.renewed(o, r)
}

func (p *Semaphore) renewalReplied(r Result) {
	o := p.renewal
	if r.Err != nil {
		p.notRenewed(r)
		return
	}
	p.renewal, p.late = op{}, nil
	p.renewed(o, r)
}

// renewed handles the reply to a renewal. The permits are trusted from when it was sent.
func (p *Semaphore) renewed(o op, r Result) {
	p.renewAt, p.atRisk, p.riskErr = 0, false, ""
	valid := map[machine.PermitID]bool{}
	for i, h := range o.holds {
		valid[h.permit] = r.Valid[i]
	}
	holds := slices.Clone(p.holds)
	var lost []*hold
	for i, h := range holds {
		switch renewed, was := valid[h.permit]; {
		case !was:
		case !renewed:
			lost = append(lost, h)
		case h.sentAt >= o.sentAt: // a later command has set the expiry
		default:
			again := *h
			again.sentAt, again.until = o.sentAt, trust(o.sentAt, p.cfg.Watchdog)
			holds[i] = &again
			p.effect(machine.Effect{Kind: machine.Renewed, Ref: h.ref, Answer: machine.Answer{HoldID: h.id, Until: again.end()}})
		}
	}
	p.holds = holds
	for _, h := range lost {
		p.end(h, machine.Gone, gone)
	}
	for _, h := range p.holds {
		if !h.fixed {
			p.renewBy(h.sentAt + p.cfg.RenewAfter(p.now-o.sentAt))
		}
	}
}

// notRenewed tries again soon. The holders are warned, once.
func (p *Semaphore) notRenewed(r Result) {
	p.again(&p.renewal, r)
	p.riskErr, p.renewAt = r.Err.Error(), p.renewal.due
	if p.atRisk {
		return
	}
	p.atRisk = true
	for _, h := range p.watched() {
		p.effect(machine.Effect{Kind: machine.NotifyAtRisk, Ref: h.ref, Answer: machine.Answer{
			HoldID: h.id, Until: h.end(), Detail: "the permit could not be renewed: " + p.riskErr,
		}})
	}
}

// lapse ends the holds that have lasted until now.
func (p *Semaphore) lapse() {
	for _, h := range p.holds {
		if p.now < h.end() {
			continue
		}
		reason, detail := machine.Expired, "no renewal was made in time: the process was stopped, asleep or too busy"
		switch {
		case h.ends != 0 && p.now >= h.ends:
			reason, detail = machine.MaxHold, "the hold has reached its max hold"
		case h.fixed:
			detail = "its fixed lease is over"
		case p.riskErr != "":
			detail = "no renewal succeeded in time: " + p.riskErr
		}
		p.lose(h, reason, detail)
	}
}

// lose ends a hold that was not released, and gives back its permit.
func (p *Semaphore) lose(h *hold, reason machine.Reason, detail string) {
	p.end(h, reason, detail)
	p.giveBack(giveBack{permit: h.permit, until: h.until})
}

// end ends a hold that was not released, and notifies its holder.
func (p *Semaphore) end(h *hold, reason machine.Reason, detail string) {
	p.lost.add(h.id, reason)
	p.effect(machine.Effect{Kind: machine.NotifyLost, Ref: h.ref, Answer: machine.Answer{HoldID: h.id, Reason: reason, Detail: detail}})
	p.remove(h)
}
