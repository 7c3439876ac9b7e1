package redisio

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

const (
	// maxBatch bounds how many calls one worker sends in one pipeline.
	maxBatch = 64
	// urgentWorkers and workers bound the goroutines that wait for Redis.
	urgentWorkers = 8
	workers       = 16
)

// pool runs calls on a few goroutines, which are started when there is work for one
// more and stay until the pool is closed: a fresh goroutine would have to grow its
// stack for every call. Submitting never blocks.
type pool struct {
	client  rueidis.Client
	cluster bool
	// sharded says that the scripts use sharded pub/sub.
	sharded bool
	stale   *reconnector
	watch   Watch
	// cuts is how often all connections to a master were closed, since it is one no more.
	cuts *atomic.Uint64

	// along is a call that is to go along with the next one.
	along atomic.Pointer[Call]

	mu     sync.Mutex
	urgent lane
	normal lane
	closed bool
	wg     sync.WaitGroup
	// pending is how many calls are not answered yet; drained is closed when there are
	// none, if somebody waits for that.
	pending int
	drained chan struct{}
}

// lane is a queue with workers of its own.
type lane struct {
	queue   []Call
	head    int
	more    sync.Cond
	running int
	idle    int // waiting for more, and not yet woken
	max     int
}

func newPool(client rueidis.Client, stale *reconnector) *pool {
	p := &pool{client: client, stale: stale, cuts: new(atomic.Uint64), urgent: lane{max: urgentWorkers}, normal: lane{max: workers}}
	p.urgent.more.L, p.normal.more.L = &p.mu, &p.mu
	return p
}

// fit chooses the form of a call's script for this server.
func (p *pool) fit(c *Call) {
	if p.sharded && c.Script.Sharded != nil {
		c.Script = c.Script.Sharded
	}
}

func (p *pool) submit(c Call) {
	p.fit(&c)
	l := &p.normal
	if c.Urgent {
		l = &p.urgent
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		go c.To.Replied(c.Seq, Reply{Err: errClosed})
		return
	}
	p.pending++
	l.queue = append(l.queue, c)
	if l.idle > 0 {
		l.idle-- // it is woken for this call, and for no other
		l.more.Signal()
	} else if l.running < l.max {
		l.running++
		p.wg.Go(func() { p.work(l) })
	}
	p.mu.Unlock()
}

func (p *pool) answered(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending -= n; p.pending == 0 && p.drained != nil {
		close(p.drained)
		p.drained = nil
	}
}

// drain waits until every call is answered, those too that are made because of an answer,
// or until done.
func (p *pool) drain(done <-chan struct{}) {
	p.sendAlone(p.along.Load())
	p.mu.Lock()
	if p.pending == 0 {
		p.mu.Unlock()
		return
	}
	if p.drained == nil {
		p.drained = make(chan struct{})
	}
	drained := p.drained
	p.mu.Unlock()
	select {
	case <-drained:
	case <-done:
	}
}

// close refuses further calls and waits for those that were submitted.
func (p *pool) close() {
	p.sendAlone(p.along.Load())
	p.mu.Lock()
	p.closed = true
	p.urgent.more.Broadcast()
	p.normal.more.Broadcast()
	p.mu.Unlock()
	p.wg.Wait()
}

// take waits for calls and moves up to a batch of them out of the lane; none means
// that the worker ends.
func (p *pool) take(l *lane, batch []Call) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l.head == len(l.queue) && !p.closed {
		l.idle++
		l.more.Wait()
	}
	n := min(len(l.queue)-l.head, maxBatch)
	batch = append(batch[:0], l.queue[l.head:l.head+n]...)
	clear(l.queue[l.head : l.head+n])
	l.head += n
	if 2*l.head >= len(l.queue) { // move up, also if the queue is never empty
		left := copy(l.queue, l.queue[l.head:])
		clear(l.queue[left:])
		l.queue, l.head = l.queue[:left], 0
		if left == 0 && cap(l.queue) > 1024 {
			l.queue = nil // a burst must not be remembered for ever
		}
	}
	return batch
}

func (p *pool) work(l *lane) {
	var batch []Call
	for {
		batch = p.take(l, batch)
		if len(batch) == 0 {
			return
		}
		n := len(batch)
		batch = p.withAlong(batch)
		p.run(batch)
		p.answered(n)
		clear(batch)
	}
}

// run sends a batch in one pipeline and delivers the replies.
func (p *pool) run(batch []Call) {
	now := time.Now()
	live := batch[:0]
	var deadline time.Time
	for _, c := range batch {
		if c.tooLate(now) {
			continue
		}
		if c.Deadline.After(deadline) {
			deadline = c.Deadline
		}
		live = append(live, c)
	}
	if len(live) < 2 {
		for i := range live {
			p.runOne(&live[i])
		}
		return
	}
	ctx := newUntil(deadline)
	defer ctx.forget()
	commands := make(rueidis.Commands, len(live))
	for i := range live {
		commands[i] = live[i].command(p.client.B())
	}
	began := p.watch.began()
	cuts := p.cuts.Load()
	for i, result := range p.client.DoMulti(ctx, commands...) {
		if unknownScript(result) {
			result = p.client.Do(ctx, live[i].withSource(p.client.B()))
		}
		p.watch.called(&live[i], began, result)
		p.stale.look(&live[i], result)
		p.deliver(&live[i], result, cuts)
	}
}

// runOne sends one call, and delivers the reply.
func (p *pool) runOne(c *Call) {
	cuts := p.cuts.Load()
	p.deliver(c, p.ask(c), cuts)
}

// ask sends one call, and waits for the reply.
func (p *pool) ask(c *Call) rueidis.RedisResult {
	ctx := newUntil(c.Deadline)
	defer ctx.forget()
	began := p.watch.began()
	result := p.client.Do(ctx, c.command(p.client.B()))
	if unknownScript(result) {
		result = p.client.Do(ctx, c.withSource(p.client.B()))
	}
	p.watch.called(c, began, result)
	p.stale.look(c, result)
	return result
}

// tooLate answers a call that need not be sent any more.
func (c *Call) tooLate(now time.Time) bool {
	if c.Deadline.After(now) {
		return false
	}
	c.To.Replied(c.Seq, Reply{Err: errNotSent})
	return true
}

func unknownScript(result rueidis.RedisResult) bool {
	err, isRedis := rueidis.IsRedisErr(result.Error())
	return isRedis && err.IsNoScript()
}

// deliver delivers the reply to a call that was made after so many cuts.
func (p *pool) deliver(c *Call, result rueidis.RedisResult, cuts uint64) {
	if p.cuts.Load() != cuts {
		c.To.Replied(c.Seq, Reply{Err: errMoved})
		return
	}
	if many, ok := c.To.(batchReceiver); ok {
		many.repliedBatch(p, result)
		return
	}
	reply := c.read(result)
	reply.Err = p.moved(reply.Err)
	if c.Rest != nil && reply.Err == nil && reply.N[0] == scripts.TokensLeft {
		reply = p.rest(c)
	}
	c.To.Replied(c.Seq, reply)
}

// rest runs what a call has left to do. If that fails, a part has been done all the same.
func (p *pool) rest(c *Call) Reply {
	rest := c.Rest(c)
	rest.Deadline = c.Deadline
	reply := rest.read(p.ask(&rest))
	if reply.Err != nil {
		err := *reply.Err
		err.Unsure = true
		reply.Err = &err
	}
	return reply
}
