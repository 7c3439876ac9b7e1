package backend

import (
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// force frees the lock on all servers, whichever client holds it. It first asks who holds the
// lock, and then releases only those owners: a command that arrives late, when another owner has
// the lock, does no harm, and can be repeated where it has failed.
func (m *majority) force(c lock.Command, deadline time.Time, done func(Reply)) {
	began := time.Now()
	var grace *time.Timer
	next := func(looks []look) func() {
		return func() { m.evict(c, looks, deadline, done) }
	}
	answers := &collect[look]{n: len(m.members)}
	answers.judge = func(looks []look, last bool) (func(), bool) {
		answered, held := heldOn(looks)
		switch {
		case last, held >= m.quorum():
			if grace != nil {
				grace.Stop()
			}
			return next(looks), true
		case answered >= m.quorum() && grace == nil: // as for an acquire; a minority is to be freed too
			grace = time.AfterFunc(max(split, 2*time.Since(began)), func() { answers.cut(next) })
		}
		return nil, false
	}
	for _, on := range m.members {
		m.look(on, deadline, func(v protocol.View, err error) {
			if c.Owners != nil && !slices.Contains(c.Owners, v.Holder) {
				v.Locked = false // by none of those that it is meant for
			}
			answers.add(look{v, err})
		})
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

// evict releases the owners that were seen to hold the lock. A majority completes it; the others
// are retried.
func (m *majority) evict(c lock.Command, looks []look, deadline time.Time, done func(Reply)) {
	var owners []string
	left := max(c.Lease, c.MaxTTL)
	var failed tally
	if c.Term != 0 { // of this process
		m.end(c.Term)
		owners = append(owners, m.members[0].owner(c.Term))
	}
	for _, l := range looks {
		switch {
		case l.err != nil:
			failed.failed = append(failed.failed, vote{Reply: unseen(l.err)})
		case l.Locked:
			left = max(left, l.TTL)
			if !slices.Contains(owners, l.Holder) {
				owners = append(owners, l.Holder)
			}
		}
	}
	answered, held := heldOn(looks)
	if answered < m.quorum() {
		done(m.failure(failed))
		return
	}
	// Of the servers that have not answered, any may belong to a majority that held it.
	forced := Reply{Result: lock.Result{Outcome: lock.Done, WasHeld: held+len(m.members)-answered >= m.quorum()}}
	free := func(on *member, done func(Reply)) {
		if m.leavesOut(on) {
			done(notAsked)
			return
		}
		on.releaseAll(owners, deadline, done)
	}
	goOn := func(on *member) {
		for _, owner := range owners {
			try := func(deadline time.Time, done func(Reply)) { on.releaseOf(owner, deadline, done) }
			on.server.cleanups.add(cleanup{try: try, until: on.server.System.Now() + left})
		}
	}
	m.free(free, goOn, func(t tally) {
		if len(t.done) < m.quorum() {
			done(m.halfDone(t))
			return
		}
		done(forced)
	})
}

// unseen is the reply for a server that has not answered who holds the lock.
func unseen(err error) Reply {
	r := Reply{Result: lock.Result{Outcome: lock.Failed, Err: err}}
	if sorted := (*redisio.Error)(nil); errors.As(err, &sorted) {
		r.Transient = sorted.Transient
	}
	return r
}

// releaseAll releases whichever of the owners holds the lock.
func (m *member) releaseAll(owners []string, deadline time.Time, done func(Reply)) {
	if len(owners) == 0 {
		done(Reply{Result: lock.Result{Outcome: lock.Done}})
		return
	}
	m.releaseOf(owners[0], deadline, func(r Reply) {
		if r.failed() {
			done(r)
			return
		}
		m.releaseAll(owners[1:], deadline, done)
	})
}
