package permit

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// latch is what Redis has of a latch, and what is to be expected of it.
type latch struct {
	count int
	ids   map[string]bool
	// asked is how many different count-downs were asked for, of all that there will be.
	asked, all int
	// lastOpen is when it was last seen open.
	lastOpen Instant
}

// execute does what the scripts do, and reports whether that is published.
func (l *latch) execute(w *world, c Command) (r Result, published bool) {
	before := l.count
	switch c.Kind {
	case Set:
		if l.count == 0 {
			l.count, l.all, l.asked, l.ids = int(c.N), int(c.N), 0, map[string]bool{}
			r.N[0] = 1
		}
		r.N[1] = int64(l.count)
	case Give:
		l.count -= int(c.N)
		for _, id := range c.IDs {
			if !l.ids[id] && before > 0 {
				l.ids[id] = true
				l.count--
			}
		}
		if l.count < 0 && before > 0 {
			w.fail("counted down to %d", l.count)
		}
		l.count = max(l.count, 0)
		r.N[0] = int64(l.count)
	default:
		r.N[0] = int64(l.count)
	}
	if l.count == 0 && l.asked < l.all {
		w.fail("open after %d of %d", l.asked, l.all)
	}
	return r, (before == 0) != (l.count == 0)
}

func (l *latch) check(w *world) {
	if l.count == 0 {
		l.lastOpen = w.now
	}
	for _, p := range w.processes {
		if l.count > 0 || p.pool.queue.len() == 0 {
			p.free = w.now
		} else if w.now-p.free > 5*time.Second {
			w.fail("process %d sleeps for %v before an open latch", p.id, w.now-p.free)
		}
	}
}

// waits has somebody wait who is granted only what is true at some time of his wait.
func (l *latch) waits(w *world, p *process, try bool, limit time.Duration) {
	w.numbers++
	req := &request{id: w.numbers, asked: w.now}
	p.step(func(pool *Pool) {
		r := Request{ID: req.id, Try: try, Ref: req}
		if limit > 0 {
			r.Deadline = w.now + limit
		}
		pool.Wait(w.now, r)
	})
}

// countsDown has the processes count down, n times in all; some by an id, which others repeat.
func (l *latch) countsDown(w *world, round, n int) {
	for i := range n {
		id := ""
		repeats := 1
		if w.chance(50) {
			id, repeats = fmt.Sprint(round, "-", i), 1+w.rand.IntN(3)
		}
		w.after(time.Duration(w.rand.IntN(int(50*time.Millisecond))), func() {
			l.asked++
			for range repeats {
				p := w.processes[w.rand.IntN(len(w.processes))]
				p.step(func(pool *Pool) { pool.CountDown(w.now, id, nil) })
			}
		})
	}
}

// Whatever is lost or comes late, a latch opens when all have counted down, each of them once; nobody
// passes it while it is closed, and nobody sleeps when it is open.
func TestRandomLatches(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(t, seed)
		l := &latch{}
		w.latch, w.processes = l, nil
		for i := range 3 {
			w.join(i)
		}
		for round := range 5 {
			n := 1 + w.rand.IntN(8)
			for _, p := range w.processes {
				p.step(func(pool *Pool) { pool.Change(w.now, Change{Kind: Set, N: int64(n)}) })
			}
			w.run(3 * time.Second)
			if l.count != n {
				w.fail("round %d: the count is %d, want %d", round, l.count, n)
			}
			l.countsDown(w, round, n)
			for range 20 {
				l.waits(w, w.processes[w.rand.IntN(3)], w.chance(10), time.Duration(w.rand.IntN(2))*time.Duration(w.rand.IntN(int(time.Second))))
				w.run(time.Duration(w.rand.IntN(int(5 * time.Millisecond))))
			}
			w.run(20 * time.Second)
			if l.count != 0 {
				w.fail("round %d: the latch is still closed, with a count of %d", round, l.count)
			}
		}
		w.loss, w.deaf = 0, 100
		w.run(2 * time.Minute)
		for _, p := range w.processes {
			if !p.pool.Idle() {
				w.fail("process %d is not idle: call %+v, queue %v", p.id, p.pool.call, p.pool.queue)
			}
		}
	}
}

// All who wait in a process cost one command and one subscription, and a message lets all of them in
// who were there when it came, also one who looks once. What is counted down meanwhile goes out in one command.
func TestLatchCommands(t *testing.T) {
	cfg := &lock.Config{Watchdog: 30 * time.Second, Poll: time.Second, CallTimeout: time.Second, QueueLimit: 1000}
	p := NewLatch(cfg)
	var sent []Command
	var effects []EffectKind
	answers := map[any]Answer{}
	step := func(event func()) {
		if !p.HasNextNumber() {
			p.SetNextNumber(uint64(len(sent) + 1))
		}
		event()
		for e := p.Effects(); e != nil; e = p.Effects() {
			switch e.Kind {
			case Send:
				sent = append(sent, *e.Command)
			case Reply:
				answers[e.Ref] = e.Answer
			default:
				effects = append(effects, e.Kind)
			}
		}
	}
	reply := func(count int64) {
		step(func() { p.Replied(0, sent[len(sent)-1].Number, Result{N: [2]int64{count}}) })
	}
	wait := func(id uint64) { step(func() { p.Wait(0, Request{ID: id, Ref: id}) }) }
	for id := range uint64(100) {
		wait(id + 1)
	}
	if reply(3); len(sent) != 1 {
		t.Fatalf("%d commands for 100 waiters", len(sent))
	}
	step(func() { p.Subscribed(0) })
	reply(3)
	step(func() { p.Wait(0, Request{ID: 101, Try: true, Ref: "try"}) })
	step(func() { p.Signal(0) })
	wait(102)
	step(func() { p.CountDown(0, "", "a") })
	step(func() { p.CountDown(0, "x", "b") })
	step(func() { p.CountDown(0, "", "c") })
	if reply(0); len(answers) != 101 || answers["try"].Kind != Granted {
		t.Fatalf("%d answers, %+v", len(answers), answers["try"])
	}
	if c := sent[len(sent)-1]; c.Kind != Give || c.N != 2 || fmt.Sprint(c.IDs) != "[x]" || answers[uint64(102)].Kind != 0 {
		t.Fatalf("then %+v, and 102 was told %+v", c, answers[uint64(102)])
	}
	if reply(0); answers["b"].Kind != Returned || answers[uint64(102)].Kind != Granted || !p.Idle() {
		t.Errorf("the count-downs were answered %+v, 102 %+v; %v", answers["b"], answers[uint64(102)], p.call)
	}
	if got, want := fmt.Sprint(effects), fmt.Sprint([]EffectKind{Subscribe, Unsubscribe}); got != want || len(sent) != 4 {
		t.Errorf("effects %s, want %s; %d commands", got, want, len(sent))
	}
	step(func() { p.Close(0, lock.Closed, "the end") })
	step(func() { p.CountDown(0, "", "late") })
	if answers["late"].Reason != lock.Closed {
		t.Errorf("a late one is answered %+v", answers["late"])
	}
}
