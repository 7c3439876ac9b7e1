package semaphore

// Leaving the wait queue: a process without a waiter removes its entry, so that permits go to the entries behind it.

// entryIsUnused reports whether the process has an entry in the wait queue, and no waiter.
func (p *Pool) entryIsUnused() bool { return p.entryN > 0 && p.queue.Len() == 0 }

// leaveAt returns when the process removes an unused entry. In a turn, the next waiter may come at once.
func (p *Pool) leaveAt() Instant {
	if p.closing {
		return p.now
	}
	return max(p.turn.Until, p.now)
}

// nextLeave removes an unused entry from the wait queue, or tries to until the entry has expired.
func (p *Pool) nextLeave() bool {
	if !p.entryIsUnused() || p.now < p.leaveAt() {
		return false
	}
	p.start(op{kind: opLeave, command: Command{Kind: Take}, until: p.now + p.cfg.EntryTimeout()})
	return true
}

func (p *Pool) leaveReplied(op, Result) { p.entryN = 0 }

// leaveFailed lets the entry expire if another try has no use.
func (p *Pool) leaveFailed(o op, r Result) {
	if !r.Transient || o.expired || p.closing {
		p.op, p.entryN = op{}, 0
	}
}
