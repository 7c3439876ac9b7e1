package lock_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// A world is a simulation: some processes that contend for one lock, a model of Redis, and the messages between
// them, with any fault that its setting allows. One set of rules is checked after every event.
//
// The next event is chosen at random, in large worlds (random_test.go), or from the exploration, which
// tries every event in small worlds (explore_test.go). For that, a world is a value and can be copied.
type world struct {
	*setting
	choices   *choices // nil in an exploration
	now       machine.Instant
	redis     redismodel.Server
	processes []process
	net       []message // the messages on their way, in the order in which they were sent
	foreign   []foreignClient
	counted   tally
	healed    bool // the faults have ended, and every holder releases
	// Redis does not answer, or has no memory left, until these times.
	frozenUntil, fullUntil machine.Instant
	facts                  []fact
	tokens                 []int64         // those that were given to holds
	keptUntil              machine.Instant // until when the lock is kept for the minimum time of a hold that has ended
	tokensLost             bool            // Redis has lost its data, and so the counter of tokens
	hasLateCommand         bool            // a command, or its reply, came after its deadline
	happened, atThisTime   int             // number of events, in all and at the present time
	trace                  *[]string
}

// used is how often a fault has happened. The faults of messages are counted together, and so are the two ways in
// which Redis refuses.
func (w *world) used(f fault) int16 {
	switch f {
	case lost, late, onePart, lostMessage:
		return w.counted[lost] + w.counted[late] + w.counted[onePart] + w.counted[lostMessage]
	case loading, rejected:
		return w.counted[loading] + w.counted[rejected]
	}
	return w.counted[f]
}

// can reports whether a fault may happen now.
func (w *world) can(f fault) bool { return f == free || !w.healed && w.used(f) < w.limits[f] }

// any reports whether one of these faults has happened.
func (w *world) any(some ...fault) bool {
	return slices.ContainsFunc(some, func(f fault) bool { return w.counted[f] > 0 })
}

// fact is the history of a term, for the rules.
type fact struct {
	redismodel.Owner
	ranSeq  uint64 // the last command that was carried out
	arrived int    // its position in the order of arrival in Redis's queue
	// One of its commands had a fault, so the count in Redis may be wrong (countUncertain); was carried out too
	// late, or not in order (late); may have added its entry again after it had failed (mayReappear); was refused
	// because Redis had no memory (countRefused).
	countUncertain, late, mayReappear, countRefused bool
	// exempt from the rule of the order: it was granted, or its entry expired or was lost with Redis's data.
	exempt bool
	// keyLost: an event that the protocol cannot prevent has removed its key, at keyLostAt.
	keyLost   bool
	keyLostAt machine.Instant
	// kept: its key is left to expire, under another owner.
	kept bool
}

// factOf returns the history of a term.
func (w *world) factOf(o redismodel.Owner) fact {
	for i := range w.facts {
		if w.facts[i].Owner == o {
			return w.facts[i]
		}
	}
	return fact{Owner: o}
}

// factFor returns the history of a term for a change.
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
	part       int // the part that it wants; -1 is the lock with all its parts
	features   *lock.Features
	lock       lock.Lock
	terms, ids uint64
	requests   []request // not answered yet, in order
	holds      []hold    // in the order of the grants
	ended      []ended
	asked      [callers]bool // which callers of an exploration have asked
	dead       bool
	closed     bool
	// stalled: its lock actor has crashed, and has not carried out all effects yet.
	stalled bool
	// listening: it wants the messages of the channel. reachable: its subscription to transfers was confirmed once.
	reachable      bool
	listening      bool
	channel        uint64
	subscriptionAt machine.Instant
	pausedUntil    machine.Instant
	wakeAt         machine.Instant // when its timer fires
	leaveUntil     machine.Instant // until when Redis has asked it to leave the lock to others
	before         uint64          // the term before the present event
	lastSeq        uint64
	ranSync        uint64 // the last SyncQueue that was carried out
	grants, events int
	tokens         []int64 // the last that were granted
	overtaken      overtakes
}

const never = machine.Instant(-1)

// ref names a request to the lock.
type ref struct {
	id     uint64
	caller int8
	what   action
}

// request is what a client of a process asks for.
type request struct {
	ref
	at   machine.Instant
	req  machine.Request // of an acquire
	term uint64          // the term of its entry in Redis's queue, if it has one
	// The hold or the request that it is about, its owner and mode, and the duration of an ensure.
	hold  uint64
	owner machine.Owner
	mode  machine.Mode
	d     time.Duration
	// owners are the owners that a forced release names.
	owners machine.Owners
}

func (r request) String() string {
	if r.what == acquire {
		return fmt.Sprintf(
			"acquire %d by owner %d, mode %d, lease %v, max hold %v, until %v, try %v", r.id, r.req.Owner, r.req.Mode,
			r.req.Lease, r.req.MaxHold, r.req.Deadline, r.req.Try,
		)
	}
	return fmt.Sprintf("%s %d of %d, owner %d, mode %d", actions[r.what].name, r.id, r.hold, r.owner, r.mode)
}

// hold is an acquire that was granted.
type hold struct {
	request
	counts      counts
	tokens      []int64
	bound, good machine.Instant // its own end (0: none), and the end of its validity as last seen
	ensured     machine.Instant // until when it is valid, as an Ensure has answered
	keepUntil   machine.Instant // the end of its minimum time; 0 for none
	shortest    machine.Instant // the earliest end of the leases that were asked for while it is held; 0 for none
	lost, dead  bool            // its holder was notified of the loss; its owner is dead
}

type ended struct {
	id            uint64
	at, keepUntil machine.Instant
	lost          bool
}

// counts are the hold counts of an owner, in each mode.
type counts struct{ exclusive, shared int }

func (c counts) total() int { return c.exclusive + c.shared }

func (c counts) in(m machine.Mode) int {
	if m == machine.Shared {
		return c.shared
	}
	return c.exclusive
}

func (c counts) plus(m machine.Mode, n int) counts {
	if m == machine.Shared {
		c.shared += n
	} else {
		c.exclusive += n
	}
	return c
}

// newWorld returns a world with that many processes.
func newWorld(s *setting, t *choices, processes int) *world {
	w := &world{setting: s, choices: t}
	s.encoder.digest = explore.NewDigest(lock.Meanings)
	w.redis = redismodel.New(&s.setup)
	for range processes {
		w.addProcess()
	}
	if t == nil && s.times == 0 {
		w.counted[slow] = 1 // messages may take any time
	}
	return w
}

// member has the features of a lock that is also a part of a MultiLock.
var member = lock.Features{WaitQueue: true}

// addProcess adds a process, and returns its index.
func (w *world) addProcess() int {
	i := len(w.processes)
	cfg := w.config
	cfg.Seed += uint64(i)
	if w.unequalPolls && i%2 == 1 {
		cfg.Poll /= 3
	}
	p := process{client: redismodel.Client(i), part: -1, features: &w.features, wakeAt: never}
	if w.twoActors && i == 1 {
		p.client, p.terms = 0, 1<<20
	}
	if i < maxProcesses && w.members[i] > 0 {
		p.part, p.features = w.members[i]-1, &member
	}
	p.lock = lock.New(&cfg, p.features)
	w.listenForAsks(&p)
	w.processes = append(w.processes, p)
	return i
}

// CopyTo makes another world equal to this one. Later events of either do not change the other.
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

// violation is the panic value of a broken rule.
type violation string

func (v violation) Error() string { return string(v) }

func (w *world) violated(format string, args ...any) {
	panic(violation(fmt.Sprintf(format, args...)))
}

func (w *world) logf(format string, args ...any) {
	if w.trace != nil {
		*w.trace = append(*w.trace, fmt.Sprintf("%12v  ", w.now)+fmt.Sprintf(format, args...))
	}
}

// event applies an event to a process's lock, as the lock actor does, and carries out the effects.
func (w *world) event(i int, name string, apply func(*lock.Lock)) {
	p := &w.processes[i]
	if p.dead {
		return
	}
	w.logf("p%d: %s", i, name)
	w.begin(i)
	if w.choices != nil {
		w.onCopy(i, apply)
	}
	apply(&p.lock)
	w.carryOut(i, -1)
	w.checkProcess(i)
	w.setTimer(i)
}

// begin prepares a lock for an event. A lock actor that has crashed first carries out the remaining effects.
func (w *world) begin(i int) {
	p := &w.processes[i]
	if p.stalled {
		w.carryOut(i, -1)
	}
	if !p.lock.HasNextTerm() {
		p.terms++
		p.lock.SetNextTerm(p.terms)
	}
	p.before = p.lock.Summary().Term
}

// onCopy applies an event to a copy that is discarded, as in a crash of the lock actor, and checks that the
// original is unchanged.
func (w *world) onCopy(i int, apply func(*lock.Lock)) {
	p := &w.processes[i]
	p.events++
	compare := p.events%16 == 0 || w.choices == nil
	var before string
	if compare {
		before = dump(p.lock)
	}
	scratch := p.lock
	apply(&scratch)
	if compare && dump(p.lock) != before {
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
		if d := oneOf(w.choices, 0, 0, 0, ms, 100*ms); d > 0 {
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

// completeEntry sets what the lock actor knows of a command's entry.
func (w *world) completeEntry(p *process, c *lock.Command) {
	if c.Entry.Term != 0 {
		c.Entry.Listens, c.Entry.Reserves = p.reachable, p.features.Parts
	}
}

// carryOut carries out at most that many effects, or all if most is negative.
func (w *world) carryOut(i, most int) {
	p := &w.processes[i]
	for ; most != 0; most-- {
		e, more := p.lock.Next()
		if !more {
			break
		}
		switch e.Kind {
		case machine.Send:
			w.checkSend(i, *e.Ref.(*lock.Command))
			w.completeEntry(p, e.Ref.(*lock.Command))
			w.send(message{kind: command, p: i, command: *e.Ref.(*lock.Command), at: w.now + w.latency()})
		case machine.Reply:
			w.answered(i, e.Ref.(ref), e.Answer)
		case machine.NotifyLost:
			w.notifiedLost(i, e.Ref.(ref).id, e.Answer)
		case machine.Bounded:
			w.bounded(i, e.Ref.(ref).id, e.Answer)
		case machine.NotifyAtRisk:
			if w.holdByID(i, e.Ref.(ref).id) == nil {
				w.violated("p%d: %v is warned, but the holders are %v", i, e.Ref, p.holds)
			}
		case machine.HoldEnded:
			w.holdEnded(i, e.Ref.(ref).id)
		case machine.Subscribe:
			p.listening, p.channel = true, e.Term
			w.subscribe(i, 0)
		case machine.Unsubscribe:
			p.listening = false
			w.unsubscribe(i, e.Term)
		}
	}
	p.stalled = most == 0
}
