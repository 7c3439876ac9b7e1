package actors

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// quorum is one lock on a majority of independent servers: what a RedLock is in Redis
// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/). The core
// counts the validity from before the first server is asked, and subtracts the drift.
type quorum struct {
	leaves []*leaf
	// quarantine is how old a server's memory must be known to be, else it has no vote.
	quarantine time.Duration
	// ended is the last term that was given back; what a server grants it later is given back too.
	ended atomic.Uint64
}

func (q *quorum) majority() int { return len(q.leaves)/2 + 1 }

func (q *quorum) run(c core.Command, deadline time.Time, done func(verdict)) {
	switch {
	case c.Kind == core.Acquire && c.Count == 1:
		q.acquire(c, deadline, done)
	case isFull(c):
		q.release(c, deadline, done)
	case c.Kind == core.Yield:
		q.release(asRelease(c), deadline, done)
	case c.Kind == core.ForceRelease:
		q.force(c, deadline, done)
	default:
		q.set(c, deadline, done)
	}
}

// tally sorts the verdicts of the servers.
type tally struct{ done, refused, absent, failed []vote }

type vote struct {
	verdict
	leaf *leaf
}

func count(votes []vote) (t tally) {
	for _, v := range votes {
		switch v.Outcome {
		case core.Done:
			t.done = append(t.done, v)
		case core.Refused:
			t.refused = append(t.refused, v)
		case core.Absent:
			t.absent = append(t.absent, v)
		default:
			t.failed = append(t.failed, v)
		}
	}
	return t
}

// acquire asks all servers side by side. It ends with the majority, or as soon as that
// is out of reach; what a minority has granted is given back then. When a majority has
// answered but is split, those that are much slower are not waited for: two processes would
// keep the lock from each other until the servers that hang have timed out.
func (q *quorum) acquire(c core.Command, deadline time.Time, done func(verdict)) {
	began := time.Now()
	var patience *time.Timer
	end := func() {
		if patience != nil {
			patience.Stop()
		}
	}
	g := &gather[vote]{n: len(q.leaves)}
	g.judge = func(votes []vote, _ bool) (func(), bool) {
		t := count(votes)
		switch {
		case len(t.done) >= q.majority():
			end()
			if q.distinct() != nil {
				q.end(c.Term)
				return func() { q.giveBack(c, t, done) }, true
			}
			return func() { done(verdict{Result: core.Result{Outcome: core.Done}}) }, true
		case len(votes)-len(t.done) > len(q.leaves)-q.majority():
			end()
			q.end(c.Term) // before a vote can be late
			return func() { q.giveBack(c, t, done) }, true
		case len(t.done)+len(t.refused) >= q.majority() && patience == nil:
			patience = time.AfterFunc(max(split, 2*time.Since(began)), func() {
				g.cut(func(votes []vote) func() {
					q.end(c.Term)
					t := count(votes)
					for range len(q.leaves) - len(votes) {
						t.failed = append(t.failed, vote{verdict: verdict{Result: tooSlow}})
					}
					return func() { q.giveBack(c, t, done) }
				})
			})
		}
		return nil, false
	}
	for _, l := range q.leaves {
		q.vote(l, c, q.quarantine, deadline, func(v verdict) (late bool) { return g.add(vote{v, l}) })
	}
}

// distinct says which two of the leaves are on one server, as far as is known.
func (q *quorum) distinct() error {
	var systems []*Runtime
	for _, l := range q.leaves {
		systems = append(systems, l.rt)
	}
	return distinct(systems)
}

// tooSlow is the vote of a server that was not waited for any longer.
var tooSlow = core.Result{Outcome: core.Failed, Transient: true, Err: errors.New("no answer yet")}

// vote asks one server. Its answer may come when the term is over already, since nobody
// waits for more than a majority, and what was granted must not outlast it.
func (q *quorum) vote(l *leaf, c core.Command, quarantine time.Duration, deadline time.Time, done func(verdict) (late bool)) {
	l.vote(c, quarantine, deadline, func(v verdict) {
		granted := v.Outcome == core.Done || v.Unsure
		if granted {
			raise(&l.granted, c.Term)
		}
		over := c.Term <= q.ended.Load()
		if done(v) {
			over = c.Term <= q.ended.Load()
		}
		if over && granted {
			l.undo(c)
		}
	})
}

// end takes note that a term is over, before its releases are sent.
func (q *quorum) end(term uint64) { raise(&q.ended, term) }

// raise makes a number the given one, unless it is higher already.
func raise(number *atomic.Uint64, to uint64) {
	for {
		last := number.Load()
		if to <= last || number.CompareAndSwap(last, to) {
			return
		}
	}
}

// giveBack releases whatever was granted. It waits for those servers that have granted;
// those that failed are told too, and those that have not answered yet when they do.
func (q *quorum) giveBack(c core.Command, t tally, done func(verdict)) {
	why := q.refusal(t)
	if err := q.distinct(); err != nil {
		why = verdict{Result: core.Result{Outcome: core.Failed, Err: err}}
	}
	for _, v := range t.failed {
		if v.Unsure {
			v.leaf.undo(c)
		}
	}
	if len(t.done) == 0 {
		done(why)
		return
	}
	g := &gather[vote]{n: len(t.done), judge: atLast(func(votes []vote) {
		for _, v := range votes {
			if v.failed() {
				v.leaf.cleanUp(c)
			}
		}
		done(why)
	})}
	deadline := time.Now().Add(rollBackTime)
	for _, v := range t.done {
		v.leaf.run(asRelease(c), deadline, func(r verdict) { g.add(vote{r, v.leaf}) })
	}
}

func (q *quorum) cleanUp(c core.Command) {
	q.end(c.Term)
	for _, l := range q.leaves {
		l.cleanUp(c)
	}
}

// split bounds how long those who took a minority each wait before they try again. The
// wait is random, so that they do not go on colliding.
const split = 50 * time.Millisecond

// refusal is why there was no majority.
func (q *quorum) refusal(t tally) verdict {
	if len(t.refused) == 0 || len(t.failed) > len(q.leaves)-q.majority() {
		return q.failure(t)
	}
	v := verdict{Result: core.Result{Outcome: core.Refused}}
	holders := map[string]int{}
	for _, r := range t.refused {
		if holders[r.Holder]++; holders[r.Holder] > holders[v.Holder] || v.Holder == "" {
			v.Holder, v.OwnTerm = r.Holder, r.OwnTerm
		}
	}
	for _, r := range t.refused {
		if r.Holder == v.Holder { // the others fail as we do: to wait for them would set off the next collision
			v.busy = append(v.busy, r.busy...)
		}
	}
	if len(t.done) > 0 && holders[v.Holder] < q.majority()-len(t.failed) {
		v.TTL = rand.N(split) // we had a part, and nobody has the majority
		return v
	}
	// When so many of them have run out that a majority is free, soonest first.
	slices.SortFunc(t.refused, func(a, b vote) int { return cmp.Compare(uint64(a.TTL), uint64(b.TTL)) })
	lacking := max(q.majority()-len(t.done), 1)
	v.TTL = t.refused[min(lacking, len(t.refused))-1].TTL
	return v
}

// errNoVote is why there was no majority though every server answered.
var errNoVote = errors.New("a majority of the servers knows nothing of the lock")

// failure tells how many servers did not take part, and why one of them did not.
func (q *quorum) failure(t tally) verdict {
	if len(t.failed) == 0 {
		return verdict{Result: core.Result{Outcome: core.Failed, Transient: true, Err: errNoVote}}
	}
	v := verdict{Result: core.Result{Outcome: core.Failed}}
	for _, f := range t.failed {
		v.Transient, v.Unsure = v.Transient || f.Transient, v.Unsure || f.Unsure
		v.Err = fmt.Errorf("%d of %d servers failed, and %d are needed: %w", len(t.failed), len(q.leaves), q.majority(), f.Err)
	}
	return v
}

// halfDone is the failure of a command that some servers may have carried out.
func (q *quorum) halfDone(t tally) verdict {
	v := q.failure(t)
	v.Unsure = v.Unsure || len(t.done) > 0
	return v
}

// set renews the lease, or changes its count, on a majority. A server that knows
// nothing of the lease, since it was restarted or did not answer before, is given it.
func (q *quorum) set(c core.Command, deadline time.Time, done func(verdict)) {
	decided := false
	g := &gather[vote]{n: len(q.leaves), judge: func(votes []vote, last bool) (func(), bool) {
		t := count(votes)
		lost := len(t.absent) + len(t.refused)
		switch {
		case decided: // what comes late may still want to be healed
			return func() { q.heal(c, count(votes[len(votes)-1:]).absent) }, last
		case len(t.done) >= q.majority():
			decided = true
			return func() {
				q.heal(c, t.absent)
				done(verdict{Result: core.Result{Outcome: core.Done}})
			}, last
		case lost > len(q.leaves)-q.majority():
			v := verdict{Result: core.Result{Outcome: core.Absent}}
			v.Taken = slices.ContainsFunc(append(t.absent, t.refused...), func(v vote) bool { return v.Taken || v.Outcome == core.Refused })
			return func() { done(v) }, true
		case len(votes)-len(t.done) > len(q.leaves)-q.majority():
			return func() { done(q.halfDone(t)) }, true
		}
		return nil, false
	}}
	for _, l := range q.leaves {
		l.run(c, deadline, func(v verdict) { g.add(vote{v, l}) })
	}
}

func (q *quorum) heal(c core.Command, absent []vote) {
	c.Kind = core.Acquire
	for _, v := range absent {
		if !v.Taken && c.Term > q.ended.Load() {
			once := c
			once.Count = 1 // one step after the other, as the script has it
			q.vote(v.leaf, once, 0, time.Now().Add(rollBackTime), func(first verdict) (late bool) {
				if first.Outcome == core.Done && c.Count > 1 {
					v.leaf.run(c, time.Now().Add(rollBackTime), func(verdict) {})
				}
				return false
			})
		}
	}
}

// release ends the lease on all servers.
func (q *quorum) release(c core.Command, deadline time.Time, done func(verdict)) {
	q.end(c.Term)
	free := func(l *leaf, done func(verdict)) { l.run(c, deadline, done) }
	q.free(free, func(l *leaf) { l.owe(c) }, func(t tally) {
		switch {
		case len(t.done) >= q.majority():
			done(verdict{Result: core.Result{Outcome: core.Done}})
		case len(t.absent) > len(q.leaves)-q.majority():
			done(verdict{Result: core.Result{Outcome: core.Absent}})
		default:
			v := q.halfDone(t)
			if !v.Transient { // the whole is not tried again
				for _, f := range t.failed {
					f.leaf.owe(c)
				}
			}
			done(v)
		}
	})
}

// free releases the lock on every server. A majority is enough to say so, but the others are
// not let off: a key that is left on one of them counts as soon as another server is down.
// When there is a majority, goOn is told of each server that has failed, or fails late.
func (q *quorum) free(free func(l *leaf, done func(verdict)), goOn func(l *leaf), done func(tally)) {
	enough := false
	late := func(votes []vote) {
		for _, v := range votes {
			if v.failed() {
				goOn(v.leaf)
			}
		}
	}
	g := &gather[vote]{n: len(q.leaves), judge: func(votes []vote, last bool) (func(), bool) {
		t := count(votes)
		switch {
		case enough:
			return func() { late(votes[len(votes)-1:]) }, last
		case len(t.done) >= q.majority() || last && len(t.absent) > len(q.leaves)-q.majority():
			enough = true
			return func() {
				late(t.failed)
				done(t)
			}, last
		case last:
			return func() { done(t) }, true
		}
		return nil, false
	}}
	for _, l := range q.leaves {
		free(l, func(v verdict) { g.add(vote{v, l}) })
	}
}

// inspect says that the lock is held if one holder has a majority, as soon as that is known.
func (q *quorum) inspect(deadline time.Time, done func(wire.View, error)) {
	g := &gather[look]{n: len(q.leaves), judge: func(looks []look, last bool) (func(), bool) {
		view, known, err := q.view(looks)
		if !known && !last {
			return nil, false
		}
		return func() { done(view, err) }, true
	}}
	for _, l := range q.leaves {
		l.inspect(deadline, func(v wire.View, err error) { g.add(look{v, err}) })
	}
}

// look is what one server said about the lock.
type look struct {
	wire.View
	err error
}

// view is what the servers say together. It is known for certain when those that have not
// answered could not change it.
func (q *quorum) view(looks []look) (whole wire.View, known bool, err error) {
	holders, answered, most := map[string][]wire.View{}, 0, 0
	whole.TTL = -1
	for _, l := range looks {
		if l.err != nil {
			err = l.err
			continue
		}
		answered++
		whole.Subscribers = max(whole.Subscribers, l.Subscribers)
		if l.Locked {
			holders[l.Holder] = append(holders[l.Holder], l.View)
			most = max(most, len(holders[l.Holder]))
		}
	}
	if answered < q.majority() {
		return wire.View{}, len(looks)-answered > len(q.leaves)-q.majority(), err
	}
	for _, views := range holders {
		if len(views) >= q.majority() {
			subscribers := whole.Subscribers
			whole = slices.MaxFunc(views, func(a, b wire.View) int { return cmp.Compare(a.TTL, b.TTL) })
			whole.Subscribers = subscribers
			return whole, true, nil
		}
	}
	return whole, most+len(q.leaves)-len(looks) < q.majority(), nil
}

func (q *quorum) ears() []ear {
	var all []ear
	for _, l := range q.leaves {
		all = append(all, l.ears()...)
	}
	return all
}
