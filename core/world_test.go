package core_test

import (
	"container/heap"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// world is a deterministic simulation: a virtual clock, a model Redis, and processes
// that contend for one lock over a network in which anything can happen. Whatever
// happens is chosen by a tape, so the same tape gives the same world.
//
// Every command is carried out at most once, as TCP has it; but it may be carried out
// after it was given up, and in another order than it was sent.
type world struct {
	tape     *tape
	cfg      *core.Config
	longer   time.Duration // the longest lease that anybody asks for
	now      core.Instant
	agenda   agenda
	serial   uint64
	happened int // how many things have happened in all, and at this very time
	here     int

	redis     *redis
	processes []*process
	foreign   int // how many foreign holds there have been
	faults    faults
	calm      bool // nothing goes wrong any more, and whoever holds releases

	tracing bool
	trace   []string
}

// faults tells what may go wrong in a world. A world with few kinds of faults finds
// what a world with all kinds would drown.
type faults struct {
	slow, lost, late, errors, rejected, deaf, frozen, crash, robbed, paused, sleepy, foreign, killed, closed, owners bool
}

// violation is what a world panics with when a rule is broken.
type violation struct {
	rule string // the same however the numbers are
	text string
}

func (v violation) Error() string { return v.text }

func (w *world) violated(format string, args ...any) {
	panic(violation{format, fmt.Sprintf(format, args...)})
}

func newWorld(t *tape, tracing bool) *world {
	w := &world{tape: t, tracing: tracing}
	flag := func() bool { return t.pick(3) == 1 }
	w.faults = faults{
		flag(), flag(), flag(), flag(), flag(), flag(), flag(), flag(), flag(), flag(), flag(), flag(), flag(), flag(), flag(),
	}
	cfg := oneOf(t,
		core.Config{Lease: 3000 * ms, Renewal: 1000 * ms, Tenure: 100 * ms, Opening: 1000 * ms, Poll: 500 * ms, CallTimeout: 500 * ms, QueueLimit: 6},
		core.Config{Lease: 30000 * ms, Renewal: 10000 * ms, Tenure: 20 * ms, Opening: 500 * ms, Poll: 2000 * ms, CallTimeout: 3000 * ms, QueueLimit: 1000},
		core.Config{Lease: 1000 * ms, Renewal: 300 * ms, Tenure: 500 * ms, Opening: 2000 * ms, Poll: 5000 * ms, CallTimeout: 3000 * ms, QueueLimit: 1000},
	)
	cfg.Seed = uint64(t.pick(256))
	w.cfg, w.longer = &cfg, max(cfg.Lease, 10*sec)
	w.redis = &redis{w: w, rate: oneOf(t, 1, 1.009, 0.991), subscribers: map[string]func(){}, broken: map[string]core.Instant{}}
	for range 1 + oneOf(t, 1, 0, 2) {
		w.join()
	}
	return w
}

// join adds a process.
func (w *world) join() *process {
	cfg := *w.cfg
	cfg.Seed += uint64(len(w.processes))
	p := &process{
		w: w, uuid: fmt.Sprintf("p%d", len(w.processes)), lock: core.New(&cfg), requests: map[uint64]*request{}, lost: map[uint64]bool{},
		overAt:   map[uint64]core.Instant{},
		underWay: map[uint64]uint64{}, stained: map[uint64]bool{}, ranSeq: map[uint64]uint64{}, ranLease: map[uint64]time.Duration{},
	}
	w.processes = append(w.processes, p)
	return p
}

func field(uuid string, term uint64) string { return uuid + ":" + strconv.FormatUint(term, 10) }

func ownTerm(uuid, owner string) uint64 {
	client, number, _ := strings.Cut(owner, ":")
	if client != uuid {
		return 0
	}
	term, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		panic(err)
	}
	return term
}

// The agenda: what happens when, in the order of time and then of making.

type entry struct {
	at     core.Instant
	serial uint64
	do     func()
}

type agenda []entry

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].serial < a[j].serial
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(entry)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func (w *world) at(t core.Instant, do func()) {
	w.serial++
	heap.Push(&w.agenda, entry{max(t, w.now), w.serial, do})
}

func (w *world) after(d time.Duration, do func()) { w.at(w.now+d, do) }

// runUntil lets happen whatever happens up to a time.
func (w *world) runUntil(end core.Instant) {
	for len(w.agenda) > 0 && w.agenda[0].at <= end {
		next := heap.Pop(&w.agenda).(entry)
		if next.at > w.now {
			w.here = 0
		}
		if w.here++; w.here > 5000 {
			w.violated("time stands still: %d things have happened at once", w.here)
		}
		if w.happened++; w.happened > 50000 {
			w.violated("there is no end to it: %d things have happened", w.happened)
		}
		w.now = next.at
		next.do()
		w.check()
	}
	if end > w.now {
		w.now, w.here = end, 0
	}
}

func (w *world) logf(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%12v  ", w.now)+fmt.Sprintf(format, args...))
	}
}

// The network.

// latency is how long a message takes on its way.
func (w *world) latency() time.Duration {
	if w.faults.slow && !w.calm {
		return oneOf(w.tape, ms, ms/5, 5*ms, 40*ms, 200*ms, 600*ms, 1500*ms)
	}
	return oneOf(w.tape, ms, ms/5)
}

var (
	errLoading = errors.New("LOADING Redis is loading the dataset in memory")
	errTimeout = errors.New("i/o timeout")
	errNoPerm  = errors.New("NOPERM this user has no permissions")
)

// fate is what becomes of a command.
type fate int

const (
	answered fate = iota
	requestLost
	replyLost
	late
	loading
	rejected
)

func (w *world) fate() fate {
	f := oneOf(w.tape, answered, answered, answered, answered, answered, requestLost, replyLost, late, loading, rejected)
	switch {
	case w.calm:
		return answered
	case (f == requestLost || f == replyLost) && w.faults.lost, f == late && w.faults.late,
		f == loading && w.faults.errors, f == rejected && w.faults.rejected:
		return f
	}
	return answered
}

// send carries a command to Redis, and its result back.
func (w *world) send(p *process, c core.Command) {
	fate := w.fate()
	w.logf("%s sends %s%s", p.uuid, describe(c), [...]string{"", ", lost on the way", ", whose reply gets lost", ", which arrives late", ", not now", ", never"}[fate])
	if fate != answered {
		p.stained[c.Term] = true
	}
	p.underWay[c.Seq] = c.Term
	there, back := w.latency(), w.latency()
	carryOut := func(then func(core.Result)) {
		var do func()
		do = func() {
			if w.now < w.redis.frozenUntil {
				w.at(w.redis.frozenUntil, do)
				return
			}
			if !lateShortens && p.shortens(c) {
				w.logf("%s of %s is dropped at last", describe(c), p.uuid)
				return
			}
			p.carriedOut(c)
			r := w.redis.run(p.uuid, c)
			w.logf("redis: %s of %s gives %s", describe(c), p.uuid, outcome(r))
			then(r)
		}
		w.after(there, do)
	}
	fail := func(d time.Duration, r core.Result) {
		r.Outcome = core.Failed
		w.after(d, func() { p.replied(c, r) })
	}
	// A caller that gave up says so at the deadline, or not at all.
	giveUp := func() {
		if w.tape.pick(2) == 0 {
			fail(c.Deadline-w.now, core.Result{Err: errTimeout, Transient: true, Unsure: true})
		}
	}
	switch fate {
	case answered:
		carryOut(func(r core.Result) { w.after(back, func() { p.replied(c, r) }) })
	case requestLost:
		giveUp()
	case replyLost:
		carryOut(func(core.Result) {})
		giveUp()
	case late:
		there += oneOf(w.tape, 0, 100*ms, 800*ms, 2*sec, 5*sec)
		carryOut(func(r core.Result) { w.after(back, func() { p.replied(c, r) }) })
		giveUp()
	case loading:
		fail(there+back, core.Result{Err: errLoading, Transient: true})
	case rejected:
		fail(there+back, core.Result{Err: errNoPerm})
	}
}

// lateShortens allows a late command to cut short a lease that a later command of its
// term has set.
const lateShortens = false

func (p *process) shortens(c core.Command) bool {
	return c.Seq < p.ranSeq[c.Term] && c.Lease < p.ranLease[c.Term] && (c.Kind == core.Renew || c.Count > 0)
}

// subscribe gets a process the messages of the lock's channel.
func (w *world) subscribe(p *process) {
	p.subscriptionAt = max(p.subscriptionAt, w.now+w.latency())
	if w.faults.deaf && !w.calm && w.tape.pick(4) == 1 {
		w.logf("%s: its SUBSCRIBE gets lost", p.uuid)
		return
	}
	w.at(p.subscriptionAt, func() {
		if p.dead {
			return
		}
		w.redis.subscribers[p.uuid] = func() {
			if w.faults.deaf && !w.calm && w.tape.pick(3) == 1 {
				w.logf("a message to %s gets lost", p.uuid)
				return
			}
			w.after(w.latency(), func() { p.event("signal", func(l *core.Lock) { l.Signal(w.now) }) })
		}
		w.after(w.latency(), func() { p.event("subscribed", func(l *core.Lock) { l.Subscribed(w.now) }) })
	})
}

func (w *world) unsubscribe(p *process) {
	p.subscriptionAt = max(p.subscriptionAt, w.now+w.latency())
	w.at(p.subscriptionAt, func() { delete(w.redis.subscribers, p.uuid) })
}

// reconnect makes every process that wants messages subscribe again.
func (w *world) reconnect() {
	for _, p := range w.processes {
		if p.listening && !p.dead {
			w.subscribe(p)
		}
	}
}

func describe(c core.Command) string {
	name := [...]string{"?", "acquire", "release", "renew", "yield", "force"}[c.Kind]
	return fmt.Sprintf("#%d %s term %d count %d lease %v", c.Seq, name, c.Term, c.Count, c.Lease)
}

func outcome(r core.Result) string {
	name := [...]string{"?", "done", "kept", "refused", "absent", "failed"}[r.Outcome]
	switch {
	case r.Outcome == core.Refused:
		return fmt.Sprintf("%s by %s for %v", name, r.Holder, r.TTL)
	case r.Err != nil:
		return fmt.Sprintf("%s: %v", name, r.Err)
	}
	return name
}
