package leased

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// world is some processes that share permits in a model of Redis, over a network that delays and loses
// commands and replies, and delivers commands twice.
type world struct {
	t      *testing.T
	random *rand.Rand
	now    Instant
	calm   bool // nothing is lost any more
	free   int
	made   int // how many there are
	taken  map[ID]Instant
	all    []*process
	events []arrival
	log    []string
}

// arrival is something that reaches somebody at a time.
type arrival struct {
	at Instant
	do func()
}

// process is one of them. It is dead when it has no Permits.
type process struct {
	w    *world
	name int
	*Permits
	requests uint64
	// holds are those that its holders know of, each with its permit and its end; answers counts the
	// answers to each request.
	holds   map[uint64]known
	answers map[uint64]int
	wants   map[uint64]bool // false: of an owner who has died since, so that there may be no answer
	listens bool
	// The record of its last command in Redis.
	last  uint64
	reply Result
}

type known struct {
	permit ID
	until  Instant
}

func (w *world) later(most time.Duration, do func()) {
	w.events = append(w.events, arrival{w.now + time.Duration(w.random.Int64N(int64(most))), do})
}

// step lets the next thing happen.
func (w *world) step() {
	next := w.now + 5*time.Second
	var do func()
	for i, e := range w.events {
		if e.at < next {
			next, do = e.at, func() { w.events = slices.Delete(w.events, i, i+1); e.do() }
		}
	}
	for _, p := range w.all {
		if p.Permits == nil {
			continue
		}
		if at, ok := p.NextWake(); ok && at < next {
			next, do = at, func() { p.event("tick", func(l *Permits) { l.Tick(w.now) }) }
		}
	}
	w.now = max(w.now, next)
	if do != nil {
		do()
	}
	w.check()
}

// event applies an event to a copy, as an actor does; some crash half way, and are repeated.
func (p *process) event(what string, do func(*Permits)) {
	if p.Permits == nil {
		return
	}
	p.w.log = append(p.w.log, fmt.Sprintf("%v %d %s", p.w.now, p.name, what))
	if p.w.random.IntN(10) == 0 {
		crashed := *p.Permits
		do(&crashed)
	}
	next := *p.Permits
	do(&next)
	p.Permits = &next
	for e, ok := next.Effects(); ok; e, ok = next.Effects() {
		p.carryOut(e)
	}
}

func (p *process) carryOut(e Effect) {
	id, _ := e.Ref.(uint64)
	p.w.log = append(p.w.log, fmt.Sprintf("    %d %v %v %+v %v", e.Kind, e.Ref, e.Answer.Reason, e.Command, e.Answer.Until))
	switch e.Kind {
	case lock.Send:
		p.send(*e.Command)
	case lock.Subscribe:
		p.w.later(10*time.Millisecond, func() {
			p.listens = true
			p.event("subscribed", func(l *Permits) { l.Subscribed(p.w.now) })
		})
	case lock.Unsubscribe:
		p.listens = false
	case lock.Reply:
		if p.answers[id]++; p.answers[id] > 1 {
			p.w.fail("request %d was answered %d times", id, p.answers[id])
		}
		if e.Answer.Kind == lock.Granted {
			p.holds[id] = known{e.Permit, e.Answer.Until}
		}
	case Renewed:
		if h, held := p.holds[id]; held {
			p.holds[id] = known{h.permit, e.Answer.Until}
		}
	case lock.TellLost:
		delete(p.holds, id)
	}
}

// send brings a command to Redis, and the reply back.
func (p *process) send(c Command) {
	w := p.w
	arrives := func(times int) {
		for range times {
			w.later(w.delay(), func() {
				r := p.redis(c)
				if w.calm || w.random.IntN(5) > 0 {
					w.later(w.delay(), func() { p.event("reply", func(l *Permits) { l.Replied(w.now, c.Seq, r) }) })
				}
			})
		}
	}
	switch {
	case w.calm || w.random.IntN(8) > 1:
		arrives(1)
	case w.random.IntN(2) == 0:
		arrives(2)
	}
}

func (w *world) delay() time.Duration {
	if !w.calm && w.random.IntN(10) == 0 {
		return 4 * time.Second
	}
	return 20 * time.Millisecond
}

// redis carries out a command as the scripts do.
func (p *process) redis(c Command) (r Result) {
	w := p.w
	switch {
	case c.Kind != Renew && c.Number == p.last:
		return p.reply
	case c.Kind != Renew && c.Kind != Release && c.Number < p.last:
		return Result{Err: errors.New("LATE")}
	case !w.calm && w.random.IntN(20) == 0:
		return Result{Err: errors.New("busy"), Transient: true}
	}
	valid := func(id ID) bool { end, is := w.taken[id]; return is && end > w.now }
	switch c.Kind {
	case Acquire:
		for id := range w.taken {
			if !valid(id) {
				delete(w.taken, id)
				w.free++
			}
		}
		r.Wait = -1
		for i, id := range c.IDs[:min(len(c.IDs), max(w.free, 0))] {
			w.taken[id] = w.now + c.Leases[i]
			w.free--
			r.Served++
		}
	case Release:
		for _, id := range c.IDs {
			_, is := w.taken[id]
			r.Valid = append(r.Valid, is)
			if is {
				delete(w.taken, id)
				w.free++
			}
		}
		for _, other := range w.all {
			if other.listens && w.free > 0 {
				r.Heard++
				w.later(w.delay(), func() { other.event("signal", func(l *Permits) { l.Signal(w.now) }) })
			}
		}
	case Set:
		if w.made = c.Count; c.How == Add {
			w.made = w.free + len(w.taken) + c.Count
		}
		w.free, r.Done = w.made-len(w.taken), true
	case Renew:
		for _, id := range c.IDs {
			r.Valid = append(r.Valid, valid(id))
			if valid(id) {
				w.taken[id] = w.now + c.Lease
			}
		}
		return r
	}
	if c.Number > p.last {
		p.last, p.reply = c.Number, r
	}
	return r
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log[max(len(w.log)-60, 0):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// check holds the world to its rules.
func (w *world) check() {
	if n := w.free + len(w.taken); n != w.made {
		w.fail("there are %d permits", n)
	}
	holders := map[ID]int{}
	for _, p := range w.all {
		for id, h := range p.holds {
			if p.Permits == nil || w.now >= h.until {
				continue
			}
			if end, is := w.taken[h.permit]; !is || end < h.until {
				w.fail("hold %d of process %d trusts its permit until %v, and in Redis it ends at %v", id, p.name, h.until, end)
			}
			if holders[h.permit]++; holders[h.permit] > 1 {
				w.fail("two hold the permit %v", h.permit)
			}
		}
	}
}

// act is something that a process's users do.
func (p *process) act() {
	w := p.w
	held := slices.Sorted(maps.Keys(p.holds))
	p.requests++
	id := p.requests
	switch n := w.random.IntN(100); {
	case n < 55:
		req := Request{Request: lock.Request{ID: id, Ref: id, Owner: lock.Owner(id % 4), Try: n < 5}, Shown: n < 10}
		req.Random = ID{byte(p.name), byte(id >> 16), byte(id >> 8), byte(id)}
		if n > 35 {
			req.Lease = time.Duration(w.random.IntN(4000)+10) * time.Millisecond
		}
		if n > 30 && n < 45 {
			req.Deadline = w.now + time.Second
		}
		p.wants[id] = true
		p.event("acquire", func(l *Permits) { l.Acquire(w.now, req) })
	case n < 95 && len(held) > 0:
		hold := held[w.random.IntN(len(held))]
		delete(p.holds, hold)
		p.wants[id] = true
		p.event(fmt.Sprint("release ", hold), func(l *Permits) { l.Release(w.now, hold, false, id) })
	case n == 97:
		how, count := Total, 2+w.random.IntN(3)
		if w.made > 2 && w.random.IntN(2) == 0 {
			how, count = Add, w.random.IntN(3)-1
		}
		p.wants[id] = true
		p.event(fmt.Sprint("set ", how, count), func(l *Permits) { l.Set(w.now, how, count, id) })
	case n == 98:
		owner := lock.Owner(w.random.IntN(4))
		for id := range p.wants {
			if lock.Owner(id%4) == owner && owner != 0 {
				p.wants[id] = false
				delete(p.holds, id)
			}
		}
		p.event(fmt.Sprint("death of ", owner), func(l *Permits) { l.OwnerGone(w.now, owner) })
	case n == 99 && !w.calm && w.random.IntN(10) == 0:
		p.Permits = nil
		w.later(time.Second, func() { w.all = append(w.all, w.newProcess()) })
	}
}

func (w *world) newProcess() *process {
	cfg := lock.Config{
		Watchdog: 3 * time.Second, Renewal: time.Second, HandOffLimit: 50 * time.Millisecond, ForcedYield: time.Second,
		Poll: time.Second, CallTimeout: 200 * time.Millisecond, QueueLimit: 30,
	}
	l := New(&cfg)
	return &process{w: w, name: len(w.all), Permits: &l, holds: map[uint64]known{}, answers: map[uint64]int{}, wants: map[uint64]bool{}}
}

// Whatever the network and the processes do, no permit is trusted that is not taken in Redis, none is
// lost or made, and in the end all requests are answered and all permits are free.
func TestWorlds(t *testing.T) {
	for seed := range uint64(150) {
		w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), free: 3, made: 3, taken: map[ID]Instant{}}
		for range 3 {
			w.all = append(w.all, w.newProcess())
		}
		for end := 30 * time.Second; w.now < end; w.step() {
			if p := w.all[w.random.IntN(len(w.all))]; p.Permits != nil && w.random.IntN(3) == 0 {
				p.act()
			}
		}
		w.calm = true
		for end := w.now + 20*time.Second; w.now < end; w.step() {
			for _, p := range w.all {
				for _, id := range slices.Sorted(maps.Keys(p.holds)) {
					if p.Permits != nil && w.random.IntN(5) == 0 {
						delete(p.holds, id)
						p.event(fmt.Sprint("release ", id), func(l *Permits) { l.Release(w.now, id, false, nil) })
					}
				}
			}
		}
		for _, p := range w.all {
			if p.Permits == nil {
				continue
			}
			if !p.Idle() {
				w.fail("seed %d: process %d still has something to do: %+v", seed, p.name, *p.Permits)
			}
			for id, wanted := range p.wants {
				if wanted && p.answers[id] != 1 {
					w.fail("seed %d: request %d was answered %d times", seed, id, p.answers[id])
				}
			}
		}
		for id, end := range w.taken {
			if end > w.now {
				w.fail("seed %d: the permit %v is taken by nobody until %v", seed, id, end)
			}
		}
	}
}
