package lock_test

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redismodel"
)

var (
	worldTime = flag.Duration("world.time", time.Second, "how long to run random worlds of each kind")
	worldSeed = flag.Uint64("world.seed", 0, "run only the worlds with this seed; choose a kind with -run TestRandomWorlds/kind")
	worldTape = flag.String("world.tape", "", "run only the world with these choices, in hexadecimal, and log its events")
)

// kindsOfLocks are the kinds of the random worlds.
var kindsOfLocks = []struct {
	name  string
	kind  lock.Kind
	parts []redismodel.Kind
}{
	{"plain and fenced", lock.Kind{Tokens: 1, WaitQueue: true}, []redismodel.Kind{redismodel.Reentrant}},
	{"fair", lock.Kind{Queued: true}, []redismodel.Kind{redismodel.Fair}},
	{"readwrite", lock.Kind{Shares: true, WaitQueue: true}, []redismodel.Kind{redismodel.ReadWrite}},
	{"multi", lock.Kind{Parts: true, Tokens: 2, WaitQueue: true}, []redismodel.Kind{redismodel.Fenced, redismodel.Fenced}},
}

// TestRandomWorlds runs worlds with other choices every time. A failure logs the seed, and the events of the simplest
// world that violates the same rule, with a tape to replay it.
func TestRandomWorlds(t *testing.T) {
	for kind, k := range kindsOfLocks {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			if *worldTape != "" {
				choices, err := hex.DecodeString(*worldTape)
				if err != nil {
					t.Fatal(err)
				}
				replay(t, kind, choices)
				return
			}
			n, end := 0, time.Now().Add(*worldTime)
			for ; *worldSeed == 0 && time.Now().Before(end) || n == 0; n++ {
				seed := *worldSeed
				if seed == 0 {
					seed = rand.Uint64()
				}
				choices := randomTape(seed)
				if err := randomWorld(kind, choices).simulate(); err != nil {
					t.Logf("with -world.seed=%d: %v", seed, err)
					report(t, kind, choices.bytes, err)
				}
			}
			t.Logf("%d worlds", n)
		})
	}
}

// FuzzWorlds lets the fuzzer make the choices.
func FuzzWorlds(f *testing.F) {
	for seed := range uint64(8) {
		for kind := range kindsOfLocks {
			choices := randomTape(seed)
			if err := randomWorld(kind, choices).simulate(); err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(kind), choices.bytes)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, bytes []byte) {
		i := int(kind) % len(kindsOfLocks)
		if err := randomWorld(i, &tape{bytes: bytes}).simulate(); err != nil {
			report(t, i, bytes, err)
		}
	})
}

// The rules hold because one actor owns a key; see TestExplore_NoticesTwoActorsOnOneKey.
func TestRandomWorlds_NoticeTwoActorsOnOneKey(t *testing.T) {
	for seed := range uint64(1000) {
		w := randomWorld(0, randomTape(seed))
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

// randomWorld returns the world of a tape. Each has some kinds of faults only, since a world with all of them hides
// what a few would show.
func randomWorld(kind int, t *tape) *world {
	s := &setting{kind: kindsOfLocks[kind].kind}
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
	s.setup.WaitQueue.SeesListeners = t.pick(4) != 1
	s.setup.WaitQueue.OpenEvery = oneOf(t, 0, time.Second, 300*ms)
	s.unequalPolls = t.pick(2) == 1
	if s.setup.WaitQueue.SeesListeners { // in a cluster no lease stays
		s.config.Linger = oneOf(t, 0, s.config.Watchdog/3, 50*ms)
	}
	return newWorld(s, t, 1+oneOf(t, 1, 0, 2))
}

// simulate runs the world with the choices of its tape, and returns the violation, if there is one.
func (w *world) simulate() (err error) {
	defer w.recoverViolation(&err)
	for range 10 + w.tape.pick(120) {
		if w.tape.ended() {
			break
		}
		w.randomAction()
		w.runUntil(w.now + oneOf(w.tape, ms, 0, ms, 5*ms, 30*ms, 30*ms, 200*ms, sec))
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
	f := fate(max(w.tape.pick(2*int(fates))-int(fates), 0))
	if m.kind == signal || m.kind == subscribing {
		f = requestLost * fate(w.tape.pick(4)/3)
	}
	if fault, ok := w.faultOf(m, f); !ok || !w.can(fault) {
		return fine
	}
	return f
}

// randomAction carries out a random action of a client, or from outside.
func (w *world) randomAction() {
	i := w.tape.pick(len(w.processes))
	if w.processes[i].dead {
		i = w.addProcess()
	}
	act := oneOf(w.tape, weightedActions...)
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
	w := randomWorld(0, &tape{})
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

// replay logs the events of a world, and fails if a rule is violated.
func replay(t *testing.T, kind int, choices []byte) {
	t.Helper()
	w := randomWorld(kind, &tape{bytes: choices})
	w.trace = &[]string{}
	err := w.simulate()
	t.Log(strings.Join(*w.trace, "\n"))
	if err != nil {
		t.Fatalf("%v\nreplay with -world.tape=%x", err, choices)
	}
}

// report shrinks a failing world and logs its events.
func report(t *testing.T, kind int, failing []byte, err error) {
	t.Helper()
	rule := func(err error) string {
		var v violation
		if errors.As(err, &v) {
			return v.rule
		}
		return "panic"
	}
	enough := time.Now().Add(20 * time.Second)
	replay(t, kind, shrink(failing, func(bytes []byte) bool {
		if time.Now().After(enough) {
			return false
		}
		other := randomWorld(kind, &tape{bytes: bytes}).simulate()
		return other != nil && rule(other) == rule(err)
	}))
}
