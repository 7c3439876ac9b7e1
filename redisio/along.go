package redisio

import "time"

// The client reads and writes its connection on the goroutines of its callers, until two calls
// overlap. From then on it has two goroutines for that, for as long as the connection lasts, and
// each call has to wake them. So a call that nobody waits for goes along with another: who takes
// one lock after the other pays for no goroutine but their own.

// alongWithin is how long a call waits for another with which it can go along.
const alongWithin = 10 * time.Millisecond

// RunAlong takes a call that nobody waits for, and returns at once. It goes in one pipeline with
// the next call, or alone if none comes soon. Its reply is delivered exactly once.
func (r *Redis) RunAlong(c Call) {
	p := r.pool
	// In a cluster the next call may be for another server, and would wait for both.
	if p.cluster || !p.along.CompareAndSwap(nil, &c) {
		p.submit(c)
		return
	}
	time.AfterFunc(alongWithin, func() { p.sendAlone(&c) })
}

// sendAlone sends a call that nothing has gone along with.
func (p *pool) sendAlone(c *Call) {
	if c != nil && p.along.CompareAndSwap(c, nil) {
		p.submit(*c)
	}
}

// withAlong puts the call that is to go along, if there is one, before the others: what they find
// out is what it would have been if it had not waited.
func (p *pool) withAlong(batch []Call) []Call {
	c := p.along.Load()
	if c == nil || !p.along.CompareAndSwap(c, nil) {
		return batch
	}
	return append([]Call{*c}, batch...)
}

// runWithAlong sends one call with the one that is to go along, which has no more time than that.
func (p *pool) runWithAlong(c *Call) {
	batch := p.withAlong([]Call{*c})
	for i := range batch {
		batch[i].Deadline = c.Deadline
	}
	p.run(batch)
}
