package backend

import (
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// acquisition is one try to take the parts of a MultiLock, one after another. Each step begins on the goroutine that
// brings the reply to the previous step.
type acquisition struct {
	*multiLock
	c               lock.Command
	began, deadline time.Time
	done            func(Reply)
	// taken is the number of parts that were taken.
	taken int
	// tokens are the fencing tokens of these parts.
	tokens []int64
}

var errTooSlow = errors.New("the locks could not be taken together in time")

// next takes the next part, or ends the try if there is no other part. A server gets only the time that it should need
// if other clients wait meanwhile, because parts are held or because other parts may have entries in their wait queues.
func (a *acquisition) next() {
	if a.taken == len(a.parts) {
		a.end(Reply{Result: lock.Result{Outcome: lock.Done, Tokens: a.tokens}})
		return
	}
	now := time.Now()
	if !now.Before(a.deadline) {
		a.fail(lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Transient: true, Err: errTooSlow}})
		return
	}
	// Waited is set for each part: otherwise the entry would rank later by the time that the earlier parts have taken.
	a.c.Entry.Waited = a.entries.waitingTime(a.c.Entry.TTL, now)
	until := a.deadline
	if server := a.parts[a.taken].onlyServer(); (a.taken > 0 || a.entries.mayExist()) && server != nil {
		until = server.answerBy(now, a.deadline)
	}
	if a.sameNamed == nil || a.c.Held {
		a.take(until)
		return
	}
	a.sameNamed[a.taken].check(a.c.Term, until, func(same error) {
		if same != nil {
			a.fail(lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Err: same}})
			return
		}
		a.take(until)
	})
}

// take takes one part.
func (a *acquisition) take(until time.Time) {
	one := a.c
	one.Above = one.Above[min(len(a.tokens), len(one.Above)):] // only for the counters of the parts from here on
	a.parts[a.taken].run(one, until, a.handleReply)
}

func (a *acquisition) handleReply(r Reply) {
	switch {
	case r.Outcome == lock.Done:
		a.taken++
		a.tokens = append(a.tokens, r.Tokens...)
		a.next()
	case r.Unsure: // other clients must not wait for this server
		rollBack(a.parts[:max(a.taken+1, a.entries.leaveAll())], a.c, r, a.end)
	default:
		from, to := a.entries.leave(a.taken, &r, time.Now())
		rollBack(slices.Concat(a.parts[:a.taken], a.parts[from:to]), a.c, r, a.end)
	}
}

// fail releases the parts that were taken.
func (a *acquisition) fail(why lock.Result) {
	rollBack(a.parts[:a.taken], a.c, Reply{Result: why}, a.end)
}

func (a *acquisition) end(r Reply) {
	a.entries.noteTry(&a.c, &r, a.began, time.Now())
	a.done(r)
}

// rollBack releases the parts that were taken. Then it replies with why, or with a failure if a release failed.
func rollBack(parts []lockPart, c lock.Command, why Reply, done func(Reply)) {
	if len(parts) == 0 {
		done(why)
		return
	}
	(&multiLock{parts: parts}).each(asRelease(c), time.Now().Add(rollBackTime), func(r Reply) {
		if r.failed() {
			why.Outcome, why.Unsure, why.Transient = lock.Failed, true, true
			why.Err = errors.Join(why.Err, r.Err)
		}
		done(why)
	})
}
