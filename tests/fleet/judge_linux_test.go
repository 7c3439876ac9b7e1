package fleet_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// requestTimeout is the timeout of proto.actor's requests.
	requestTimeout = 5 * time.Second
	// reportedWithin is how long after an overlap its report may come.
	reportedWithin = 15 * time.Second
)

// instance is one of the singleton, or an activation of a grain.
type instance struct {
	of       *process
	token    int64
	handling bool
	beganAt  int64
	// paused: its process was, for so long that others may have started. What counts is that it begins nothing.
	paused bool
}

// message is one of the singleton, or a request to a grain.
type message struct {
	of       *process
	name     string
	sentAt   int64
	begun    bool
	answered bool
	refused  bool // or failed
}

// written is a number in the store.
type written struct{ value, from, to int64 }

// suspicion is a fault, unless the process has reported that it was late, or robbed.
type suspicion struct {
	of   *process
	name string
	at   int64
	text string
}

// judging is the state of a judge.
type judging struct {
	verdict
	alive      map[string][]*instance
	newest     map[string]int64
	messages   map[int64]*message
	last       map[*process]int64 // the last message of its proxy that was begun
	lastAt     int64
	pausedAt   map[*process]int64
	lenient    map[*process]bool
	killed     map[*process]bool
	stopping   map[*process]bool
	handsOver  int64 // when the process of the singleton has begun to stop; 0: it has not
	diedAt     int64 // when it was killed
	takeover   int64 // when a replica has taken over from the last master
	suspicions []suspicion
	reports    map[string][]event
	store      map[string][]written
	unknown    map[string]int // beginnings of which the outcome in the store is not known
}

// judge judges a history. There are never two instances of an actor, nor two handlers, and none begins a message after the
// next one has started, unless its process reports that it was late or robbed; none begins one after its lease. Tokens grow.
// Each message is begun once and, of the singleton, in the order of its sender; or it is refused. The store keeps counting.
// What a killed process had in progress is excused. Messages are judged when all have ended.
func judge(history []event, ended bool) *verdict {
	slices.SortStableFunc(history, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	j := &judging{
		alive: map[string][]*instance{}, newest: map[string]int64{}, messages: map[int64]*message{}, last: map[*process]int64{},
		pausedAt: map[*process]int64{}, lenient: map[*process]bool{}, killed: map[*process]bool{}, stopping: map[*process]bool{}, reports: map[string][]event{},
		store: map[string][]written{}, unknown: map[string]int{},
	}
	j.errors = map[string]int{}
	for _, e := range history {
		j.happens(e)
	}
	j.judgeSuspicions()
	if ended {
		j.judgeMessages()
	}
	for _, name := range slices.Sorted(maps.Keys(j.store)) {
		j.judgeStore(name, j.store[name])
	}
	return &j.verdict
}

func (j *judging) fault(e event, format string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf("%d: ", e.at)+fmt.Sprintf(format, args...))
}

// unlessReported is a fault unless a process reports it. One that stops in good order has no reason to be late.
func (j *judging) unlessReported(of *process, e event, format string, args ...any) {
	if j.stopping[of] {
		j.fault(e, "%v stops, and "+format, append([]any{of}, args...)...)
		return
	}
	j.suspicions = append(j.suspicions, suspicion{of, e.name, e.at, fmt.Sprintf("%d: %v: ", e.at, of) + fmt.Sprintf(format, args...)})
}

// happens is called for each event.
func (j *judging) happens(e event) {
	switch e.what {
	case "started":
		j.started(e)
	case "stopped":
		j.alive[e.name] = slices.DeleteFunc(j.alive[e.name], func(i *instance) bool { return i.of == e.of && i.token == e.token })
	case "begins", "begins-late":
		j.begins(e)
	case "stored", "outdated", "ends":
		j.goesOn(e)
	case "killed":
		if j.hasSingleton(e.of) {
			j.diedAt, j.handsOver = e.at, 0
		}
		j.killed[e.of] = true
		for name := range j.alive {
			j.alive[name] = slices.DeleteFunc(j.alive[name], func(i *instance) bool { return i.of == e.of })
		}
	case "paused":
		j.pausedAt[e.of] = e.at
		j.setPaused(e.of, true)
	case "resumed":
		if time.Duration(e.at-j.pausedAt[e.of]) < e.of.s.Watchdog/2 {
			j.setPaused(e.of, false)
		}
		j.lenient[e.of] = true
	case "sent":
		j.messages[e.n] = &message{of: e.of, name: e.name, sentAt: e.at}
		j.sent++
	case "answered", "refused", "failed":
		j.ends(e)
	case "overrun":
		j.overruns += int(e.n)
		j.reported(e)
	case "robbed":
		j.robbed++
		if j.takeover == 0 || time.Duration(e.at-j.takeover) > reportedWithin {
			j.fault(e, "%v: Redis has lost the entry of %s, and no replica has taken over", e.of, e.name)
			return
		}
		j.reported(e)
	case "takeover":
		j.takeover = e.at
	case "stopping":
		j.stopping[e.of] = true
		if j.hasSingleton(e.of) {
			j.handsOver = e.at
		}
	case "ready", "nemesis":
	default:
		j.fault(e, "%s", e.what)
	}
}

// hasSingleton reports whether the only instance of the singleton is in a process.
func (j *judging) hasSingleton(of *process) bool {
	all := j.alive[theSingleton]
	return len(all) == 1 && all[0].of == of
}

func (j *judging) reported(e event) {
	key := e.name // Redis has lost what is about this grain
	if e.what == "overrun" {
		key = fmt.Sprint(e.of, e.name)
	}
	j.reports[key] = append(j.reports[key], e)
}

func (j *judging) setPaused(of *process, paused bool) {
	for _, instances := range j.alive {
		for _, i := range instances {
			if i.of == of {
				i.paused = paused
			}
		}
	}
}

func (j *judging) started(e event) {
	for _, other := range j.alive[e.name] {
		if !other.paused {
			j.doubles++
			j.unlessReported(other.of, e, "%s starts with %d while %d is alive", e.name, e.token, other.token)
		}
	}
	if before := j.newest[e.name]; e.token <= before {
		j.unlessReported(e.of, e, "%s has the token %d after %d", e.name, e.token, before)
	}
	if e.name == theSingleton {
		if j.handsOver > 0 {
			j.handOvers = append(j.handOvers, time.Duration(e.at-j.handsOver))
		} else if j.diedAt > 0 {
			j.takeovers = append(j.takeovers, time.Duration(e.at-j.diedAt))
		}
		j.handsOver, j.diedAt = 0, 0
	}
	j.newest[e.name] = e.token
	j.alive[e.name] = append(j.alive[e.name], &instance{of: e.of, token: e.token})
	j.starts++
}

// find returns the instance of an event; nil if it has stopped.
func (j *judging) find(e event) *instance {
	for _, i := range j.alive[e.name] {
		if i.of == e.of && i.token == e.token {
			return i
		}
	}
	return nil
}

func (j *judging) begins(e event) {
	j.begun++
	j.unknown[e.name]++
	it := j.find(e)
	if it == nil {
		j.fault(e, "%s begins a message with %d, and has stopped", e.name, e.token)
		return
	}
	it.handling, it.beganAt = true, e.at
	switch outdated := e.token != j.newest[e.name]; {
	case !outdated && e.what == "begins":
	case j.lenient[e.of]: // it was paused just before it began
		j.lenient[e.of] = false
	case outdated:
		j.unlessReported(e.of, e, "%s begins a message with %d after %d has started", e.name, e.token, j.newest[e.name])
	default:
		j.fault(e, "%s begins a message with %d after the end of its lease", e.name, e.token)
	}
	for _, other := range j.alive[e.name] {
		if other != it && other.handling && !other.paused {
			j.unlessReported(other.of, e, "two handlers of %s run, with %d and %d", e.name, e.token, other.token)
		}
	}
	m := j.messages[e.n]
	switch {
	case m == nil:
		j.fault(e, "%d is begun, and was not sent", e.n)
		return
	case m.begun && e.name != theSingleton && time.Duration(e.at-m.sentAt) >= requestTimeout:
		j.repeated++
	case m.begun:
		j.fault(e, "%d is begun twice", e.n)
	}
	m.begun = true
	if e.name == theSingleton {
		if e.n < j.last[m.of] {
			j.fault(e, "%d is begun after %d", e.n, j.last[m.of])
		}
		if j.lastAt > 0 {
			j.gap = max(j.gap, time.Duration(e.at-j.lastAt))
		}
		j.last[m.of], j.lastAt = e.n, e.at
	}
}

// goesOn is called for what happens in a handler.
func (j *judging) goesOn(e event) {
	it := j.find(e)
	switch {
	case it == nil:
		j.fault(e, "%s: %s with %d, and has stopped", e.name, e.what, e.token)
	case e.what == "ends":
		it.handling = false
	case e.what == "stored":
		j.stored++
		j.unknown[e.name]--
		j.store[e.name] = append(j.store[e.name], written{e.n, it.beganAt, e.at})
	default:
		j.outdated++
		j.unknown[e.name]--
		if e.token == j.newest[e.name] {
			j.unlessReported(e.of, e, "the newest %s, %d, is refused by the store", e.name, e.token)
		}
	}
}

// ends is called for what comes of a message.
func (j *judging) ends(e event) {
	m := j.messages[e.n]
	if m == nil {
		j.fault(e, "%d is %s, and was not sent", e.n, e.what)
		return
	}
	if m.answered || m.refused && e.what != "answered" { // the answer to a message whose outcome was not known may be late
		j.fault(e, "%d is %s twice", e.n, e.what)
	}
	switch e.what {
	case "answered":
		m.answered = true
		j.answered++
		if !m.begun {
			j.fault(e, "%d is answered without being begun", e.n)
		}
		if took := time.Duration(e.at - m.sentAt); m.name == theSingleton {
			j.trips = append(j.trips, took)
		} else {
			j.longest = max(j.longest, took)
		}
	case "refused":
		m.refused = true
		j.refused++
	case "failed":
		m.refused = true
		j.failed++
		j.errors[e.name]++
	}
}

// judgeSuspicions accepts what was reported.
func (j *judging) judgeSuspicions() {
	for _, s := range j.suspicions {
		actors := "-" // all grains
		if s.name == theSingleton {
			actors = theSingleton
		}
		reported := func(e event) bool { return max(e.at-s.at, s.at-e.at) < int64(reportedWithin) }
		if slices.ContainsFunc(j.reports[fmt.Sprint(s.of, actors)], reported) || slices.ContainsFunc(j.reports[s.name], reported) {
			j.excused++
		} else {
			j.faults = append(j.faults, s.text)
		}
	}
}

// judgeMessages sees to it that each message has an end.
func (j *judging) judgeMessages() {
	for n, m := range j.messages {
		switch {
		case m.answered:
		case m.begun && (m.refused || m.name == theSingleton):
			j.unanswered++
		case !m.refused && !j.killed[m.of]:
			j.faults = append(j.faults, fmt.Sprintf("%d: %v: %d, sent to %s, is lost", m.sentAt, m.of, n, m.name))
		}
	}
}

// judgeStore checks that the store has counted the writes: its operations have the order of its numbers.
func (j *judging) judgeStore(name string, all []written) {
	slices.SortFunc(all, func(a, b written) int { return cmp.Compare(a.value, b.value) })
	fault := func(format string, args ...any) { j.faults = append(j.faults, fmt.Sprintf(format, args...)) }
	began, before := int64(0), int64(0)
	for _, w := range all {
		if w.value == before {
			fault("%d: %s has written %d twice: an update is lost", w.to, name, w.value)
		}
		if w.to < began {
			fault("%d: %s has written %d before it began to write less", w.to, name, w.value)
		}
		began, before = max(began, w.from), w.value
	}
	if missing := before - int64(len(all)); missing > int64(j.unknown[name]) {
		fault("%s has written %d, and %d before that are missing", name, before, missing)
	}
}
