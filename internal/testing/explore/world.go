package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Processes is a small world: some processes that share a synchronizer, a model of Redis, and the messages between
// them, with faults within a budget. Messages of a process may overtake each other.
type Processes[S Synchronizer[S]] struct {
	Net
	Shared S
}

// Synchronizer has the decision machines of the processes, their clients, and the state in Redis.
type Synchronizer[S any] interface {
	// Clone makes an independent copy.
	Clone() S
	// Core returns the decision machine of process i, ready for an event. A scratch is a copy as an actor makes one,
	// which is then discarded.
	Core(i int, scratch bool) Core
	// Replied is the event of a reply. Failure returns the result of a command that has failed: transient, so that
	// another try may succeed; unsure, so that it may have been carried out.
	Replied(c Core, now machine.Instant, command, result any)
	Failure(transient, unsure bool) any
	// CarryOut carries out the effects of process i after an event.
	CarryOut(n *Net, i int)
	// Execute carries out a command of process i in Redis; a nil result means no reply. NextEnd returns when the next
	// key expires there, 0 for never.
	Execute(n *Net, i int, command any) (result any)
	NextEnd(n *Net) machine.Instant
	// Copied reports whether a copy of a command may be carried out after its reply. No layer below the machines sends a
	// command twice, so this is only for commands that must be safe in any case.
	Copied(command any) bool
	// Wishes returns the actions that are possible for the clients of process i, and Do runs one.
	Wishes(n *Net, i int) []Wish
	Do(n *Net, i int, w Wish)
	// Kill ends process i. Only its state in Redis remains.
	Kill(i int)
	// Forget ends the records in Redis of the commands of all processes.
	Forget()
	// Check calls Violated if a rule is violated. Settled is a Check of a world without further moves.
	Check(n *Net)
	Settled(n *Net)
	// Process and Redis return the state of a process, with its record in Redis, and of Redis.
	Process(i int) any
	Redis() any
}

// Core is the decision machine of a process.
type Core interface {
	Tick(now machine.Instant)
	Signal(now machine.Instant)
	Subscribed(now machine.Instant, term uint64)
	NextWake() (at machine.Instant, ok bool)
}

// Wish is an action of a client, named by What, and the fault that it is.
type Wish struct {
	Client int
	What   string
	Costs  Fault
}

// Move is an event of a message, a process, or the clock.
type Move struct {
	does doing
	p, i int
	fate fate
	wish Wish
}

type doing int8

const (
	delivers doing = iota
	ticks
	wishes
	kills
	passes
	sleeps
)

type fate int8

const (
	fine fate = iota
	lost
	late
	twice
	refused
	rejected
	broken
	fates
)

var fateNames = [...]string{
	"", ", lost", ", which will be late", ", of which a copy comes later",
	", refused for now", ", rejected", ", broken off",
}

// NewProcesses returns a world with a number of processes and a budget of faults.
func NewProcesses[S Synchronizer[S]](shared S, processes int, may Budget) *Processes[S] {
	return &Processes[S]{Shared: shared, Net: Net{
		Now: time.Second, may: may, live: make([]member, processes), digest: newDigest(meanings), counter: new(int),
	}}
}

// CopyTo implements World.
func (w *Processes[S]) CopyTo(other *Processes[S]) {
	live, sent := append(other.live[:0], w.live...), append(other.sent[:0], w.sent...)
	*other = *w
	other.live, other.sent, other.Shared = live, sent, w.Shared.Clone()
}

// Moves implements World.
func (w *Processes[S]) Moves(list []Move) []Move {
	busy := false
	for k := range w.sent {
		m := &w.sent[k]
		busy = busy || !m.late
		for f := range fates {
			if w.mayHave(m, f) {
				list = append(list, Move{does: delivers, i: k, fate: f})
			}
		}
	}
	for i := range w.live {
		if w.live[i].dead {
			continue
		}
		if w.due(i) {
			busy = true
			list = append(list, Move{does: ticks, p: i})
		}
		for _, wish := range w.Shared.Wishes(&w.Net, i) {
			if w.can(wish.Costs) {
				list = append(list, Move{does: wishes, p: i, wish: wish})
			}
		}
		if w.can(Kill) {
			list = append(list, Move{does: kills, p: i})
		}
	}
	if w.nextTime() != 0 && w.can(Times) && (!busy || w.can(Slow)) {
		list = append(list, Move{does: passes, fate: map[bool]fate{true: late}[busy]})
	}
	if w.can(Sleep) {
		list = append(list, Move{does: sleeps})
	}
	return list
}

// mayHave reports whether a message may have a fate.
func (w *Processes[S]) mayHave(m *message, f fate) bool {
	switch f {
	case fine:
		return true
	case lost:
		return w.can(Network) || w.live[m.p].dead
	case late:
		return m.kind <= reply && !m.late && w.can(Network)
	case broken:
		return m.kind == reply && !m.late && w.can(Network)
	case rejected:
		return m.kind == command && !m.late && w.can(Reject)
	case twice:
		return m.kind == command && !m.late && w.can(Network) && w.Shared.Copied(m.command)
	default:
		return m.kind == command && !m.late && w.can(Network)
	}
}

// due reports whether a Tick of a process is due.
func (w *Processes[S]) due(i int) bool {
	at, ok := w.Shared.Core(i, false).NextWake()
	return ok && at <= w.Now
}

// nextTime returns the time of the next Tick or expiry, 0 if there is none.
func (w *Processes[S]) nextTime() (next machine.Instant) {
	soon := func(at machine.Instant) {
		if at > w.Now && (next == 0 || at < next) {
			next = at
		}
	}
	for i := range w.live {
		if at, ok := w.Shared.Core(i, false).NextWake(); ok && !w.live[i].dead {
			soon(at)
		}
	}
	soon(w.Shared.NextEnd(&w.Net))
	return next
}

// Describe implements World.
func (w *Processes[S]) Describe(a Move) string {
	text := fmt.Sprintf("%12v  p%d: ", w.Now, a.p)
	switch a.does {
	case delivers:
		return fmt.Sprintf("%12v  ", w.Now) + w.sent[a.i].String() + fateNames[a.fate]
	case wishes:
		return text + fmt.Sprintf("client %d: %s", a.wish.Client, a.wish.What)
	}
	return text + [...]string{ticks: "tick", kills: "killed", passes: "time passes", sleeps: "the machine sleeps"}[a.does]
}

// Try implements World.
func (w *Processes[S]) Try(a Move) (err error) {
	defer caught(&err)
	w.do(a)
	w.Shared.Check(&w.Net)
	return nil
}

// cost returns the fault of a move.
func (w *Processes[S]) cost(a Move) Fault {
	switch {
	case a.does == delivers && a.fate == rejected:
		return Reject
	case a.does == delivers && a.fate != fine && !w.live[w.sent[a.i].p].dead:
		return Network
	case a.does == kills:
		return Kill
	case a.does == passes && a.fate == late:
		return Slow
	case a.does == sleeps:
		return Sleep
	}
	return a.wish.Costs
}

func (w *Processes[S]) do(a Move) {
	w.Spent[w.cost(a)]++
	w.Spent[None] = 0
	switch a.does {
	case delivers:
		w.deliver(a.i, a.fate)
	case ticks:
		for range 2 { // one Tick may have no effect
			if w.due(a.p) {
				w.event(a.p, func(c Core) { c.Tick(w.Now) })
			}
		}
		if w.due(a.p) {
			w.Violated("p%d needs a third Tick at the same time", a.p)
		}
	case wishes:
		w.Shared.Do(&w.Net, a.p, a.wish)
		w.Shared.CarryOut(&w.Net, a.p)
	case kills:
		w.live[a.p] = member{dead: true}
		w.Shared.Kill(a.p)
		w.sent = slices.DeleteFunc(w.sent, func(m message) bool { return m.p == a.p && m.kind != command })
	case passes:
		w.Now = w.nextTime()
		if w.may[Times] != 0 {
			w.Spent[Times]++
		}
	case sleeps:
		w.Now += nap
		w.sent = slices.DeleteFunc(w.sent, func(m message) bool { return m.kind <= reply }) // their connections are gone
		w.Shared.Forget()
	}
}

// nap is the time that the machine sleeps: longer than Redis remembers a command.
const nap = 90 * time.Minute

// deliver lets a message meet its fate.
func (w *Processes[S]) deliver(k int, f fate) {
	m := w.sent[k]
	w.sent = slices.Delete(w.sent, k, k+1)
	after := m
	after.late = true
	switch {
	case f == lost:
	case f == late:
		w.sent = append(w.sent, after)
	case f == refused, f == rejected:
		w.answer(m, w.Shared.Failure(f == refused, false))
	case f == broken:
		w.event(m.p, func(c Core) { w.Shared.Replied(c, w.Now, m.command, w.Shared.Failure(true, true)) })
	case m.kind == command:
		if f == twice {
			after.copied = true
			w.sent = append(w.sent, after)
		}
		w.answer(m, w.Shared.Execute(&w.Net, m.p, m.command))
	case m.kind == reply:
		w.event(m.p, func(c Core) { w.Shared.Replied(c, w.Now, m.command, m.result) })
	case m.kind == subscription:
		w.live[m.p].listens = true
		w.event(m.p, func(c Core) { c.Subscribed(w.Now, 0) })
	default:
		w.event(m.p, func(c Core) { c.Signal(w.Now) })
	}
}

// answer sends the reply to a command. A second copy of a command gets none.
func (w *Processes[S]) answer(m message, result any) {
	if result != nil && !m.copied && !w.live[m.p].dead {
		w.sent = append(w.sent, message{kind: reply, p: m.p, command: m.command, result: result})
	}
}

// event applies an event to a process. Every 16th is first applied to a copy that is discarded, as when an actor
// crashes.
func (w *Processes[S]) event(i int, apply func(Core)) {
	c := w.Shared.Core(i, false)
	if *w.counter++; *w.counter%16 == 0 {
		before := w.hashOf(i)
		apply(w.Shared.Core(i, true))
		if w.hashOf(i) != before {
			w.Violated("p%d: an event on a copy has changed the original", i)
		}
	}
	apply(c)
	w.Shared.CarryOut(&w.Net, i)
}

func (w *Processes[S]) hashOf(i int) uint64 {
	w.digest.begin(w.Now)
	w.digest.write(w.Shared.Process(i))
	w.digest.rank()
	return w.digest.sum()
}

// Hash implements World.
func (w *Processes[S]) Hash() uint64 {
	d := w.digest
	d.begin(w.Now)
	d.write(w.Spent)
	d.write(w.Shared.Redis())
	for i := range w.live {
		d.write(w.live[i])
		d.write(w.Shared.Process(i))
		for k := range kinds {
			for _, m := range w.sent {
				if m.p == i && m.kind == k {
					d.write(m)
				}
			}
		}
		d.rank()
	}
	return d.sum()
}

// settleTime bounds the time that Settle continues.
const settleTime = 20 * time.Second

// Settle implements World.
func (w *Processes[S]) Settle() (err error) {
	defer caught(&err)
	w.Calm = true
	for end := w.Now + settleTime; w.Now < end; w.Shared.Check(&w.Net) {
		a, ok := w.next()
		if !ok {
			break
		}
		w.do(a)
	}
	w.Shared.Settled(&w.Net)
	return nil
}

// next returns the next move in a world without faults.
func (w *Processes[S]) next() (a Move, ok bool) {
	if len(w.sent) > 0 {
		return Move{does: delivers}, true
	}
	for i := range w.live {
		if w.live[i].dead {
			continue
		}
		if w.due(i) {
			return Move{does: ticks, p: i}, true
		}
		for _, wish := range w.Shared.Wishes(&w.Net, i) {
			if wish.Costs == None {
				return Move{does: wishes, p: i, wish: wish}, true
			}
		}
	}
	return Move{does: passes}, w.nextTime() != 0
}
