package actors

import (
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// force frees the lock on all servers, whichever client holds it. First they are asked who that
// is, then these owners are released, and nobody else: a command that arrives late, when the
// lock is somebody else's already, does no harm, and can be repeated where it has failed.
func (q *quorum) force(c core.Command, deadline time.Time, done func(verdict)) {
	began := time.Now()
	var patience *time.Timer
	next := func(looks []look) func() {
		return func() { q.evict(c, looks, deadline, done) }
	}
	g := &gather[look]{n: len(q.leaves)}
	g.judge = func(looks []look, last bool) (func(), bool) {
		answered, held := heldOn(looks)
		switch {
		case last, held >= q.majority():
			if patience != nil {
				patience.Stop()
			}
			return next(looks), true
		case answered >= q.majority() && patience == nil: // as for an acquire; a minority is to be freed too
			patience = time.AfterFunc(max(split, 2*time.Since(began)), func() { g.cut(next) })
		}
		return nil, false
	}
	for _, l := range q.leaves {
		l.inspect(deadline, func(v wire.View, err error) { g.add(look{v, err}) })
	}
}

// heldOn counts the servers that have answered, and on how many of them the lock is held.
func heldOn(looks []look) (answered, held int) {
	for _, l := range looks {
		if l.err == nil {
			answered++
			if l.Locked {
				held++
			}
		}
	}
	return answered, held
}

// evict releases whoever was seen to hold the lock. A majority is enough to say so; the
// others go on trying.
func (q *quorum) evict(c core.Command, looks []look, deadline time.Time, done func(verdict)) {
	var owners []string
	left := max(c.Lease, c.MaxTTL)
	var failed tally
	if c.Term != 0 { // of this process
		q.end(c.Term)
		owners = append(owners, q.leaves[0].owner(c.Term))
	}
	for _, l := range looks {
		switch {
		case l.err != nil:
			failed.failed = append(failed.failed, vote{verdict: unseen(l.err)})
		case l.Locked:
			left = max(left, l.TTL)
			if !slices.Contains(owners, l.Holder) {
				owners = append(owners, l.Holder)
			}
		}
	}
	answered, held := heldOn(looks)
	if answered < q.majority() {
		done(q.failure(failed))
		return
	}
	// Of the servers that have not answered, any may belong to a majority that held it.
	forced := verdict{Result: core.Result{Outcome: core.Done, WasHeld: held+len(q.leaves)-answered >= q.majority()}}
	free := func(l *leaf, done func(verdict)) { l.releaseAll(owners, deadline, done) }
	goOn := func(l *leaf) {
		for _, owner := range owners {
			l.rt.cleanups.add(cleanup{leaf: l, owner: owner, until: l.rt.Now() + left})
		}
	}
	q.free(free, goOn, func(t tally) {
		if len(t.done) < q.majority() {
			done(q.halfDone(t))
			return
		}
		done(forced)
	})
}

// unseen is the verdict on a server that has not said who holds the lock.
func unseen(err error) verdict {
	v := verdict{Result: core.Result{Outcome: core.Failed, Err: err}}
	if sorted := (*redisio.Error)(nil); errors.As(err, &sorted) {
		v.Transient = sorted.Transient
	}
	return v
}

// releaseAll releases whichever of the owners holds the lock.
func (l *leaf) releaseAll(owners []string, deadline time.Time, done func(verdict)) {
	if len(owners) == 0 {
		done(verdict{Result: core.Result{Outcome: core.Done}})
		return
	}
	l.release(owners[0], deadline, func(v verdict) {
		if v.Outcome == core.Failed {
			done(v)
			return
		}
		l.releaseAll(owners[1:], deadline, done)
	})
}
