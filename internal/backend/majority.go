package backend

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// majority is one lock on a majority of independent servers: a RedLock
// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/). Package lock counts the validity from before
// the first server is asked, and subtracts the drift.
type majority struct {
	servers []*Server
	members []*member
	// quarantine is the age that a server's memory must have for it to vote.
	quarantine time.Duration
	// lastEnded is the last term that was released; a grant to that term that arrives later is released, too.
	lastEnded atomic.Uint64
	// refused are the refusals of the last try that a majority did not grant.
	refused atomic.Pointer[[]vote]
}

func newMajority(servers []*Server, name string, options *protocol.Options) *majority {
	m := &majority{servers: servers, quarantine: servers[0].quarantine}
	unconfirmed := *options
	unconfirmed.Unconfirmed = true // a RedLock has other servers instead of replicas
	for _, s := range servers {
		m.members = append(m.members, newMember(MemberSpec{Server: s, Form: forms.Plain, Name: name}, &unconfirmed))
	}
	return m
}

func (m *majority) quorum() int { return len(m.members)/2 + 1 }

func (m *majority) run(c lock.Command, deadline time.Time, done func(Reply)) {
	switch {
	case c.Kind == lock.Acquire && c.Count == 1:
		m.acquire(c, deadline, done)
	case isFull(c):
		m.release(c, deadline, done)
	case c.Kind == lock.Yield:
		m.release(asRelease(c), deadline, done)
	case c.Kind == lock.ForceRelease:
		m.force(c, deadline, done)
	default:
		m.set(c, deadline, done)
	}
}

func (m *majority) onlyServer() *Server { return nil }

// skips reports whether a member is skipped because its server is silent while a majority of servers is not. A skipped
// member counts as failed, like a server that is down.
func (m *majority) skips(on *member) bool {
	if !on.server.isSilent() {
		return false
	}
	answering := 0
	for _, other := range m.members {
		if !other.server.isSilent() {
			answering++
		}
	}
	return answering >= m.quorum()
}

// ask runs a command on a member, unless it is skipped.
func (m *majority) ask(on *member, c lock.Command, deadline time.Time, done func(Reply)) {
	if m.skips(on) {
		done(skipped)
		return
	}
	if isFull(c) {
		on.run(c, deadline, done)
		return
	}
	on.set(c, deadline, done)
}

// inspectOn inspects the lock on a member, unless it is skipped.
func (m *majority) inspectOn(on *member, deadline time.Time, done func(protocol.View, error)) {
	if m.skips(on) {
		done(protocol.View{}, errSilent)
		return
	}
	on.inspect(deadline, done)
}

// end records that a term is over, before its releases are sent.
func (m *majority) end(term uint64) { raise(&m.lastEnded, term) }

// set renews the lease, or changes the hold count, on a majority. It restores the lease on a server that was
// restarted, or did not answer before.
func (m *majority) set(c lock.Command, deadline time.Time, done func(Reply)) {
	decided := false
	answers := &collect[vote]{n: len(m.members), judge: func(votes []vote, last bool) (func(), bool) {
		t := count(votes)
		lost := len(t.absent) + len(t.refused)
		switch {
		case decided: // a late answer may show that the lease is missing there
			return func() { m.heal(c, count(votes[len(votes)-1:]).absent) }, last
		case len(t.done) >= m.quorum():
			decided = true
			return func() {
				m.heal(c, t.absent)
				done(Reply{Result: lock.Result{Outcome: lock.Done}})
			}, last
		case lost > len(m.members)-m.quorum():
			r := Reply{Result: lock.Result{Outcome: lock.Absent}}
			r.Taken = slices.ContainsFunc(append(t.absent, t.refused...), func(v vote) bool { return v.Taken || v.Outcome == lock.Refused })
			return func() { done(r) }, true
		case len(votes)-len(t.done) > len(m.members)-m.quorum():
			return func() { done(m.halfDone(t)) }, true
		}
		return nil, false
	}}
	for _, on := range m.members {
		m.ask(on, c, deadline, func(r Reply) { answers.add(vote{r, on}) })
	}
}

// heal restores the lease on servers that have lost it. If a later command for a longer lease was sent to a server,
// that command restores it.
//
// heal adds no vote to a majority, since the majority was decided without these servers, and a server where another
// owner has the lock refuses. Once a server has replied, later commands find the lease there, and may count this
// server. A second owner could be trusted only if such a command counted the server for longer than the key lasts
// there, which beginAgain prevents.
func (m *majority) heal(c lock.Command, absent []vote) {
	c.Kind = lock.Acquire
	for _, v := range absent {
		if v.Taken || c.Term <= m.lastEnded.Load() || m.skips(v.on) {
			continue
		}
		before, may := v.on.unanswered.beginAgain(&c)
		if !may {
			continue
		}
		once := c
		once.Count = 1 // the script sets a higher count only for a holder
		m.voteAfter(v.on, before, once, 0, time.Now().Add(rollBackTime), func(first Reply) (late bool) {
			if first.Outcome == lock.Done && c.Count > 1 {
				v.on.setAgain(c, time.Now().Add(rollBackTime))
			}
			return false
		})
	}
}

// release releases the lock on all servers.
func (m *majority) release(c lock.Command, deadline time.Time, done func(Reply)) {
	m.end(c.Term)
	free := func(on *member, done func(Reply)) { m.ask(on, c, deadline, done) }
	m.free(free, func(on *member) { m.retryReleaseOn(on, c) }, func(t tally) {
		switch {
		case len(t.done) >= m.quorum():
			done(Reply{Result: lock.Result{Outcome: lock.Done}})
		case len(t.absent) > len(m.members)-m.quorum():
			done(Reply{Result: lock.Result{Outcome: lock.Absent}})
		default:
			r := m.halfDone(t)
			if !r.Transient { // the release is not retried
				for _, v := range t.failed {
					m.retryReleaseOn(v.on, c)
				}
			}
			done(r)
		}
	})
}

// free releases the lock on every server. A majority completes the release, but the release is retried on the other
// servers, since a key that is left on a server matters as soon as another server is down. Once there is a majority,
// retry is called for each server that has failed, or fails later.
func (m *majority) free(free func(on *member, done func(Reply)), retry func(on *member), done func(tally)) {
	enough := false
	late := func(votes []vote) {
		for _, v := range votes {
			if v.failed() {
				retry(v.on)
			}
		}
	}
	answers := &collect[vote]{n: len(m.members), judge: func(votes []vote, last bool) (func(), bool) {
		t := count(votes)
		switch {
		case enough:
			return func() { late(votes[len(votes)-1:]) }, last
		case len(t.done) >= m.quorum() || last && len(t.absent) > len(m.members)-m.quorum():
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
	for _, on := range m.members {
		free(on, func(r Reply) { answers.add(vote{r, on}) })
	}
}

func (m *majority) channels() []Channel {
	var channels []Channel
	for _, on := range m.members {
		channels = append(channels, on.channels()...)
	}
	return channels
}

func (m *majority) cleanUp(c lock.Command, done func(certain bool)) {
	m.end(c.Term)
	answers := &collect[bool]{n: len(m.members), judge: func(ends []bool, last bool) (func(), bool) {
		certain := 0
		for _, end := range ends {
			if end {
				certain++
			}
		}
		if certain < m.quorum() && !last {
			return nil, false
		}
		return func() { done(certain >= m.quorum()) }, true
	}}
	for _, on := range m.members {
		if on.mayHold(c.Term) {
			on.cleanUp(c, func(certain bool) { answers.add(certain) })
		} else {
			answers.add(true)
		}
	}
}

func (m *majority) retryRelease(c lock.Command) {
	m.end(c.Term)
	for _, on := range m.members {
		m.retryReleaseOn(on, c)
	}
}

// retryReleaseOn retries the release on a server that may have granted the term. A grant that arrives later is
// released by vote.
func (m *majority) retryReleaseOn(on *member, c lock.Command) {
	if on.mayHold(c.Term) {
		on.retryRelease(c)
	}
}
