package backend

import (
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// force frees the lock on all servers, whichever client holds it. It first reads the owners, and then releases only
// these owners, so a command that arrives late, when another owner holds the lock, has no effect, and can be repeated
// where it has failed.
func (m *majority) force(c lock.Command, deadline time.Time, done func(Reply)) {
	var limit cutOff
	evict := func(inspections []inspection) { m.evict(c, inspections, deadline, done) }
	answers := &collect[inspection]{n: len(m.members)}
	answers.judge = func(inspections []inspection, last bool) (func(), bool) {
		answered, held := heldOn(inspections)
		switch {
		case last, held >= m.quorum():
			limit.stop()
			return func() { evict(inspections) }, true
		case answered >= m.quorum(): // as in acquire; a minority must be freed, too
			now := time.Now()
			half := now.Add(deadline.Sub(now) / 2) // the other half is for the releases
			limit.set(answerBy(missing(m, inspections), now, half), func() {
				answers.cut(func(inspections []inspection) func() {
					return func() {
						noteSilent(missing(m, inspections))
						evict(inspections)
					}
				})
			})
		}
		return nil, false
	}
	for _, on := range m.members {
		m.inspectOn(on, deadline, func(v protocol.View, err error) {
			if c.Owners != nil && !slices.Contains(c.Owners, v.Holder) {
				v.Locked = false // by an owner that is not named
			}
			answers.add(inspection{v, err, on})
		})
	}
}

// heldOn counts the servers that have answered, and of these the servers on which the lock is held.
func heldOn(inspections []inspection) (answered, held int) {
	for _, l := range inspections {
		if l.err == nil {
			answered++
			if l.Locked {
				held++
			}
		}
	}
	return answered, held
}

// evict releases the owners that hold the lock. A majority completes the release; the release is retried on the other
// servers.
func (m *majority) evict(c lock.Command, inspections []inspection, deadline time.Time, done func(Reply)) {
	var owners []string
	left := max(c.Lease, c.MaxTTL)
	var failed tally
	if c.Term != 0 { // an owner of this process
		m.end(c.Term)
		owners = append(owners, m.members[0].owner(c.Term))
	}
	for _, l := range inspections {
		switch {
		case l.err != nil:
			failed.failed = append(failed.failed, vote{Reply: uninspected(l.err)})
		case l.Locked:
			left = max(left, l.TTL)
			if !slices.Contains(owners, l.Holder) {
				owners = append(owners, l.Holder)
			}
		}
	}
	answered, held := heldOn(inspections)
	if answered < m.quorum() {
		done(m.failure(failed))
		return
	}
	// Each server that has not answered may belong to a majority that held the lock.
	forced := Reply{Result: lock.Result{Outcome: lock.Done, WasHeld: held+len(m.members)-answered >= m.quorum()}}
	if len(owners) == 0 {
		done(forced)
		return
	}
	free := func(on *member, done func(Reply)) {
		if m.skips(on) {
			done(skipped)
			return
		}
		on.releaseOf(owners, deadline, done)
	}
	goOn := func(on *member) {
		try := func(deadline time.Time, done func(failed, transient bool)) {
			on.releaseOf(owners, deadline, outcomeTo(done))
		}
		on.server.cleanups.add(cleanup{try: try, until: on.server.clock.Now() + left})
	}
	m.free(free, goOn, func(t tally) {
		if len(t.done) < m.quorum() {
			done(m.halfDone(t))
			return
		}
		done(forced)
	})
}

// uninspected returns the reply for a server whose inspection failed.
func uninspected(err error) Reply {
	r := Reply{Result: lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Err: err}}}
	if classified := (*redisio.Error)(nil); errors.As(err, &classified) {
		r.Transient = classified.Transient
	}
	return r
}
