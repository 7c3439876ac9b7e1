package actors

import (
	"errors"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// together is all of several parts or none: what a MultiLock is in Redis. They are
// taken one after another, always in the same order, and nothing is held while
// something is waited for: so nobody waits for another in a circle.
type together struct{ parts []target }

func (t *together) run(c core.Command, deadline time.Time, done func(verdict)) {
	switch {
	case c.Kind == core.Acquire && c.Count == 1:
		t.acquire(0, c, nil, deadline, done)
	case c.Kind == core.Yield:
		// Who else waits for which part is not asked: everybody has a go.
		t.all(asRelease(c), deadline, done)
	default:
		t.all(c, deadline, done)
	}
}

func asRelease(c core.Command) core.Command {
	c.Kind, c.Count, c.Shared = core.Release, 0, 0
	return c
}

// isFull reports whether a command frees the lock. A release that leaves a count does not:
// the hold goes on, and nothing of it may be freed.
func isFull(c core.Command) bool {
	return c.Kind == core.Release && c.Count == 0 && c.Shared == 0
}

// acquire takes the parts from the i-th on.
func (t *together) acquire(i int, c core.Command, tokens []int64, deadline time.Time, done func(verdict)) {
	if i == len(t.parts) {
		done(verdict{Result: core.Result{Outcome: core.Done, Tokens: tokens}})
		return
	}
	if !time.Now().Before(deadline) {
		late := core.Result{Outcome: core.Failed, Transient: true, Err: errTooSlow}
		rollBack(t.parts[:i], c, verdict{Result: late}, done)
		return
	}
	t.parts[i].run(c, deadline, func(v verdict) {
		switch {
		case v.Outcome == core.Done:
			t.acquire(i+1, c, append(tokens[:len(tokens):len(tokens)], v.Tokens...), deadline, done)
		case v.Unsure:
			rollBack(t.parts[:i+1], c, v, done)
		default:
			rollBack(t.parts[:i], c, v, done)
		}
	})
}

var errTooSlow = errors.New("the locks could not be taken together in time")

// rollBackTime is how long a roll-back may take, also after the time for the rest is over.
const rollBackTime = time.Second

// rollBack gives back what was taken, and says why when that is certain.
func rollBack(parts []target, c core.Command, why verdict, done func(verdict)) {
	if len(parts) == 0 {
		done(why)
		return
	}
	(&together{parts: parts}).all(asRelease(c), time.Now().Add(rollBackTime), func(v verdict) {
		if v.Outcome == core.Failed {
			why.Outcome, why.Unsure, why.Transient = core.Failed, true, true
			why.Err = errors.Join(why.Err, v.Err)
		}
		done(why)
	})
}

// all has every part carry out the command, side by side.
func (t *together) all(c core.Command, deadline time.Time, done func(verdict)) {
	type answer struct {
		verdict
		part target
	}
	g := &gather[answer]{n: len(t.parts), judge: atLast(func(answers []answer) {
		verdicts := make([]verdict, len(answers))
		for i, a := range answers {
			verdicts[i] = a.verdict
		}
		whole := sum(c, verdicts)
		if isFull(c) && whole.Outcome == core.Failed && !whole.Transient {
			// The whole is not tried again, because of one part; the others must not stay held.
			for _, a := range answers {
				if a.failed() {
					a.part.cleanUp(c)
				}
			}
		}
		done(whole)
	})}
	for _, part := range t.parts {
		part.run(c, deadline, func(v verdict) { g.add(answer{v, part}) })
	}
}

func (t *together) cleanUp(c core.Command) {
	for _, part := range t.parts {
		part.cleanUp(c)
	}
}

// sum is what the verdicts on the parts mean for the whole. That a part was lost counts
// for more than that another did not answer, except after a full release, which is tried again.
// What only some parts have carried out may have been carried out.
func sum(c core.Command, answers []verdict) verdict {
	whole := verdict{Result: core.Result{Outcome: core.Done}}
	var failed, lost *verdict
	unsure := false
	for i, v := range answers {
		whole.WasHeld = whole.WasHeld || v.WasHeld
		unsure = unsure || v.Unsure || v.Outcome == core.Done
		switch v.Outcome {
		case core.Failed:
			if failed == nil || !v.Transient {
				failed = &answers[i]
			}
		case core.Absent, core.Refused:
			if lost == nil || v.Taken || v.Outcome == core.Refused {
				lost = &answers[i]
			}
		}
	}
	switch {
	case failed != nil && (lost == nil || isFull(c)):
		whole.Result = failed.Result
		whole.Unsure = unsure
	case lost != nil:
		whole.Outcome, whole.Taken = core.Absent, lost.Taken || lost.Outcome == core.Refused
	}
	return whole
}

func (t *together) inspect(deadline time.Time, done func(wire.View, error)) {
	g := &gather[look]{n: len(t.parts), judge: atLast(func(looks []look) {
		whole := wire.View{TTL: -1}
		for _, l := range looks {
			if l.err != nil {
				done(wire.View{}, l.err)
				return
			}
			if l.Locked && (!whole.Locked || l.TTL > whole.TTL) {
				whole = l.View
			}
		}
		done(whole, nil)
	})}
	for _, part := range t.parts {
		part.inspect(deadline, func(v wire.View, err error) { g.add(look{v, err}) })
	}
}

func (t *together) ears() []ear {
	var all []ear
	for _, part := range t.parts {
		all = append(all, part.ears()...)
	}
	return all
}

// bundle are locks on one Redis, in one slot, that one script takes together.
type bundle struct {
	together
	leaves []*leaf
}

func newBundle(leaves []*leaf) *bundle {
	b := &bundle{leaves: leaves}
	for _, l := range leaves {
		b.parts = append(b.parts, l)
	}
	return b
}

func (b *bundle) run(c core.Command, deadline time.Time, done func(verdict)) {
	if c.Kind != core.Acquire || c.Count != 1 {
		b.together.run(c, deadline, done)
		return
	}
	first := b.leaves[0]
	members := make([]wire.Member, len(b.leaves))
	for i, l := range b.leaves {
		members[i] = l.member
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	call := wire.AcquireAll(members, &c, deadline)
	call.To = bundleReply{bundle: b, done: done}
	first.rt.redis.Run(call)
}

type bundleReply struct {
	bundle *bundle
	done   func(verdict)
}

// Replied implements redisio.Receiver.
func (r bundleReply) Replied(tag uint64, reply redisio.Reply) {
	_, result := r.bundle.leaves[0].member.Read(tag, reply)
	v := verdict{Result: result}
	if i := wire.Refuser(reply); result.Outcome == core.Refused && i >= 0 && i < len(r.bundle.leaves) {
		v.busy = r.bundle.leaves[i].ears()
	}
	r.done(v)
}
