package backend

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// unanswered are the commands of a term that may still set its lease on a server, because they have no reply. A RedLock
// continues when a majority has answered. So package lock does not know that a command is on its way to another server,
// where it may shorten the lease that a later command has set.
type unanswered struct {
	mu   sync.Mutex // guards the fields below
	term uint64
	// lease is the lease of the last command of the term, not counting commands that were sent again.
	lease time.Duration
	// count is the hold count of the last command of the term.
	count int
	// underWay are the leases of the commands that await a reply.
	underWay []time.Duration
	// lost is the shortest lease of the commands that got no reply.
	lost machine.Unanswered
}

var errCutShort = errors.New("an earlier, unanswered command may still shorten the lease")

// begin notes that a command is sent, and returns the shortest lease that earlier commands may set after it. Earlier
// commands may be on other connections, so the command whose reply comes first may be carried out last. Commands of
// earlier terms change nothing in this term.
func (u *unanswered) begin(c *lock.Command) (before machine.Unanswered) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.Term > u.term {
		u.term, u.underWay, u.lost = c.Term, nil, 0
	}
	if c.Term == u.term {
		before, u.lease, u.count = u.shortest(), c.Lease, c.Count
		u.underWay = append(u.underWay, c.Lease)
	}
	return before
}

// beginAgain is like begin, for a command that is sent again. may is false, and nothing is noted, if the repetition
// might undo a later command: it must not shorten the lease that the last command has set, and must set the same count.
// While the repetition is under way, a command that begins after it does not count if the repetition may shorten its
// lease.
func (u *unanswered) beginAgain(c *lock.Command) (before machine.Unanswered, may bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.Term != u.term || c.Lease < u.lease || c.Count != u.count {
		return 0, false
	}
	before = u.shortest()
	u.underWay = append(u.underWay, c.Lease)
	return before, true
}

// shortest returns the shortest lease that a command may still set; the caller holds the mutex.
func (u *unanswered) shortest() machine.Unanswered {
	shortest := u.lost
	for _, lease := range u.underWay {
		shortest.Add(lease)
	}
	return shortest
}

// end notes the reply to a command, and returns the reply as it counts: a lease that another command may shorten does
// not count. before is the result of begin.
func (u *unanswered) end(c *lock.Command, before machine.Unanswered, r Reply) Reply {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.Term != u.term {
		return r
	}
	if i := slices.Index(u.underWay, c.Lease); i >= 0 {
		u.underWay = slices.Delete(u.underWay, i, i+1)
	}
	if r.Unsure {
		u.lost.Add(c.Lease)
	}
	if r.Outcome == lock.Done && (before.MayCutShort(c.Lease) || u.shortest().MayCutShort(c.Lease)) {
		return Reply{Result: lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Transient: true, Unsure: true, Err: errCutShort}}}
	}
	return r
}

// set runs a command that sets the lease on a server of a RedLock.
func (m *member) set(c lock.Command, deadline time.Time, done func(Reply)) {
	before := m.unanswered.begin(&c)
	m.run(c, deadline, func(r Reply) { done(m.unanswered.end(&c, before, r)) })
}

// setAgain is set for a command that is sent again, unless that might undo a later one.
func (m *member) setAgain(c lock.Command, deadline time.Time) {
	if before, may := m.unanswered.beginAgain(&c); may {
		m.run(c, deadline, func(r Reply) { m.unanswered.end(&c, before, r) })
	}
}
