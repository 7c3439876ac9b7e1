package lock_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	requests "github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

var (
	worldTime = flag.Duration("world.time", time.Second, "how long to run random worlds of each kind")
	worldSeed = flag.Uint64("world.seed", 0, "run only the worlds with this seed; choose a kind with -run TestRandomWorlds/kind")
)

// kindsOfLocks are the kinds of the random worlds.
var kindsOfLocks = []struct {
	name     string
	features lock.Features
	parts    []redismodel.Kind
}{
	{"plain and fenced", lock.Features{Tokens: 1, WaitQueue: true}, []redismodel.Kind{redismodel.Plain}},
	{"fair", lock.Features{Fair: true}, []redismodel.Kind{redismodel.Fair}},
	{"readwrite", lock.Features{Shares: true, WaitQueue: true}, []redismodel.Kind{redismodel.ReadWrite}},
	{"multi", lock.Features{Parts: true, Tokens: 2, WaitQueue: true}, []redismodel.Kind{redismodel.Fenced, redismodel.Fenced}},
}

// Both the random worlds and the explorations have locks with the features of each kind, in its form in Redis.
func TestKinds_AreAllInWorlds(t *testing.T) {
	type kindOfLock struct {
		lock.Features
		*forms.Form
	}
	random, explored := map[kindOfLock]bool{}, map[kindOfLock]bool{}
	for _, k := range kindsOfLocks {
		random[kindOfLock{k.features, k.parts[0].Form()}] = true
	}
	for _, of := range scenariosOf {
		explored[kindOfLock{of.features, of.parts[0].Form()}] = true
	}
	for kind, row := range kinds.Table {
		k := kindOfLock{row.Features, row.Form}
		if one := row.IsLock() && row.Composition == requests.OneKey; one && !(random[k] && explored[k]) {
			t.Errorf("%v: in random worlds %v, explored %v", kind, random[k], explored[k])
		}
	}
}

// choices are the choices of a random world. Without a generator each is the first, which is the harmless one: no fault, no
// request, the usual delay.
type choices struct{ *rand.Rand }

func chosen(seed uint64) *choices { return &choices{rand.New(rand.NewPCG(seed, 0x10c4))} }

// pick chooses one of n.
func (c *choices) pick(n int) int {
	if c == nil || c.Rand == nil {
		return 0
	}
	return c.IntN(n)
}

// oneOf chooses one of the values; the first is the harmless one.
func oneOf[T any](c *choices, values ...T) T { return values[c.pick(len(values))] }

// TestRandomWorlds runs worlds with other choices every time. A failure logs the seed and the events.
func TestRandomWorlds(t *testing.T) {
	for kind, k := range kindsOfLocks {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			n, end := 0, time.Now().Add(*worldTime)
			for ; *worldSeed == 0 && time.Now().Before(end) || n == 0; n++ {
				seed := cmp.Or(*worldSeed, rand.Uint64())
				if err := randomWorld(kind, chosen(seed)).simulate(); err != nil {
					again := randomWorld(kind, chosen(seed))
					again.trace = &[]string{}
					_ = again.simulate()
					t.Fatalf("with -world.seed=%d: %v\n%s", seed, err, strings.Join(*again.trace, "\n"))
				}
			}
			t.Logf("%d worlds", n)
		})
	}
}

// The rules hold because one actor owns a key; see TestExplore_NoticesTwoActorsOnOneKey.
func TestRandomWorlds_NoticeTwoActorsOnOneKey(t *testing.T) {
	for seed := range uint64(1000) {
		w := randomWorld(0, chosen(seed))
		w.twoActors, w.processes = true, w.processes[:0]
		w.addProcess()
		w.addProcess()
		if err := w.simulate(); err != nil {
			t.Logf("world %d: %v", seed, err)
			return
		}
	}
	t.Fatal("no violation in a thousand worlds")
}

// randomWorld returns a random world. Each has some kinds of faults only, since a world with all of them hides
// what a few would show.
func randomWorld(kind int, t *choices) *world {
	s := &setting{features: kindsOfLocks[kind].features}
	for f := range s.limits {
		if t.pick(3) == 1 || fault(f) >= cancels {
			s.limits[f] = always
		}
	}
	s.config = oneOf(t,
		machine.Config{Watchdog: 3000 * ms, Renewal: 1000 * ms, HandOffLimit: 100 * ms, ForcedYield: 1000 * ms, Poll: 500 * ms, CallTimeout: 500 * ms, QueueLimit: 6},
		machine.Config{Watchdog: 30000 * ms, Renewal: 10000 * ms, HandOffLimit: 20 * ms, ForcedYield: 500 * ms, Poll: 2000 * ms, CallTimeout: 3000 * ms, QueueLimit: 1000},
		machine.Config{Watchdog: 1000 * ms, Renewal: 300 * ms, HandOffLimit: 500 * ms, ForcedYield: 2000 * ms, Poll: 5000 * ms, CallTimeout: 3000 * ms, QueueLimit: 1000},
	)
	s.config.Replicated = t.pick(2) == 1
	s.config.Seed = uint64(t.pick(256))
	s.setup = redismodel.Setup{
		Kinds: kindsOfLocks[kind].parts, WaiterTimeout: max(5*sec, 3*s.config.Poll), WaitQueue: waitQueueOf(&s.config),
		Rate: oneOf(t, 1, 1.009, 0.991), Name: redismodel.Owner.String,
		Pick: func(fields []redismodel.Field) int { return t.pick(len(fields)) },
	}
	s.setup.WaitQueue.OneServer = t.pick(4) != 1
	s.setup.WaitQueue.OpenEvery = oneOf(t, 0, time.Second, 300*ms)
	s.unequalPolls = t.pick(2) == 1
	if s.setup.WaitQueue.OneServer { // in a cluster no lease lingers
		s.config.Linger = oneOf(t, 0, s.config.Watchdog/3, 50*ms)
	}
	return newWorld(s, t, 1+oneOf(t, 1, 0, 2))
}

// simulate runs the world and returns the violation, if there is one.
func (w *world) simulate() (err error) {
	defer w.recoverViolation(&err)
	for range 10 + w.choices.pick(120) {
		w.randomAction()
		w.runUntil(w.now + oneOf(w.choices, ms, 0, ms, 5*ms, 30*ms, 30*ms, 200*ms, sec))
	}
	w.endFaults()
	return nil
}

// recoverViolation converts a panic to an error.
func (w *world) recoverViolation(err *error) {
	switch broken := recover().(type) {
	case nil:
	case violation:
		*err = broken
	default:
		if *err = fmt.Errorf("panic: %v", broken); w.trace != nil {
			*err = fmt.Errorf("%w\n%s", *err, debug.Stack())
		}
	}
}

// runUntil runs all events up to a time.
func (w *world) runUntil(end machine.Instant) {
	for w.step(end) {
	}
	if end > w.now {
		w.now, w.atThisTime = end, 0
		w.redis.At(end)
	}
}

// step runs the next event unless it comes after a time, and reports whether there was one.
func (w *world) step(end machine.Instant) bool {
	at, next, ticks := end+1, -1, -1
	for k := range w.net {
		if due := w.due(&w.net[k]); due < at {
			at, next = due, k
		}
	}
	for i := range w.processes {
		if p := &w.processes[i]; !p.dead && p.wakeAt != never && max(p.wakeAt, p.pausedUntil) < at {
			at, ticks = max(p.wakeAt, p.pausedUntil), i
		}
	}
	if at > end {
		return false
	}
	if at > w.now {
		w.now, w.atThisTime = at, 0
		w.redis.At(at)
	}
	if w.atThisTime++; w.atThisTime > 5000 {
		w.violated("%d events at one time", w.atThisTime)
	}
	if w.happened++; w.happened > 50000 {
		w.violated("no end after %d events", w.happened)
	}
	if ticks >= 0 {
		w.tick(ticks)
	} else {
		m := w.take(next)
		w.deliver(m, w.drawFate(&m))
	}
	w.check()
	return true
}

// due returns when a message is delivered.
func (w *world) due(m *message) machine.Instant {
	switch m.kind {
	case command, lateCommand:
		return max(m.at, w.frozenUntil)
	case reply, signal, subscribed, delayedRequest, plannedRelease:
		return max(m.at, w.processes[m.p].pausedUntil)
	}
	return m.at
}

// drawFate draws the fault, or none, that a message meets.
func (w *world) drawFate(m *message) fate {
	if w.healed || m.kind >= subscribed || w.processes[m.p].dead {
		return fine
	}
	f := fate(max(w.choices.pick(2*int(fates))-int(fates), 0))
	if m.kind == signal || m.kind == subscribing {
		f = requestLost * fate(w.choices.pick(4)/3)
	}
	if fault, ok := w.faultOf(m, f); !ok || !w.can(fault) {
		return fine
	}
	return f
}

// randomAction carries out a random action of a client, or from outside.
func (w *world) randomAction() {
	i := w.choices.pick(len(w.processes))
	if w.processes[i].dead {
		i = w.addProcess()
	}
	act := oneOf(w.choices, weightedActions...)
	if act == delivers || !w.can(actions[act].counts) || act == failsForGood && w.processes[i].stalled {
		return
	}
	w.do(move{action: act, p: int8(i)})
}

// weightedActions has every action as often as its weight says.
var weightedActions = func() (all []action) {
	for act := range actions {
		all = append(all, slices.Repeat([]action{action(act)}, actions[act].weight)...)
	}
	return all
}()

// Without faults, two processes that always have waiters get equal shares of the lock, and most grants need no
// command.
func TestLock_IsSharedByProcesses(t *testing.T) {
	w := randomWorld(0, &choices{})
	for w.now < 10*sec {
		for i := range w.processes {
			for len(w.processes[i].requests) < 5 {
				w.do(move{action: acquire, p: int8(i)}) // and release after a millisecond
			}
		}
		w.happened = 0 // the world has no end
		w.runUntil(w.now + ms)
	}
	a, b := &w.processes[0], &w.processes[1]
	if total := a.grants + b.grants; total < 6600 || 10*a.grants > 11*b.grants || 10*b.grants > 11*a.grants {
		t.Errorf("in ten seconds one process gets %d grants, and the other %d", a.grants, b.grants)
	}
	if commands := a.lastSeq + b.lastSeq; 20*int(commands) > a.grants+b.grants {
		t.Errorf("%d grants took %d commands", a.grants+b.grants, commands)
	}
}
