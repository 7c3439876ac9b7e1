package backend

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// acquire asks all servers concurrently. It ends with a majority, or when a majority is impossible and refusal can say
// what to wait for; the grants of a minority are then released. A far server counts like a near server. When a majority
// has answered, acquire does not wait for a server that does not answer: two processes would otherwise block each other
// until the call to that server has timed out.
func (m *majority) acquire(c lock.Command, deadline time.Time, done func(Reply)) {
	var limit cutOff
	answers := &collect[vote]{n: len(m.members)}
	answers.judge = func(votes []vote, _ bool) (func(), bool) {
		t := count(votes)
		switch {
		case len(t.done) >= m.quorum():
			limit.stop()
			if Distinct(m.servers) != nil {
				m.end(c.Term)
				return func() { m.giveBack(c, t, done) }, true
			}
			return func() { done(Reply{Result: lock.Result{Outcome: lock.Done}}) }, true
		case m.isRefused(t):
			limit.stop()
			m.end(c.Term) // before a late vote arrives
			return func() { m.giveBack(c, t, done) }, true
		case len(t.done)+len(t.refused) >= m.quorum():
			limit.set(answerBy(missing(m, votes), time.Now(), deadline), func() {
				answers.cut(func(votes []vote) func() {
					m.end(c.Term)
					silent := missing(m, votes)
					for _, on := range silent {
						votes = append(votes, vote{Reply{Result: tooSlow}, on})
					}
					return func() {
						noteSilent(silent)
						m.giveBack(c, count(votes), done)
					}
				})
			})
		}
		return nil, false
	}
	for _, on := range m.members {
		m.vote(on, c, m.quarantine, deadline, func(r Reply) (late bool) { return answers.add(vote{r, on}) })
	}
}

// tooSlow is the vote of a server that did not answer in time.
var tooSlow = lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Transient: true, Err: errors.New("no answer yet")}}

// vote asks one server. The answer may come after the end of the term, since acquire waits only for a majority; a
// grant must not outlast the term.
func (m *majority) vote(on *member, c lock.Command, quarantine time.Duration, deadline time.Time, done func(Reply) (late bool)) {
	if m.skips(on) {
		done(skipped)
		return
	}
	m.voteAfter(on, on.unanswered.begin(&c), c, quarantine, deadline, done)
}

// voteAfter is vote for a command for which unanswered.begin or beginAgain was called already; before is its result.
func (m *majority) voteAfter(
	on *member, before machine.Unanswered, c lock.Command, quarantine time.Duration, deadline time.Time, done func(Reply) (late bool),
) {
	on.vote(c, quarantine, deadline, func(r Reply) {
		r = on.unanswered.end(&c, before, r)
		granted := r.Outcome == lock.Done || r.Unsure
		if granted {
			raise(&on.granted, c.Term)
		}
		over := c.Term <= m.lastEnded.Load()
		if done(r) {
			over = c.Term <= m.lastEnded.Load()
		}
		if over && granted {
			on.cleanUp(c, nil)
		}
	})
}

// giveBack releases the grants. It waits for the servers that have granted the lock. Servers that failed get the
// release, too; servers that have not answered yet get it when they answer.
func (m *majority) giveBack(c lock.Command, t tally, done func(Reply)) {
	var before []vote
	if last := m.refused.Swap(&t.refused); last != nil {
		before = *last
	}
	why := m.refusal(t, before)
	if err := Distinct(m.servers); err != nil {
		why = Reply{Result: lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Err: err}}}
	}
	for _, v := range t.failed {
		if v.Unsure {
			v.on.cleanUp(c, nil)
		}
	}
	if len(t.done) == 0 {
		done(why)
		return
	}
	answers := &collect[vote]{n: len(t.done), judge: whenAll(func(votes []vote) {
		for _, v := range votes {
			if v.failed() {
				v.on.retryRelease(c)
			}
		}
		done(why)
	})}
	deadline := time.Now().Add(rollBackTime)
	for _, v := range t.done {
		v.on.run(asRelease(c), deadline, func(r Reply) { answers.add(vote{r, v.on}) })
	}
}

// maxSplitPause is the longest pause before a client that got a minority tries again. The pause is random, so that
// clients do not collide again.
const maxSplitPause = 50 * time.Millisecond

// raise sets a number, unless it is higher already.
func raise(number *atomic.Uint64, to uint64) {
	for {
		last := number.Load()
		if to <= last || number.CompareAndSwap(last, to) {
			return
		}
	}
}
