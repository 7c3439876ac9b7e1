package redisio

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// maxBatch bounds how many calls one worker sends in one pipeline.
	maxBatch = 64
	// urgentWorkers and workers bound the goroutines that wait for Redis.
	urgentWorkers = 8
	workers       = 16
)

// pool runs calls on goroutines that are started when there is work and end when
// there is none. Submitting never blocks.
type pool struct {
	client rueidis.Client

	mu     sync.Mutex
	urgent lane
	normal lane
	closed bool
	wg     sync.WaitGroup
}

// lane is a queue with workers of its own.
type lane struct {
	queue   []Call
	head    int
	running int
	max     int
}

func newPool(client rueidis.Client) *pool {
	return &pool{client: client, urgent: lane{max: urgentWorkers}, normal: lane{max: workers}}
}

func (p *pool) submit(c Call) {
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
	l.queue = append(l.queue, c)
	start := l.running < l.max
	if start {
		l.running++
		p.wg.Add(1)
	}
	p.mu.Unlock()
	if start {
		go p.work(l)
	}
}

// close refuses further calls and waits for those that were submitted.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.wg.Wait()
}

// take moves up to a batch of calls out of the lane; none means that the worker ends.
func (p *pool) take(l *lane, batch []Call) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(l.queue)-l.head, maxBatch)
	batch = append(batch[:0], l.queue[l.head:l.head+n]...)
	clear(l.queue[l.head : l.head+n])
	l.head += n
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
		if cap(l.queue) > 1024 {
			l.queue = nil // a burst must not be remembered for ever
		}
	}
	if n == 0 {
		l.running--
	}
	return batch
}

func (p *pool) work(l *lane) {
	defer p.wg.Done()
	var batch []Call
	for {
		batch = p.take(l, batch)
		if len(batch) == 0 {
			return
		}
		p.run(batch)
		clear(batch)
	}
}

// run sends a batch in one pipeline and delivers the replies.
func (p *pool) run(batch []Call) {
	now := time.Now()
	live := batch[:0]
	var deadline time.Time
	for _, c := range batch {
		if !c.Deadline.After(now) {
			c.To.Replied(c.Seq, Reply{Err: errNotSent})
			continue
		}
		if c.Deadline.After(deadline) {
			deadline = c.Deadline
		}
		live = append(live, c)
	}
	if len(live) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if len(live) == 1 {
		p.runOne(ctx, &live[0])
		return
	}
	commands := make(rueidis.Commands, len(live))
	for i := range live {
		commands[i] = live[i].command(p.client.B())
	}
	for i, result := range p.client.DoMulti(ctx, commands...) {
		if unknownScript(result) {
			result = p.client.Do(ctx, live[i].withSource(p.client.B()))
		}
		live[i].deliver(result)
	}
}

func (p *pool) runOne(ctx context.Context, c *Call) {
	result := p.client.Do(ctx, c.command(p.client.B()))
	if unknownScript(result) {
		result = p.client.Do(ctx, c.withSource(p.client.B()))
	}
	c.deliver(result)
}

func unknownScript(result rueidis.RedisResult) bool {
	err, isRedis := rueidis.IsRedisErr(result.Error())
	return isRedis && err.IsNoScript()
}

func (c *Call) deliver(result rueidis.RedisResult) {
	if many, ok := c.To.(batchReceiver); ok {
		many.repliedBatch(result)
		return
	}
	c.To.Replied(c.Seq, read(result))
}
