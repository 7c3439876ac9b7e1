package core_test

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// world is a deterministic simulation: a virtual clock, a model Redis, and processes
// that contend for one lock over a network in which anything can happen. Whatever
// happens is chosen by a tape, so the same tape gives the same world.
//
// Every command is carried out at most once, as TCP has it; but it may be carried out
// after it was given up, and in another order than it was sent.
type world struct {
	kind     *core.Kind
	tape     *tape
	cfg      *core.Config
	longer   time.Duration // the longest lease that anybody asks for
	silence  time.Duration // how long a waiter that is not heard of keeps its place
	now      core.Instant
	agenda   agenda
	serial   uint64
	happened int // how many things have happened in all, and at this very time
	here     int

	redis     *redis
	processes []*process
	foreign   int            // how many foreign holds there have been
	tokens    map[int64]bool // those that were given to holds
	token     int64          // the highest of them
	faults    faults
	calm      bool // nothing goes wrong any more, and whoever holds releases

	tracing bool
	trace   []string
}

// faults tells what may go wrong in a world. A world with few kinds of faults finds
// what a world with all kinds would drown.
type faults struct {
	slow     bool // messages take long, and overtake each other
	lost     bool // commands, or their replies
	late     bool // commands arrive after they were given up
	errors   bool // Redis refuses for now
	rejected bool // Redis refuses for good
	full     bool // Redis has no memory left for a while
	deaf     bool // subscriptions and their messages get lost
	frozen   bool // Redis stops for a while
	crash    bool // Redis comes back empty
	robbed   bool // keys are deleted, and locks force-released
	paused   bool // processes stop for a while
	sleepy   bool // timers ring late
	foreign  bool // others take the lock, and wait for it
	killed   bool // processes end at once
	closed   bool // locks are closed
	owners   bool // owners die
	givenUp  bool // locks are given up, as when their shell crashes again and again
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

func newWorld(kind *core.Kind, t *tape, tracing bool) *world {
	w := &world{kind: kind, tape: t, tracing: tracing, tokens: map[int64]bool{}}
	f := &w.faults
	for _, kind := range []*bool{
		&f.slow, &f.lost, &f.late, &f.errors, &f.rejected, &f.full, &f.deaf, &f.frozen, &f.crash, &f.robbed, &f.paused, &f.sleepy, &f.foreign,
		&f.killed, &f.closed, &f.owners, &f.givenUp,
	} {
		*kind = t.pick(3) == 1
	}
	cfg := oneOf(t,
		core.Config{Lease: 3000 * ms, Renewal: 1000 * ms, Tenure: 100 * ms, Opening: 1000 * ms, Poll: 500 * ms, CallTimeout: 500 * ms, QueueLimit: 6},
		core.Config{Lease: 30000 * ms, Renewal: 10000 * ms, Tenure: 20 * ms, Opening: 500 * ms, Poll: 2000 * ms, CallTimeout: 3000 * ms, QueueLimit: 1000},
		core.Config{Lease: 1000 * ms, Renewal: 300 * ms, Tenure: 500 * ms, Opening: 2000 * ms, Poll: 5000 * ms, CallTimeout: 3000 * ms, QueueLimit: 1000},
	)
	cfg.Seed = uint64(t.pick(256))
	w.cfg, w.longer, w.silence = &cfg, max(cfg.Lease, 20*sec), max(5*sec, 3*cfg.Poll)
	w.redis = newRedis(w, oneOf(t, 1, 1.009, 0.991))
	for range 1 + oneOf(t, 1, 0, 2) {
		w.join()
	}
	return w
}

// joinSibling adds a second lock actor of the first process, with its client id, on the same key.
func (w *world) joinSibling() {
	p := w.join()
	p.client, p.terms = w.processes[0].client, 1<<20
}

// join adds a process.
func (w *world) join() *process {
	cfg := *w.cfg
	cfg.Seed += uint64(len(w.processes))
	p := &process{
		w: w, uuid: fmt.Sprintf("p%d", len(w.processes)), client: model.Client(len(w.processes)), lock: core.New(&cfg, w.kind),
		requests: map[uint64]*request{}, lost: map[uint64]bool{}, overAt: map[uint64]core.Instant{},
		underWay: map[uint64]uint64{}, stained: map[uint64]bool{}, late: map[uint64]bool{}, ranSeq: map[uint64]uint64{}, ghosts: map[model.Owner]bool{},
	}
	w.processes = append(w.processes, p)
	return p
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
