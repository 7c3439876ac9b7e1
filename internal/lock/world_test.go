package lock_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redismodel"
)

// A world is some processes that contend for one lock, a model of Redis, and what is on its
// way between them. Anything may go wrong with it, up to what its setting allows. One set of
// rules is checked whenever something has happened.
//
// There are two choosers of what happens next. A tape draws it at random, in large worlds
// (random_test.go). The exploration tries everything, in small ones (explore_test.go); so a
// world is a value, and can be copied.
type world struct {
	*setting
	tape      *tape // nil: nothing is left to chance
	now       lock.Instant
	redis     redismodel.Server
	processes []process
	net       []message // what is on its way, in the order in which it was sent
	foreign   []foreignClient
	counted   tally
	healed    bool // nothing goes wrong any more, and whoever holds releases
	// Redis does not answer, or has no memory left, until then.
	frozenUntil, fullUntil lock.Instant
	facts                  []fact
	tokens                 []int64 // those that were given to holds
	tokensLost             bool    // Redis has lost its memory, and with it its counter of tokens
	hasLateCommand         bool    // a command, or its reply, came after it was given up
	happened, atThisTime   int     // how many things, in all and at this very time
	trace                  *[]string
}

// setting says who lives in a world, and what may happen in it.
type setting struct {
	name   string
	kind   lock.Kind
	config lock.Config
	setup  redismodel.Setup
	limits tally
	// In an exploration: the requests of each process's callers (Owner 0 is nobody), in which
	// mode they re-enter, and how often time may pass, which is only while nothing is on its
	// way. 0: at any time.
	callers [maxProcesses][callers]lock.Request
	// members: of a MultiLock, which part alone a process wants, from 1; 0 is all of them.
	members [maxProcesses]int
	// inhabited is how many processes there are in an exploration, and begin what has happened before, on a
	// prompt network.
	processCount int
	begin        []move
	again        lock.Mode
	times        int
	// siblings: the first two are lock actors of one process, with one client id, on one key.
	twoActors bool
	// unequal: every other process polls more often, and so has less time in the line.
	unequalPolls bool
	encoder      encoder // of an exploration, for the worlds of which it asks one at a time
}

// longest is the longest lease that anybody asks for.
func (s *setting) longest() time.Duration { return max(s.config.Watchdog, 20*sec) }

// fault is something that may happen to a world, besides that clients ask for the lock.
type fault int

const (
	lost        fault = iota // commands, or their replies
	late                     // commands arrive after they were given up
	onePart                  // only one part of a lock carries a command out
	lostMessage              // subscriptions and their messages get lost
	loading                  // Redis refuses for now
	rejected                 // Redis refuses for good
	full                     // Redis has no memory left for a while
	frozen                   // Redis stops for a while
	restart                  // Redis comes back empty
	deleted                  // keys are deleted
	forced                   // locks are force-released
	slow                     // messages take long, and overtake each other
	paused                   // processes stop for a while
	lateTimer                // timers ring late
	crash                    // lock actors crash over a reply
	kill                     // processes end at once
	giveUp                   // a lock is given up, as when its actor crashes again and again
	closing                  // locks are closed
	death                    // owners die
	foreign                  // clients of another kind take the lock, and wait for it
	cancels
	reentry
	ensures
	suspects
	times
	free // everything else
	faults
)

// tally counts each of them.
type tally [faults]int16

const always = 1 << 14

// used is how often something has happened. What may go wrong with a message is counted
// together, and so is what Redis may refuse.
func (w *world) used(f fault) int16 {
	switch f {
	case lost, late, onePart, lostMessage:
		return w.counted[lost] + w.counted[late] + w.counted[onePart] + w.counted[lostMessage]
	case loading, rejected:
		return w.counted[loading] + w.counted[rejected]
	}
	return w.counted[f]
}

// can reports whether something may happen now, or once more.
func (w *world) can(f fault) bool { return f == free || !w.healed && w.used(f) < w.limits[f] }

// any reports whether one of them has happened.
func (w *world) any(some ...fault) bool {
	return slices.ContainsFunc(some, func(f fault) bool { return w.counted[f] > 0 })
}

// fact is what the rules have to know of a term's past.
type fact struct {
	redismodel.Owner
	ranSeq  uint64 // of the last command that was carried out
	arrived int    // which one it was in Redis's queue
	// One of its commands went wrong, so that the count in Redis may be off; was carried
	// out too late, or not in its order; may have put it into the queue again; was refused for
	// want of memory.
	countUncertain, late, mayReappear, countRefused bool
	// forgotten: it has had its turn, or lost its place by its silence or with Redis's memory.
	exempt bool
	// robbed: by something that the protocol cannot prevent, and when.
	keyLost   bool
	keyLostAt lock.Instant
}

// of finds what is known of a term.
func (w *world) factOf(o redismodel.Owner) fact {
	for i := range w.facts {
		if w.facts[i].Owner == o {
			return w.facts[i]
		}
	}
	return fact{Owner: o}
}

// note is the same, to be added to.
func (w *world) factFor(o redismodel.Owner) *fact {
	for i := range w.facts {
		if w.facts[i].Owner == o {
			return &w.facts[i]
		}
	}
	w.facts = append(w.facts, fact{Owner: o})
	return &w.facts[len(w.facts)-1]
}

// process is a lock, and the clients and the lock actor around it.
type process struct {
	client     redismodel.Client
	part       int // that it wants; -1 is the lock with all its parts
	kind       *lock.Kind
	lock       lock.Lock
	terms, ids uint64
	requests   []request // that are not answered yet, in their order
	holds      []hold    // in the order of their grants
	ended      []ended
	asked      [2]bool // of an exploration: which callers have asked
	dead       bool
	closed     bool
	// stalled: its lock actor has crashed, with effects that are still to be carried out.
	stalled bool
	// It wants messages, of the channel that the term has, or will.
	// hears: its subscription to transfers has been confirmed once.
	reachable      bool
	listening      bool
	channel        uint64
	subscriptionAt lock.Instant
	pausedUntil    lock.Instant
	wakeAt         lock.Instant // of its timer
	before         uint64       // the term before the present event
	lastSeq        uint64
	ranSync        uint64 // the last command about the queue that was carried out
	grants, events int
	tokens         []int64 // the highest that its lock has given
	overtaken      overtakes
}

const never = lock.Instant(-1)

// ref names a request to the lock.
type ref struct {
	id     uint64
	caller int8
	what   action
}

// request is what a client of a process asks for.
type request struct {
	ref
	at   lock.Instant
	req  lock.Request // of an acquire
	term uint64       // what it may stand in Redis's queue as
	// Whose hold, and in which mode, or which request, or for how long.
	hold  uint64
	owner lock.Owner
	mode  lock.Mode
	d     time.Duration
	// owners are those that a forced release names.
	owners lock.Owners
}

func (r request) String() string {
	if r.what == acquire {
		return fmt.Sprintf("acquire %d by owner %d, mode %d, lease %v, max hold %v, until %v, try %v", r.id, r.req.Owner, r.req.Mode, r.req.Lease, r.req.MaxHold, r.req.Deadline, r.req.Try)
	}
	return fmt.Sprintf("%s %d of %d, owner %d, mode %d", actions[r.what].name, r.id, r.hold, r.owner, r.mode)
}

// hold is an acquire that was granted.
type hold struct {
	request
	counts      counts
	tokens      []int64
	bound, good lock.Instant // its own end (0: it has none), and until when it was seen to be good
	lost, dead  bool         // it was told, and its owner is
}

type ended struct {
	id   uint64
	at   lock.Instant
	lost bool
}

// counts says how often an owner holds a lock, in each mode.
type counts struct{ exclusive, shared int }

func (c counts) total() int { return c.exclusive + c.shared }

func (c counts) in(m lock.Mode) int {
	if m == lock.Shared {
		return c.shared
	}
	return c.exclusive
}

func (c counts) plus(m lock.Mode, n int) counts {
	if m == lock.Shared {
		c.shared += n
	} else {
		c.exclusive += n
	}
	return c
}

// newWorld is a world with that many processes.
func newWorld(s *setting, t *tape, processes int) *world {
	w := &world{setting: s, tape: t}
	w.redis = redismodel.New(&s.setup)
	for range processes {
		w.addProcess()
	}
	if t == nil && s.times == 0 {
		w.counted[slow] = 1 // messages may take as long as they like
	}
	return w
}

// member is the kind of a lock that is also a part of a MultiLock.
var member = lock.Kind{WaitQueue: true}

// join adds a process.
func (w *world) addProcess() int {
	i := len(w.processes)
	cfg := w.config
	cfg.Seed += uint64(i)
	if w.unequalPolls && i%2 == 1 {
		cfg.Poll /= 3
	}
	p := process{client: redismodel.Client(i), part: -1, kind: &w.kind, wakeAt: never}
	if w.twoActors && i == 1 {
		p.client, p.terms = 0, 1<<20
	}
	if i < maxProcesses && w.members[i] > 0 {
		p.part, p.kind = w.members[i]-1, &member
	}
	p.lock = lock.New(&cfg, p.kind)
	w.processes = append(w.processes, p)
	return i
}

// CopyTo makes another world the same as this one. No trace of what happens to it is left here.
func (w *world) CopyTo(other *world) {
	ps, net, facts := other.processes[:0], other.net[:0], other.facts[:0]
	*other = *w
	other.processes, other.net, other.facts = append(ps, w.processes...), append(net, w.net...), append(facts, w.facts...)
	other.foreign, other.tokens = slices.Clone(w.foreign), slices.Clip(w.tokens)
	for i := range other.processes {
		p := &other.processes[i]
		p.lock.Detach()
		p.requests, p.holds, p.ended = slices.Clone(p.requests), slices.Clone(p.holds), slices.Clip(p.ended)
	}
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

func (w *world) logf(format string, args ...any) {
	if w.trace != nil {
		*w.trace = append(*w.trace, fmt.Sprintf("%12v  ", w.now)+fmt.Sprintf(format, args...))
	}
}

// event applies an event to a process's lock, as the lock actor does, and carries out what
// follows.
func (w *world) event(i int, name string, apply func(*lock.Lock)) {
	p := &w.processes[i]
	if p.dead {
		return
	}
	w.logf("p%d: %s", i, name)
	w.begin(i)
	if w.tape != nil {
		w.onCopy(i, apply)
	}
	apply(&p.lock)
	w.carryOut(i, -1)
	w.checkProcess(i)
	w.setTimer(i)
}

// begin prepares a lock for an event. A lock actor that has crashed does first what was left.
func (w *world) begin(i int) {
	p := &w.processes[i]
	if p.stalled {
		w.carryOut(i, -1)
	}
	if !p.lock.HasNextTerm() {
		p.terms++
		p.lock.SetNextTerm(p.terms)
	}
	p.before = p.lock.Term()
}

// inVain applies an event to a copy that is thrown away, as when the lock actor crashes: the
// original must not notice.
func (w *world) onCopy(i int, apply func(*lock.Lock)) {
	p := &w.processes[i]
	p.events++
	look := p.events%16 == 0 || w.tape == nil
	var before string
	if look {
		before = dump(p.lock)
	}
	scratch := p.lock
	apply(&scratch)
	if look && dump(p.lock) != before {
		w.violated("p%d: an event on a copy has changed the original\nbefore %s\nafter  %s", i, before, dump(p.lock))
	}
}

// setTimer sets the timer for the next Tick.
func (w *world) setTimer(i int) {
	p := &w.processes[i]
	wake, ok := p.lock.NextWake()
	if !ok {
		wake = never
	} else if w.can(lateTimer) {
		if d := oneOf(w.tape, 0, 0, 0, ms, 100*ms); d > 0 {
			w.counted[lateTimer]++
			wake += d
		}
	}
	p.wakeAt = wake
}

func (w *world) tick(i int) {
	w.event(i, "tick", func(l *lock.Lock) { l.Tick(w.now) })
	w.checkTick(i)
}

// place completes the place that a command takes.
func (w *world) completeEntry(p *process, c *lock.Command) {
	if c.Entry.Term != 0 {
		c.Entry.Listens, c.Entry.Reserves = p.reachable, p.kind.Parts
	}
}

// carryOut carries out so many effects, or all of them.
func (w *world) carryOut(i, most int) {
	p := &w.processes[i]
	for ; most != 0; most-- {
		e, more := p.lock.Effects()
		if !more {
			break
		}
		switch e.Kind {
		case lock.Send:
			w.checkSend(i, *e.Command)
			w.completeEntry(p, e.Command)
			w.send(message{kind: command, p: i, command: *e.Command, at: w.now + w.latency()})
		case lock.Reply:
			w.answered(i, e.Ref.(ref), e.Answer)
		case lock.NotifyLost:
			w.notifiedLost(i, e.Ref.(ref).id, e.Answer)
		case lock.NotifyAtRisk:
			if w.holdByID(i, e.Ref.(ref).id) == nil {
				w.violated("p%d: %v is warned, but the holders are %v", i, e.Ref, p.holds)
			}
		case lock.HoldEnded:
			w.holdEnded(i, e.Ref.(ref).id)
		case lock.Subscribe:
			p.listening, p.channel = true, e.Term
			w.subscribe(i, 0)
		case lock.Unsubscribe:
			p.listening = false
			w.unsubscribe(i, e.Term)
		}
	}
	p.stalled = most == 0
}
