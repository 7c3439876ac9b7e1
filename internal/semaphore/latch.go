package semaphore

import "github.com/lockkeeper-go/lockkeeper/internal/machine"

// latch is the counter of a latch. A request to acquire waits until the count is zero, and count-downs take the place
// of permits that are given back. Take reads the count and Give counts down; the number in their replies is the count
// then, zero if the latch is open. Set and Inspect are as for a semaphore.
type latch struct{}

// NewLatch returns the Pool of a latch without waiters; see New.
func NewLatch(cfg *machine.Config) Pool { return Pool{cfg: cfg, counter: latch{}} }

func (latch) together() bool { return true }

func (latch) mustBeSet() bool { return false }

func (latch) words() words {
	return words{"the latch is closed", "it is counted down", "it may have been counted down"}
}

// take asks for the count, or counts down, since the reply to a count-down has the count, too.
func (l latch) take(p *Pool) {
	if len(p.pendingReturns) > 0 {
		p.pendingReturns = l.give(p, p.pendingReturns)
		return
	}
	p.wait.RefusalIsStale = false
	p.start(op{kind: opTake, command: Command{Kind: Take}, last: p.queue.LastID()})
}

func (latch) taken(p *Pool, o op, r Result) {
	p.wait.CarriedOut()
	if r.N[0] > 0 {
		p.retryUnserved(o.last)
		return
	}
	p.grantUpTo(o.last)
}

// give sends one command for count-downs without an id, or for a bounded number of count-downs with one. They are not
// mixed, since Redis rejects the latter if the key of the ids has a foreign value.
func (latch) give(p *Pool, returns []permitReturn) (rest []permitReturn) {
	p.wait.RefusalIsStale = false
	c, n, named := Command{Kind: Give}, 0, returns[0].id != ""
	for n < len(returns) && len(c.IDs) < batch && named == (returns[n].id != "") {
		if named {
			c.IDs = append(c.IDs, returns[n].id)
		} else {
			c.N += int64(returns[n].n)
		}
		n++
	}
	p.start(op{kind: opGive, command: c, returns: returns[:n:n], last: p.queue.LastID()})
	return returns[n:]
}

func (l latch) given(p *Pool, o op, r Result) {
	for _, one := range o.returns {
		p.effects.Answer(one.ref, machine.Answer{Kind: machine.Freed, Done: true, N: r.N[0]})
	}
	l.taken(p, o, r) // when count-downs keep coming, no other command reads the count
}

// grantUpTo grants the requests up to last: the latch was open at some time after they came. Later requests may have
// come when it was closed again.
func (p *Pool) grantUpTo(last uint64) {
	for _, req := range p.queue.Remove(func(req *Request) bool { return req.ID <= last }) {
		p.effects.Answer(req.Ref, machine.Answer{Kind: machine.Granted})
	}
	p.trySoon()
}
