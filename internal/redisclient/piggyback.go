package redisclient

import "time"

// rueidis reads and writes a connection on the goroutines of its callers until two calls overlap. From
// then on it uses two goroutines for as long as the connection lasts, and each call has to wake them. A
// call whose caller does not wait is therefore sent together with the next call: a program that takes
// one lock after another then needs no further goroutine.

// piggybackDelay is the time that a call waits for another call with which it can be sent.
const piggybackDelay = 10 * time.Millisecond

// Piggyback takes a call whose caller does not wait for the reply, and returns at once. The call is sent
// in one pipeline with the next call, or alone after 10 ms. Its reply is delivered exactly once.
func (r *Redis) Piggyback(c Call) {
	p := r.pool
	// In a cluster the next call may be for another server, and its reply would wait for both.
	if p.cluster || !p.waiting.CompareAndSwap(nil, &c) {
		p.submit(c)
		return
	}
	time.AfterFunc(piggybackDelay, func() { p.sendAlone(&c) })
}

// sendAlone sends a call, unless it was sent together with another call meanwhile.
func (p *pool) sendAlone(c *Call) {
	if c != nil && p.waiting.CompareAndSwap(c, nil) {
		p.submit(*c)
	}
}

// withWaiting puts the waiting call, if there is one, before the batch. So the batch finds the same state in Redis as
// if the call had not waited.
func (p *pool) withWaiting(batch []Call) []Call {
	c := p.waiting.Load()
	if c == nil || !p.waiting.CompareAndSwap(c, nil) {
		return batch
	}
	return append([]Call{*c}, batch...)
}

// runWithWaiting sends the waiting call with c, and with the deadline of c, so that c does not take longer.
func (p *pool) runWithWaiting(c *Call) {
	batch := p.withWaiting([]Call{*c})
	for i := range batch {
		batch[i].Deadline = c.Deadline
	}
	p.run(batch)
}
