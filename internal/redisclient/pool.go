package redisclient

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/slots"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

const (
	// maxBatch bounds how many calls one worker sends in one pipeline.
	maxBatch = 64
	// urgentWorkers bounds the goroutines that wait for Redis with urgent calls.
	urgentWorkers = 8
	// workers bounds the goroutines that wait for Redis with other calls.
	workers = 16
	// clusterWorkers bounds the goroutines that wait for replicas in a cluster, with one call each.
	clusterWorkers = 64
)

// pool runs calls on a few goroutines. The goroutines are started on demand and stay until the pool is closed, since a
// new goroutine for every call would have to grow its stack. Submitting never blocks.
type pool struct {
	client  rueidis.Client
	cluster bool
	// sharded reports whether the scripts use sharded pub/sub.
	sharded     bool
	reconnector *reconnector
	watch       Watch
	// inRound is Redis.InRound.
	inRound func(func())
	// loaded are the scripts of renewals that were sent with their source.
	loaded sync.Map
	// disconnects counts the times that all connections to a former master were closed; see follower.
	disconnects *atomic.Uint64
	// slots finds the servers for calls that wait for replicas in a cluster.
	slots slots.Finder

	// waiting is a call that waits to be sent with the next call; see Piggyback.
	waiting atomic.Pointer[Call]
	// replicas is the number of replicas that must confirm a call with Confirm.
	replicas int64
	// replicaTimeout bounds the wait for the replicas.
	replicaTimeout time.Duration

	mu sync.Mutex
	// There are separate lanes for urgent calls, for renewals in a cluster, and for calls that wait for replicas.
	urgent, renewing, normal, urgentConfirmed, normalConfirmed lane

	closed bool
	wg     sync.WaitGroup
	// pending is the number of calls without a reply.
	pending int
	// allReplied is closed when no call is pending; it is nil unless awaitReplies waits.
	allReplied chan struct{}
}

// lane is a queue of calls with its own workers.
type lane struct {
	queue   []Call
	head    int
	more    sync.Cond
	running int
	idle    int // workers that wait for calls, and are not yet woken
	max     int // workers
	batch   int // calls in one pipeline
}

// chooseScript replaces the call's script by its form for sharded pub/sub if the scripts use sharded pub/sub.
func (p *pool) chooseScript(c *Call) {
	if p.sharded && c.Script.Sharded != nil {
		c.Script = c.Script.Sharded
	}
}

func newPool(client rueidis.Client, reconnect *reconnector, cluster bool) *pool {
	p := &pool{
		client: client, reconnector: reconnect, cluster: cluster, disconnects: new(atomic.Uint64),
		slots: slots.Finder{Client: client}, inRound: func(f func()) { f() },
	}
	p.urgent.max, p.renewing.max, p.normal.max = urgentWorkers, urgentWorkers, workers
	p.urgentConfirmed.max, p.normalConfirmed.max = urgentWorkers, workers
	for _, l := range p.lanes() {
		l.more.L, l.batch = &p.mu, maxBatch
	}
	if cluster { // each WAIT is for the server of one slot
		p.urgentConfirmed.max, p.urgentConfirmed.batch = clusterWorkers, 1
		p.normalConfirmed.max, p.normalConfirmed.batch = clusterWorkers, 1
	}
	return p
}

func (p *pool) lanes() []*lane {
	return []*lane{&p.urgent, &p.renewing, &p.normal, &p.urgentConfirmed, &p.normalConfirmed}
}

// lane returns the lane for a call.
func (p *pool) lane(c *Call) *lane {
	switch confirm := p.confirms(c); {
	case confirm && c.Urgent:
		return &p.urgentConfirmed
	case confirm:
		return &p.normalConfirmed
	case c.Renews && p.cluster:
		return &p.renewing
	case c.Urgent:
		return &p.urgent
	}
	return &p.normal
}

func (p *pool) submit(c Call) {
	p.chooseScript(&c)
	l := p.lane(&c)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		// Not c.reply, for which c would have to be on the heap.
		go c.To.Replied(c.Seq, Reply{Format: c.Format, Err: errClosed})
		return
	}
	p.pending++
	l.queue = append(l.queue, c)
	if l.idle > 0 {
		l.idle-- // counts as woken, so that the next submit wakes another worker
		l.more.Signal()
	} else if l.running < l.max {
		l.running++
		p.wg.Go(func() { p.work(l) })
	}
	p.mu.Unlock()
}

func (p *pool) noteReplies(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending -= n; p.pending == 0 && p.allReplied != nil {
		close(p.allReplied)
		p.allReplied = nil
	}
}

// awaitReplies waits until every call has a reply, including calls that are submitted because of a reply, or
// until done.
func (p *pool) awaitReplies(done <-chan struct{}) {
	p.sendAlone(p.waiting.Load())
	p.mu.Lock()
	if p.pending == 0 {
		p.mu.Unlock()
		return
	}
	if p.allReplied == nil {
		p.allReplied = make(chan struct{})
	}
	replied := p.allReplied
	p.mu.Unlock()
	select {
	case <-replied:
	case <-done:
	}
}

// close refuses further calls and waits for the submitted ones.
func (p *pool) close() {
	p.sendAlone(p.waiting.Load())
	p.mu.Lock()
	p.closed = true
	for _, l := range p.lanes() {
		l.more.Broadcast()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// take waits for calls and removes up to a batch of them from the lane. It returns no calls if the worker should end.
func (p *pool) take(l *lane, batch []Call) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l.head == len(l.queue) && !p.closed {
		l.idle++
		l.more.Wait()
	}
	n := min(len(l.queue)-l.head, l.batch)
	batch = append(batch[:0], l.queue[l.head:l.head+n]...)
	clear(l.queue[l.head : l.head+n])
	l.head += n
	if 2*l.head >= len(l.queue) { // reuse the space even if the queue is never empty
		left := copy(l.queue, l.queue[l.head:])
		clear(l.queue[left:])
		l.queue, l.head = l.queue[:left], 0
		if left == 0 && cap(l.queue) > 1024 {
			l.queue = nil // free the memory of a burst
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
		batch = p.withWaiting(batch)
		p.run(batch)
		p.noteReplies(n)
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
			p.runOne(context.Background(), &live[i])
		}
		return
	}
	ctx := newDeadlineContext(deadline)
	defer ctx.forget()
	began, disconnects := p.watch.startTime(), p.disconnects.Load()
	results, unconfirmed := p.send(ctx, live, p.first)
	again, againUnconfirmed := p.sendUnknown(ctx, live, results)
	for i, result := range results {
		c, why := &live[i], unconfirmed
		if unknownScript(result) {
			result, why, again = again[0], againUnconfirmed, again[1:]
		}
		p.watch.reportCall(c, began, result, why)
		p.observe(c, result, disconnects)
		p.deliver(c, result, why, disconnects)
	}
}

// sendUnknown repeats the calls whose script the server did not know, in one pipeline.
func (p *pool) sendUnknown(ctx *deadlineContext, calls []Call, results []rueidis.RedisResult) (
	again []rueidis.RedisResult, unconfirmed *redisio.Error) {
	var unknown []Call
	for i, result := range results {
		if unknownScript(result) {
			unknown = append(unknown, calls[i])
		}
	}
	if unknown == nil {
		return nil, nil
	}
	return p.send(ctx, unknown, (*Call).withSource)
}

// send sends calls in one pipeline, and waits for replicas if a call asks for it.
func (p *pool) send(ctx *deadlineContext, calls []Call, as asCommand) (results []rueidis.RedisResult, unconfirmed *redisio.Error) {
	if p.replicas > 0 && slices.ContainsFunc(calls, func(c Call) bool { return p.confirms(&c) }) {
		return p.sendConfirmed(ctx, calls, as)
	}
	commands := make(rueidis.Commands, len(calls))
	for i := range calls {
		commands[i] = as(&calls[i], p.client.B())
	}
	return p.client.DoMulti(ctx, commands...), nil
}

// runOne sends one call, and delivers the reply.
func (p *pool) runOne(within context.Context, c *Call) {
	disconnects := p.disconnects.Load()
	result, unconfirmed := p.ask(within, c)
	p.deliver(c, result, unconfirmed, disconnects)
}

// observe passes a reply to the reconnector, unless connections were closed since the call: then it may be from a
// former master.
func (p *pool) observe(c *Call, result rueidis.RedisResult, disconnects uint64) {
	if p.disconnects.Load() == disconnects {
		p.reconnector.observe(c, result)
	}
}

// ask sends one call, and waits for the reply.
func (p *pool) ask(within context.Context, c *Call) (result rueidis.RedisResult, unconfirmed *redisio.Error) {
	ctx := newDeadlineContext(c.Deadline)
	ctx.Context = within
	defer ctx.forget()
	began, disconnects := p.watch.startTime(), p.disconnects.Load()
	result, unconfirmed = p.sendOne(ctx, c, p.first)
	if unknownScript(result) {
		result, unconfirmed = p.sendOne(ctx, c, (*Call).withSource)
	}
	p.watch.reportCall(c, began, result, unconfirmed)
	p.observe(c, result, disconnects)
	return result, unconfirmed
}

// sendOne sends one call, and waits for replicas if the call asks for that.
func (p *pool) sendOne(ctx *deadlineContext, c *Call, as asCommand) (result rueidis.RedisResult, unconfirmed *redisio.Error) {
	if !p.confirms(c) {
		return p.client.Do(ctx, as(c, p.client.B())), nil
	}
	results, unconfirmed := p.sendConfirmed(ctx, []Call{*c}, as)
	return results[0], unconfirmed
}

// tooLate reports whether the deadline of a call has passed; then it delivers errNotSent.
func (c *Call) tooLate(now time.Time) bool {
	if c.Deadline.After(now) {
		return false
	}
	c.reply(Reply{Err: errNotSent})
	return true
}

// first returns the command for the first attempt of a call. The first renewal with each script carries the
// source, since a renewal may have no time for a second round trip.
func (p *pool) first(c *Call, b rueidis.Builder) rueidis.Completed {
	if c.Renews {
		if _, known := p.loaded.LoadOrStore(c.Script, nil); !known {
			return c.withSource(b)
		}
	}
	return c.command(b)
}

func unknownScript(result rueidis.RedisResult) bool {
	err, isRedis := rueidis.IsRedisErr(result.Error())
	return isRedis && err.IsNoScript()
}

// deliver delivers the reply to a call. disconnects is the value of p.disconnects when the call was sent: if it has
// changed, the reply is from a former master.
func (p *pool) deliver(c *Call, result rueidis.RedisResult, unconfirmed *redisio.Error, disconnects uint64) {
	if p.disconnects.Load() != disconnects {
		c.reply(Reply{Err: errMoved})
		return
	}
	if many, ok := c.To.(batchReceiver); ok {
		p.inRound(func() { many.deliverBatch(p, result, unconfirmed) }) // the receivers may submit renewals
		return
	}
	reply := c.read(result)
	reply.Err, reply.Unconfirmed = p.explainMoved(reply.Err), unconfirmed
	if c.Second.Script != nil && reply.Err == nil && reply.N[0] == scripts.TokensLeft {
		reply = p.runSecond(c)
		reply.Unconfirmed = cmp.Or(reply.Unconfirmed, unconfirmed)
	}
	c.reply(reply)
}

// runSecond runs Call.Second. Its error is always Unsure, since the first script was carried out.
func (p *pool) runSecond(c *Call) Reply {
	second := Call{
		Script: c.Second.Script, Keys: []string{c.Second.Key}, Args: []string{c.Second.Arg}, Deadline: c.Deadline, Confirm: c.Confirm,
	}
	result, unconfirmed := p.ask(context.Background(), &second)
	reply := second.read(result)
	reply.Unconfirmed = unconfirmed
	if reply.Err != nil {
		err := *reply.Err
		err.Unsure = true
		reply.Err = &err
	}
	return reply
}
