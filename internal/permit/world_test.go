package permit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// world is a semaphore in Redis, some processes with a pool each, and a network that delays, loses
// and repeats what goes over it. All its times are simulated.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	now    Instant
	events []event
	log    []string

	// loss is how many of 100 commands or replies are lost, and deaf how many messages.
	loss, deaf int

	// latch is what Redis has instead of permits in the world of a latch.
	latch      *latch
	free, made int
	processes  []*process
	numbers    uint64
}

type event struct {
	at Instant
	do func()
}

// process is a process and its clients.
type process struct {
	w    *world
	id   int
	dead bool
	pool Pool
	// number and reply are Redis's record of its last command; taken is what it has by Redis's count.
	number uint64
	reply  Result
	taken  int
	// held is what its clients have.
	held    int
	listens bool
	granted uint64
	wakeAt  Instant
	ends    map[uint64]string
	free    Instant // since when the head could be served
}

// request is a client's request; its id is the pool's.
type request struct {
	id uint64
	n  int
	// asked is when somebody asked to wait for a latch.
	asked Instant
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), loss: 10, deaf: 20}
	w.free = 1 + w.rand.IntN(6)
	w.made = w.free
	for i := range 3 {
		w.join(i)
	}
	return w
}

func (w *world) join(i int) {
	cfg := &lock.Config{
		Watchdog: 30 * time.Second, HandOffLimit: 5 * time.Millisecond, ForcedYield: time.Second, Poll: time.Second,
		CallTimeout: 100 * time.Millisecond, QueueLimit: 20, Seed: w.rand.Uint64(),
	}
	p := &process{w: w, id: i, pool: New(cfg), ends: map[uint64]string{}}
	if w.latch != nil {
		p.pool = NewLatch(cfg)
	}
	w.processes = append(w.processes, p)
}

func (w *world) fail(format string, values ...any) {
	w.t.Helper()
	for _, line := range w.log[max(0, len(w.log)-60):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, values...)
}

func (w *world) logf(format string, values ...any) {
	w.log = append(w.log, fmt.Sprintf("%v ", w.now)+fmt.Sprintf(format, values...))
}

func (w *world) after(d time.Duration, do func()) {
	at := w.now + d
	i, _ := slices.BinarySearchFunc(w.events, at, func(e event, at Instant) int {
		if e.at <= at {
			return -1
		}
		return 1
	})
	w.events = slices.Insert(w.events, i, event{at, do})
}

func (w *world) chance(percent int) bool { return w.rand.IntN(100) < percent }

func (w *world) delay() time.Duration { return time.Duration(1 + w.rand.IntN(int(2*time.Millisecond))) }

// run lets so much time pass.
func (w *world) run(d time.Duration) {
	end := w.now + d
	for len(w.events) > 0 && w.events[0].at <= end {
		e := w.events[0]
		w.events, w.now = w.events[1:], e.at
		e.do()
		w.check()
	}
	w.now = end
}

// check compares what the processes have with what Redis has given them.
func (w *world) check() {
	if w.latch != nil {
		w.latch.check(w)
		return
	}
	sum := w.free
	for _, p := range w.processes {
		sum += p.taken
		if p.held > p.taken {
			w.fail("process %d holds %d, and has taken %d", p.id, p.held, p.taken)
		}
		// A process must not sleep while its first waiter could be served.
		if p.dead || p.pool.queue.len() == 0 || w.free < p.pool.queue.head().N {
			p.free = w.now
		} else if w.now-p.free > 5*time.Second {
			w.fail("process %d sleeps for %v with %d free", p.id, w.now-p.free, w.free)
		}
	}
	if sum != w.made {
		w.fail("%d are free and taken, and %d were made", sum, w.made)
	}
}

// step applies an event to a process, on a copy of its pool, and carries out what follows.
func (p *process) step(event func(pool *Pool)) {
	if p.dead {
		return
	}
	if !p.pool.HasNextNumber() {
		p.w.numbers++
		p.pool.SetNextNumber(p.w.numbers)
	}
	next := p.pool
	event(&next)
	if p.w.chance(2) { // it has crashed half way, and the event comes again
		next = p.pool
		event(&next)
	}
	p.pool = next
	for e := p.pool.Effects(); e != nil; e = p.pool.Effects() {
		p.perform(*e)
	}
	at, ok := p.pool.NextWake()
	if ok && at <= p.w.now {
		p.w.fail("process %d is to be woken at %v: %+v", p.id, at, p.pool)
	}
	if ok && (p.wakeAt <= p.w.now || at < p.wakeAt) {
		p.wakeAt = at
		p.w.after(max(at-p.w.now, 0), func() { p.step(func(pool *Pool) { pool.Tick(p.w.now) }) })
	}
}

func (p *process) perform(e Effect) {
	switch e.Kind {
	case Send:
		p.w.logf("%d sends %+v", p.id, *e.Command)
		p.send(*e.Command)
	case Reply:
		p.answered(e.Ref, e.Answer)
	case Subscribe:
		p.w.after(p.w.delay(), func() {
			p.listens = true
			p.step(func(pool *Pool) { pool.Subscribed(p.w.now) })
		})
	case Unsubscribe:
		p.listens = false
	case Forgotten:
		p.w.fail("forgotten: %s", e.Answer.Detail)
	}
}

func (p *process) send(c Command) {
	w := p.w
	fail := func(err string, unsure bool) {
		w.after(w.delay(), func() {
			p.step(func(pool *Pool) {
				pool.Replied(w.now, c.Number, Result{Err: errors.New(err), Transient: true, Unsure: unsure})
			})
		})
	}
	if w.chance(w.loss) {
		switch w.rand.IntN(3) {
		case 0:
			fail("not sent", false)
			return
		case 1:
			fail("lost", true)
			return
		default:
			fail("no reply", true)
		}
	}
	w.after(w.delay(), func() {
		r, ok := w.execute(p, c)
		if w.chance(w.loss) { // a copy of it comes late
			w.after(time.Duration(w.rand.IntN(int(time.Second))), func() { w.execute(p, c) })
		}
		if !ok || w.chance(w.loss) {
			return // nor does the reply come
		}
		w.after(w.delay(), func() { p.step(func(pool *Pool) { pool.Replied(w.now, c.Number, r) }) })
	})
}

// execute does what the scripts do.
func (w *world) execute(p *process, c Command) (r Result, ok bool) {
	if c.Number <= p.number {
		return p.reply, c.Number == p.number
	}
	publish := func() {
		for _, other := range w.processes {
			if other.listens && !w.chance(w.deaf) {
				w.after(w.delay(), func() { other.step(func(pool *Pool) { pool.Signal(w.now) }) })
			}
		}
	}
	if w.latch != nil {
		r, news := w.latch.execute(w, c)
		if news {
			publish()
		}
		p.number, p.reply = c.Number, r
		w.logf("%d has %+v carried out, %+v", p.id, c, r)
		return r, true
	}
	add := func(n int) {
		w.free += n
		publish()
		r.N = [2]int64{1, int64(w.free)}
	}
	switch c.Kind {
	case Take:
		taken := 0
		for _, n := range c.Wanted {
			if taken+n > w.free {
				break
			}
			taken += n
			r.N[0]++
		}
		w.free -= taken
		p.taken += taken
		r.N[1] = int64(w.free)
	case Yield:
		others := slices.ContainsFunc(w.processes, func(o *process) bool { return o != p && o.listens })
		if !others && !c.Forced {
			r.N[1] = int64(w.free)
			break
		}
		fallthrough
	case Give:
		p.taken -= int(c.N)
		add(int(c.N))
	case Add:
		w.made += int(c.N)
		add(int(c.N))
	case Drain:
		r.N[0] = int64(w.free)
		p.taken += w.free
		w.free = 0
	}
	p.number, p.reply = c.Number, r
	w.logf("%d has %s carried out, %+v: %d free", p.id, []string{"", "take", "give", "yield", "add", "set", "drain", "inspect"}[c.Kind], r, w.free)
	return r, true
}

// answered is what a client does with an answer: it gives back what it gets, after a while.
func (p *process) answered(ref any, a Answer) {
	req, ok := ref.(*request)
	if !ok {
		return
	}
	if end, twice := p.ends[req.id]; twice {
		p.w.fail("request %d of process %d is answered with %+v after %s", req.id, p.id, a, end)
	}
	p.ends[req.id] = fmt.Sprintf("%+v", a)
	p.w.logf("%d's request %d for %d: %+v", p.id, req.id, req.n, a)
	switch {
	case p.w.latch == nil:
	case a.Kind == Granted && p.w.latch.lastOpen < req.asked:
		p.w.fail("request %d passes a latch that has been closed since before it came", req.id)
		fallthrough
	default:
		return
	}
	switch a.Kind {
	case Granted:
		if req.n == 0 { // a Drain
			if a.N > 0 {
				p.hold(int(a.N))
			}
			return
		}
		if req.id < p.granted {
			p.w.fail("request %d of process %d comes after %d", req.id, p.id, p.granted)
		}
		p.granted = req.id
		p.hold(req.n)
	}
}

func (p *process) hold(n int) {
	p.held += n
	p.w.after(time.Duration(p.w.rand.IntN(int(20*time.Millisecond))), func() {
		if p.dead {
			return
		}
		p.held -= n
		p.step(func(pool *Pool) { pool.Release(p.w.now, n, false, nil) })
	})
}

// act is one thing that somebody does.
func (w *world) act() {
	p := w.processes[w.rand.IntN(len(w.processes))]
	if p.dead {
		return
	}
	w.numbers++
	req := &request{id: w.numbers, n: 1 + w.rand.IntN(min(w.made, 3))}
	switch w.rand.IntN(40) {
	case 0:
		p.step(func(pool *Pool) { pool.Change(w.now, Change{Kind: Add, N: 1, Ref: req}) })
	case 1:
		req.n = 0
		p.step(func(pool *Pool) { pool.Change(w.now, Change{Kind: Drain, Ref: req}) })
	case 2:
		p.step(func(pool *Pool) { pool.Change(w.now, Change{Kind: Inspect, Ref: req}) })
	case 3, 4:
		p.step(func(pool *Pool) { pool.Acquire(w.now, Request{ID: req.id, N: req.n, Try: true, Ref: req}) })
	case 5:
		if p.pool.queue.len() > 0 {
			id := p.pool.queue.requests[w.rand.IntN(p.pool.queue.len())].ID
			p.step(func(pool *Pool) { pool.Cancel(w.now, id, 0, nil) })
		}
	case 6:
		if w.chance(20) { // the process dies, with all that it has
			w.logf("%d dies", p.id)
			p.dead, p.listens = true, false
			w.after(w.delay(), func() {
				w.free += p.taken // an operator gives back what it had
				p.taken, p.held, p.number = 0, 0, 1<<62
			})
			w.join(len(w.processes))
		}
	case 7:
		p.step(func(pool *Pool) {
			pool.Acquire(w.now, Request{ID: req.id, N: req.n, Deadline: w.now + 30*time.Millisecond, Ref: req})
		})
	default:
		p.step(func(pool *Pool) { pool.Acquire(w.now, Request{ID: req.id, N: req.n, Ref: req}) })
	}
}

// Whatever is lost or comes late and whoever dies, permits neither come into being nor vanish; each
// process serves its waiters in their order; and nobody sleeps while there are permits for him.
func TestRandomWorlds(t *testing.T) {
	for seed := range uint64(150) {
		w := newWorld(t, seed)
		for range 300 {
			w.act()
			w.run(time.Duration(w.rand.IntN(int(8 * time.Millisecond))))
		}
		// Now nothing is lost but messages, and all requests come to an end.
		w.loss = 0
		w.deaf = 100
		w.run(2 * time.Minute)
		for _, p := range w.processes {
			if !p.dead && (!p.pool.Idle() || p.taken != 0) {
				w.fail("process %d has %d permits and %d waiters in the end: held %d, owed %v, call %+v, queue %v", p.id, p.taken, p.pool.Waiters(), p.held, p.pool.owed, p.pool.call, p.pool.queue)
			}
		}
	}
}
