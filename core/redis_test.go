package core_test

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// redis is the model of the server, with what the rules want to know of its past.
type redis struct {
	w *world
	model.Server
	frozenUntil core.Instant
	fullUntil   core.Instant
	// heard is what to do when a client that is not a process hears something.
	heard map[model.Client]func()
	// broken remembers which owners were robbed by something that the protocol
	// cannot prevent (DEL, flush, force-release, a crash), and when.
	broken map[model.Owner]core.Instant
	// forgetful: it has crashed, so that its tokens began anew.
	forgetful bool
	// arrived numbers the waiters of a fair lock in their order; forgotten are those who
	// have had their turn, or lost their place for having been silent or together with
	// Redis's memory.
	arrived   map[model.Owner]int
	forgotten map[model.Owner]bool
}

func newRedis(w *world, rate float64) *redis {
	setup := &model.Setup{
		Kinds: modelled(w.kind), Silence: w.silence, Announcement: 2 * w.cfg.Poll, Rate: rate, Name: model.Owner.String,
		Pick: func(fields []model.Field) int { return w.tape.pick(len(fields)) },
	}
	return &redis{
		w: w, Server: model.New(setup), heard: map[model.Client]func(){},
		broken: map[model.Owner]core.Instant{}, arrived: map[model.Owner]int{}, forgotten: map[model.Owner]bool{},
	}
}

// modelled are the kinds of locks in Redis that a kind decides about.
func modelled(k *core.Kind) []model.Kind {
	kind := model.Reentrant
	switch {
	case k.Shares:
		kind = model.ReadWrite
	case k.Queued:
		kind = model.Fair
	case k.Parts:
		kind = model.Fenced
	}
	if k.Parts {
		return []model.Kind{kind, kind}
	}
	return []model.Kind{kind}
}

// grows reports whether a command may need memory, so that a Redis that is full refuses it.
// More is refused here than by a real one, which refuses nothing behind a script's first write.
func grows(c core.Command) bool {
	switch c.Kind {
	case core.Acquire, core.Yield:
		return true
	case core.Release:
		return c.Count+c.Shared > 0
	case core.Enrol:
		return c.Term == 0 && len(c.Entries) > 0
	}
	return false
}

// run carries out a command of a process.
func (r *redis) run(p *process, c core.Command) core.Result {
	r.expire()
	if r.w.now < r.fullUntil && grows(c) {
		if c.Kind != core.Enrol {
			p.owing = c.Term
		}
		return fullR
	}
	if c.Term == p.owing && (c.Kind == core.Acquire || c.Kind == core.Release) {
		p.owing = 0
	}
	before := r.Clone()
	result, told := r.Run(p.client, c)
	if c.Kind == core.ForceRelease {
		r.robbed(&before)
	}
	var top uint64
	if c.Kind == core.Enrol {
		top = c.Top
	}
	r.watchQueue(&before, func(o model.Owner) bool { return o.Client == p.client && o.Term <= top })
	r.tell(told)
	return result
}

func (r *redis) expire() { r.At(r.w.now) }

// tell delivers messages.
func (r *redis) tell(told []model.Publication) {
	for _, t := range told {
		for _, c := range r.Hearers(t) {
			if int(c) < len(r.w.processes) {
				r.w.processes[c].hear()
			} else {
				r.heard[c]()
			}
		}
	}
}

// rob deletes the key of a part from under its owners.
func (r *redis) rob(part int) {
	r.expire()
	before := r.Clone()
	r.Delete(part)
	r.robbed(&before)
}

// robbed takes note of those who have lost their key.
func (r *redis) robbed(before *model.Server) {
	for i := range r.Parts() {
		for _, h := range before.Part(i).Holders() {
			if r.Part(i).Of(h.Owner) == (model.Counts{}) {
				r.broken[h.Owner] = r.w.now
			}
		}
	}
}

// crash loses everything.
func (r *redis) crash() {
	r.expire()
	before := r.Clone()
	r.Restart()
	r.robbed(&before)
	for _, w := range before.Part(0).Queue() {
		r.forgotten[w.Owner] = true
	}
	r.forgetful = true
}

// has tells how an owner holds the lock, if it does, and until when the key lives.
func (r *redis) has(o model.Owner) (held counts, until core.Instant, ok bool) {
	for i := range r.Parts() {
		l := r.Part(i)
		each := l.Of(o)
		if each == (model.Counts{}) {
			return counts{}, 0, false
		}
		if end := l.Lasts(o); i == 0 || end < until {
			until = end
		}
		held = counts{each.Exclusive, each.Shared}
	}
	return held, until, true
}

// watchQueue compares the queue of a fair lock with what it was: who has got the lock must
// have been the first; and who has left, of whom leaves is true, must not wait any more.
func (r *redis) watchQueue(before *model.Server, leaves func(model.Owner) bool) {
	if !r.w.kind.Queued {
		return
	}
	was, is := before.Part(0), r.Part(0)
	stands := func(l *model.Lock, o model.Owner) bool {
		return slices.ContainsFunc(l.Queue(), func(w model.Waiter) bool { return w.Owner == o })
	}
	for _, h := range is.Holders() {
		if was.Of(h.Owner) != (model.Counts{}) {
			continue
		}
		r.arrive(h.Owner)
		r.w.checkTurn(h.Owner, func(o model.Owner) bool { return stands(was, o) })
		r.forgotten[h.Owner] = true // it has had its turn, even if it never hears of it
	}
	for _, w := range is.Queue() {
		r.arrive(w.Owner)
	}
	for _, w := range was.Queue() {
		switch {
		case stands(is, w.Owner), is.Of(w.Owner) != (model.Counts{}):
		case leaves(w.Owner):
			r.w.checkLeaves(w.Owner)
		default:
			r.forgotten[w.Owner] = true
		}
	}
}

func (r *redis) arrive(o model.Owner) {
	if r.arrived[o] == 0 {
		r.arrived[o] = len(r.arrived) + 1
	}
}

// waiterOf is the request that stands in the queue as that owner, if it is still open.
func (w *world) waiterOf(o model.Owner) (*process, *request) {
	if int(o.Client) >= len(w.processes) || w.processes[o.Client].dead {
		return nil, nil
	}
	p := w.processes[o.Client]
	for _, r := range p.requests {
		if r.ticket != nil && !r.ticket.Try && r.term == o.Term {
			return p, r
		}
	}
	return nil, nil
}

// checkTurn checks, when somebody takes the lock, that nobody has come before. Of those who
// stood in the queue, the script knows who is dead.
func (w *world) checkTurn(taker model.Owner, stood func(model.Owner) bool) {
	r := w.redis
	for other, number := range r.arrived {
		if number >= r.arrived[taker] || r.forgotten[other] || stood(other) {
			continue
		}
		if p, waiter := w.waiterOf(other); waiter != nil && waiter.ticket.Owner == 0 {
			w.violated("%s gets the lock before %s, which is %s's %v", taker, other, p.uuid, waiter)
		}
	}
}

// checkLeaves checks that nobody is made to leave the queue who still waits. An owner's
// request may become a re-entry meanwhile.
func (w *world) checkLeaves(o model.Owner) {
	if p, r := w.waiterOf(o); r != nil && r.ticket.Owner == 0 {
		w.violated("%s, which is %s's %v, loses its place", o, p.uuid, r)
	}
}

// counts says how often an owner holds a lock, in each mode.
type counts struct{ exclusive, shared int }

func (c counts) total() int { return c.exclusive + c.shared }

// owners are those who hold the first part.
func (r *redis) owners() []model.Owner {
	var all []model.Owner
	for _, h := range r.Part(0).Holders() {
		all = append(all, h.Owner)
	}
	return all
}
