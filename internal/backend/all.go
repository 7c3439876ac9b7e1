package backend

import (
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// all takes all of several parts or none: a MultiLock. The parts are taken one after another, always in the
// same order, and none is held while waiting for another, so there is no deadlock.
type all struct {
	parts  []part
	twins  []twins // in each of the parts; nil if there are none
	places places
}

func (a *all) run(c lock.Command, deadline time.Time, done func(Reply)) {
	switch {
	case c.Kind == lock.Acquire && c.Count == 1 && a.isSilent():
		a.skip(c, done)
	case c.Kind == lock.Acquire && c.Count == 1:
		began := time.Now()
		a.acquire(0, c, nil, deadline, func(r Reply) {
			a.places.tried(&c, &r, began, time.Now())
			done(r)
		})
	case isFull(c):
		a.places.left()
		a.each(c, deadline, done)
	case c.Kind == lock.Yield:
		// A MultiLock yields all parts even if no other client is seen to wait.
		a.each(asRelease(c), deadline, done)
	default:
		a.each(c, deadline, done)
	}
}

// isSilent reports whether the server of a part has stopped answering. Then no part is taken: each try
// would hold it until the deadline, and fail.
func (a *all) isSilent() bool {
	return slices.ContainsFunc(a.parts, func(part part) bool { return part.only() != nil && part.only().isSilent() })
}

// skip replies to a try that is not made. The wait queues that earlier tries have entered are left: the first in them is
// waited for.
func (a *all) skip(c lock.Command, done func(Reply)) {
	var left []part
	for _, part := range a.parts[:a.places.leaveAll()] {
		if part.only() == nil || !part.only().isSilent() {
			left = append(left, part)
		}
	}
	rollBack(left, c, skipped, done)
}

func (a *all) only() *Server { return nil }

// acquire takes the parts from the i-th on. A server has only the time that it should need if other clients wait for
// that meanwhile: the first parts are held, or there may be entries in the wait queues of others.
func (a *all) acquire(i int, c lock.Command, tokens []int64, deadline time.Time, done func(Reply)) {
	if i == len(a.parts) {
		done(Reply{Result: lock.Result{Outcome: lock.Done, Tokens: tokens}})
		return
	}
	if !time.Now().Before(deadline) {
		late := lock.Result{Outcome: lock.Failed, Transient: true, Err: errTooSlow}
		rollBack(a.parts[:i], c, Reply{Result: late}, done)
		return
	}
	// For each part anew: otherwise the place would be later by the time that the parts before have taken.
	c.Entry.Waited = a.places.waited(c.Entry.TTL, time.Now())
	until := deadline
	if server := a.parts[i].only(); (i > 0 || a.places.any()) && server != nil {
		until = server.answerBy(time.Now(), deadline)
	}
	if a.twins == nil || c.Held {
		a.take(i, c, tokens, until, deadline, done)
		return
	}
	a.twins[i].check(c.Term, until, func(same error) {
		if same != nil {
			rollBack(a.parts[:i], c, Reply{Result: lock.Result{Outcome: lock.Failed, Err: same}}, done)
			return
		}
		a.take(i, c, tokens, until, deadline, done)
	})
}

// take takes the i-th part by a time, and the others after it.
func (a *all) take(i int, c lock.Command, tokens []int64, until, deadline time.Time, done func(Reply)) {
	one := c
	one.Above = c.Above[min(len(tokens), len(c.Above)):] // those of the counters of the parts from here on
	a.parts[i].run(one, until, func(r Reply) {
		switch {
		case r.Outcome == lock.Done:
			a.acquire(i+1, c, append(tokens[:len(tokens):len(tokens)], r.Tokens...), deadline, done)
		case r.Unsure: // other clients must not wait for this server
			rollBack(a.parts[:max(i+1, a.places.leaveAll())], c, r, done)
		default:
			from, to := a.places.leave(i, &r, time.Now())
			rollBack(slices.Concat(a.parts[:i], a.parts[from:to]), c, r, done)
		}
	})
}

var errTooSlow = errors.New("the locks could not be taken together in time")

// rollBack releases the parts that were taken. Then it replies with why, or with a failure if a release failed.
func rollBack(parts []part, c lock.Command, why Reply, done func(Reply)) {
	if len(parts) == 0 {
		done(why)
		return
	}
	(&all{parts: parts}).each(asRelease(c), time.Now().Add(rollBackTime), func(r Reply) {
		if r.failed() {
			why.Outcome, why.Unsure, why.Transient = lock.Failed, true, true
			why.Err = errors.Join(why.Err, r.Err)
		}
		done(why)
	})
}

// each runs the command on all parts concurrently.
func (a *all) each(c lock.Command, deadline time.Time, done func(Reply)) {
	type answer struct {
		Reply
		from part
	}
	c.Above = nil // only acquire uses it, counter by counter
	answered := func(answers []answer) {
		replies := make([]Reply, len(answers))
		for i, answer := range answers {
			replies[i] = answer.Reply
		}
		sum := sum(c, replies)
		if isFull(c) && sum.failed() && !sum.Transient {
			// The release ends because one part has failed permanently; the others must not stay held.
			for _, answer := range answers {
				if answer.failed() {
					answer.from.retryRelease(c)
				}
			}
		}
		done(sum)
	}
	answers := &collect[answer]{n: len(a.parts), judge: func(answers []answer, last bool) (func(), bool) {
		// A lost part decides a renewal; the replies of the others may be late.
		if last || c.Kind == lock.Renew && answers[len(answers)-1].Outcome == lock.Absent {
			return func() { answered(answers) }, true
		}
		return nil, false
	}}
	for _, part := range a.parts {
		part.run(c, deadline, func(r Reply) { answers.add(answer{r, part}) })
	}
}

func (a *all) cleanUp(c lock.Command, done func(certain bool)) {
	ends := &collect[bool]{n: len(a.parts), judge: whenAll(func(ends []bool) { done(!slices.Contains(ends, false)) })}
	for _, part := range a.parts {
		part.cleanUp(c, func(certain bool) { ends.add(certain) })
	}
}

func (a *all) retryRelease(c lock.Command) {
	for _, part := range a.parts {
		part.retryRelease(c)
	}
}

// sum combines the replies of the parts. A lost part outweighs a part that did not answer, except for a full
// release and for a minimum time, which are retried: the other parts must not stay held, or must be kept. A command that only some parts have carried out is unsure.
func sum(c lock.Command, replies []Reply) Reply {
	total := Reply{Result: lock.Result{Outcome: lock.Done}}
	var failed, lost *Reply
	unsure := false
	for i, r := range replies {
		total.WasHeld = total.WasHeld || r.WasHeld
		unsure = unsure || r.Unsure || r.Outcome == lock.Done
		switch r.Outcome {
		case lock.Failed:
			if failed == nil || !r.Transient {
				failed = &replies[i]
			}
		case lock.Absent, lock.Refused:
			if lost == nil || r.Taken || r.Outcome == lock.Refused {
				lost = &replies[i]
			}
		}
	}
	switch {
	case failed != nil && (lost == nil || isFull(c) || c.Kind == lock.Keep):
		total.Result = failed.Result
		total.Unsure = unsure
	case lost != nil:
		total.Outcome, total.Taken = lock.Absent, lost.Taken || lost.Outcome == lock.Refused
	}
	return total
}

func (a *all) inspect(deadline time.Time, done func(protocol.View, error)) {
	inspections := &collect[inspection]{n: len(a.parts), judge: whenAll(func(inspections []inspection) {
		total, owners := protocol.View{TTL: -1}, []string(nil)
		for _, l := range inspections {
			if l.err != nil {
				done(protocol.View{}, l.err)
				return
			}
			owners = append(owners, l.Owners...)
			if l.Locked && (!total.Locked || l.TTL > total.TTL) {
				total = l.View
			}
		}
		slices.Sort(owners)
		total.Owners = slices.Compact(owners)
		done(total, nil)
	})}
	for _, part := range a.parts {
		part.inspect(deadline, func(v protocol.View, err error) { inspections.add(inspection{View: v, err: err}) })
	}
}

func (a *all) channels() []Channel {
	var channels []Channel
	for _, part := range a.parts {
		channels = append(channels, part.channels()...)
	}
	return channels
}
