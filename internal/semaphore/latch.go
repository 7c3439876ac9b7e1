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
	p.start(op{command: Command{Kind: Take}, last: p.queue.LastID()})
}

func (latch) taken(p *Pool, c *op, r *Result) {
	p.wait.CarriedOut()
	if r.N[0] > 0 {
		p.retryUnserved(c.last)
		return
	}
	p.grantUpTo(c.last)
}

// give sends one command for count-downs without an id, or for a bounded number of count-downs with one. They are not
// mixed, since Redis rejects the latter if the key of the ids has a foreign value.
func (latch) give(p *Pool, returns []permitReturn) (rest []permitReturn) {
	p.wait.RefusalIsStale = false
	c := op{command: Command{Kind: Give}, last: p.queue.LastID()}
	same, named := 0, returns[0].id != ""
	for same < len(returns) && len(c.command.IDs) < batch && named == (returns[same].id != "") {
		if named {
			c.command.IDs = append(c.command.IDs, returns[same].id)
		} else {
			c.command.N += int64(returns[same].n)
		}
		same++
	}
	c.returns = returns[:same:same]
	p.start(c)
	return returns[same:]
}

func (l latch) given(p *Pool, c *op, r *Result) {
	for _, one := range c.returns {
		p.effects.Answer(one.ref, machine.Answer{Kind: machine.Freed, Done: true, N: r.N[0]})
	}
	l.taken(p, c, r) // when count-downs keep coming, no other command reads the count
}

// grantUpTo grants the requests up to last: the latch was open at some time after they came. Later requests may have
// come when it was closed again.
func (p *Pool) grantUpTo(last uint64) {
	for _, req := range p.queue.Remove(func(req *Request) bool { return req.ID <= last }) {
		p.effects.Answer(req.Ref, machine.Answer{Kind: machine.Granted})
	}
	p.trySoon()
}
