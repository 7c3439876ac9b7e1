package backend

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

var (
	worldTime = flag.Duration("world.time", time.Second, "how long to run random worlds of a RedLock")
	worldSeed = flag.Uint64("world.seed", 0, "run only the world of a RedLock with this seed")
)

// A world is a simulation of a RedLock: the locks of some processes, the majority of each, models of the servers, and
// what is on its way between them. Messages may take long, overtake each other, or get lost. No key is lost, so there
// is one rule without an exception: while a holder trusts the lock, a majority of the servers has its key, for at least
// as long. Then no two holders trust it, since a key has one owner. And no holder gets it within the minimum time of
// another.
//
// Each world is in a bubble of testing/synctest. All events happen on one goroutine, one after another, so a seed leads
// to the same events.
type world struct {
	*rand.Rand
	begun     time.Time
	setup     redismodel.Setup
	nodes     []node
	processes []*process
	due       []event
	calls     []*call // that are under way
	happened  int
	// faulty is how many of a hundred messages meet a fault, and healed says that faults no longer happen.
	faulty int
	healed bool
	// keptUntil is until when the lock is kept for the minimum time of a hold that has ended.
	keptUntil machine.Instant

	traced bool
	trace  []string

	mu sync.Mutex // guards what follows
	// sent are the calls, and replied the replies to commands, that no event has handled yet.
	sent    []*call
	replied []func()
	over    bool
	wake    chan struct{}
}

// event is something that is due at a time.
type event struct {
	at machine.Instant
	do func()
}

const (
	watchdog = 3 * time.Second
	// longest is the longest lease.
	longest = 10 * time.Second
)

// TestRandomWorlds runs worlds with other choices every time. A failure logs the seed and the events.
func TestRandomWorlds(t *testing.T) {
	builder := redistest.Shared(t).Client(t).B() // an empty one cannot be made, and it is all that a world takes from there
	run := func(seed uint64, traced bool) (trace []string, err error) {
		synctest.Test(t, func(*testing.T) {
			w := newWorld(seed, builder)
			w.traced = traced
			err = w.simulate()
			trace = w.trace
		})
		return trace, err
	}
	n, end := 0, time.Now().Add(*worldTime)
	for ; *worldSeed == 0 && time.Now().Before(end) || n == 0; n++ {
		seed := cmp.Or(*worldSeed, rand.Uint64())
		if _, err := run(seed, false); err != nil {
			trace, again := run(seed, true)
			t.Fatalf("with -world.seed=%d: %v\nand again: %v\n%s", seed, err, again, strings.Join(trace, "\n"))
		}
	}
	t.Logf("%d worlds", n)
}

func newWorld(seed uint64, builder rueidis.Builder) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 0x4ed)), begun: time.Now().Add(-time.Second), wake: make(chan struct{}, 1)}
	w.setup = redismodel.Setup{Kinds: []redismodel.Kind{redismodel.Plain}, Name: redismodel.Owner.String}
	w.faulty = oneOf(w, 10, 25, 50)
	for range oneOf(w, 3, 3, 5) {
		w.nodes = append(w.nodes, node{Server: redismodel.New(&w.setup)})
	}
	for range oneOf(w, 1, 2) {
		w.addProcess(builder)
	}
	return w
}

func oneOf[T any](w *world, values ...T) T { return values[w.IntN(len(values))] }

// millis is a random one of some numbers of milliseconds.
func (w *world) millis(values ...time.Duration) time.Duration {
	return oneOf(w, values...) * time.Millisecond
}

// Now implements System.
func (w *world) Now() machine.Instant { return time.Since(w.begun) }

func (w *world) logf(format string, args ...any) {
	if w.traced {
		w.trace = append(w.trace, fmt.Sprintf("%12v  ", w.Now())+fmt.Sprintf(format, args...))
	}
}

// violation is the panic value of the broken rule.
type violation string

func (w *world) violated(format string, args ...any) { panic(violation(fmt.Sprintf(format, args...))) }

// after lets something happen later.
func (w *world) after(d time.Duration, do func()) { w.due = append(w.due, event{w.Now() + d, do}) }

// hits reports whether a fault of that many percent happens.
func (w *world) hits(percent int) bool { return !w.healed && w.IntN(100) < percent }

// delay returns how long a message takes. No two are due at the same time.
func (w *world) delay() time.Duration {
	d := time.Millisecond
	if w.hits(w.faulty) {
		d = w.millis(3, 5, 10, 20, 40, 100, 200, 600, 2000)
	}
	return d + time.Duration(w.Int64N(int64(time.Millisecond)))
}

// simulate runs the world and returns the violation, if there is one.
func (w *world) simulate() (err error) {
	defer w.close()
	defer func() {
		switch broken := recover().(type) {
		case nil:
		case violation:
			err = fmt.Errorf("%s", string(broken))
		default:
			panic(broken)
		}
	}()
	for range 10 + w.IntN(90) {
		w.act()
		w.run(w.Now() + w.millis(0, 2, 20, 20, 200, 1000))
	}
	w.heal()
	return nil
}

// act carries out a random action of a client, or freezes a server.
func (w *world) act() {
	p := w.processes[w.IntN(len(w.processes))]
	lease := oneOf(w, 0, 0, 50*time.Millisecond, 500*time.Millisecond, 2*time.Second, longest)
	switch action := w.IntN(12); {
	case action == 0:
		w.nodes[w.IntN(len(w.nodes))].frozenUntil = w.Now() + w.millis(100, 800, 4000)
	case p.hold.id == 0, action == 1:
		if p.waiting < 3 {
			p.acquire(machine.Owner(w.IntN(3)), lease)
		}
	case action == 2:
		p.acquire(p.hold.owner, oneOf(w, 0, lease)) // it re-enters, if it has an owner
	case action <= 4:
		p.release()
	case action == 5:
		p.request("ensure", func(l *lock.Lock, to wish) { l.Ensure(w.Now(), to.id, watchdog/2, to) })
	default:
		p.extend(lease)
		if action > 7 && p.hold.id != 0 { // as soon as a majority has answered, and others may not have
			p.extend(oneOf(w, 0, watchdog, longest))
		}
	}
}

// heal ends all faults, lets every holder release, and checks that nothing is left.
func (w *world) heal() {
	w.logf("there are no faults from now on")
	w.healed = true
	for i := range w.nodes {
		w.nodes[i].frozenUntil = 0
	}
	for end := w.Now() + 2*longest + time.Minute; w.Now() < end; w.run(w.Now() + time.Second) {
		for _, p := range w.processes {
			for p.hold.id != 0 && !p.releasing {
				p.release()
			}
		}
	}
	for _, p := range w.processes {
		if !p.lock.Idle() || p.waiting > 0 {
			w.violated("p%d is not idle, and %d requests wait: %+v", p.index, p.waiting, p.lock.Summary())
		}
		for i, s := range p.servers {
			if !s.Released() || s.isSilent() {
				w.violated("p%d: server %d is still to be released, or silent: %v", p.index, i, s.isSilent())
			}
		}
	}
	for i := range w.nodes {
		for _, h := range w.nodes[i].Part(0).Holders {
			w.violated("%v is left behind on server %d", h.Owner, i)
		}
	}
}

// run runs all events up to a time.
func (w *world) run(end machine.Instant) {
	for {
		synctest.Wait() // until the backends have done what they can
		w.handle()
		w.check()
		next := -1
		for i, e := range w.due {
			if next < 0 || e.at < w.due[next].at {
				next = i
			}
		}
		at := end
		if next >= 0 {
			at = min(at, w.due[next].at)
		}
		ticks := w.ticks(&at)
		if at > w.Now() {
			select { // a timer of a backend may send something before
			case <-time.After(at - w.Now()):
			case <-w.wake:
			}
			continue
		}
		switch {
		case ticks != nil:
			ticks.apply("tick", func(l *lock.Lock) { l.Tick(w.Now()) })
		case next >= 0 && w.due[next].at <= w.Now():
			e := w.due[next]
			w.due = slices.Delete(w.due, next, next+1)
			e.do()
		default:
			return
		}
		if w.happened++; w.happened > 100000 {
			w.violated("no end after %d events", w.happened)
		}
	}
}

// ticks returns the process that needs a Tick by a time, and sets that to when.
func (w *world) ticks(at *machine.Instant) (first *process) {
	for _, p := range w.processes {
		if wake, ok := p.lock.NextWake(); ok && wake <= *at {
			*at, first = wake, p
		}
	}
	return first
}

// handle handles the calls and replies that have come since the last event, in an order that does not depend on the
// goroutines.
func (w *world) handle() {
	for {
		w.mu.Lock()
		sent, replied := w.sent, w.replied
		w.sent, w.replied = nil, nil
		w.mu.Unlock()
		if len(sent)+len(replied) == 0 {
			return
		}
		slices.SortFunc(sent, func(a, b *call) int {
			return cmp.Or(a.process-b.process, a.to-b.to, slices.Compare(a.words, b.words))
		})
		for _, c := range sent {
			w.transmit(c)
		}
		for _, deliver := range replied {
			deliver()
		}
		synctest.Wait()
	}
}

// note lets a function note something for handle.
func (w *world) note(what func()) {
	w.mu.Lock()
	what()
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// check checks the rule.
func (w *world) check() {
	now := w.Now()
	for i := range w.nodes {
		w.nodes[i].At(now)
	}
	for _, p := range w.processes {
		s := p.lock.Summary()
		if s.Holds == 0 || now >= s.LeaseUntil {
			continue
		}
		o := redismodel.Owner{Client: redismodel.Client(p.index), Term: s.Term}
		var have []string
		for i := range w.nodes {
			if l := w.nodes[i].Part(0); l.Of(o) != (redismodel.Counts{}) && l.ExpiresAt >= s.LeaseUntil {
				have = append(have, strconv.Itoa(i))
			}
		}
		if len(have) <= len(w.nodes)/2 {
			w.violated("p%d trusts %v until %v, and only the servers %v have that", p.index, o, s.LeaseUntil, have)
		}
	}
}

// close ends all goroutines.
func (w *world) close() {
	w.mu.Lock()
	w.over = true
	unanswered := append(w.sent, w.calls...)
	w.mu.Unlock()
	for _, c := range unanswered {
		c.reply <- rueidis.NewErrorResult(rueidis.ErrClosing)
	}
	for _, p := range w.processes {
		for i := range p.servers {
			p.servers[i].Close(nil)
			p.clients[i].Close()
		}
	}
}
