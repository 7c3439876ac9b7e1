package backend

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// multiLock takes all of its parts or none: a MultiLock. The parts are taken one after another, always in the same
// order, and no part is held while waiting for another, so there is no deadlock.
type multiLock struct {
	parts     []lockPart
	sameNamed []sameNamed // of each part; nil if no part has any
	entries   queueEntries
}

func (m *multiLock) run(c lock.Command, deadline time.Time, done func(Reply)) {
	switch {
	case c.Kind == lock.Acquire && c.Count == 1 && m.isSilent():
		m.skip(c, done)
	case c.Kind == lock.Acquire && c.Count == 1:
		(&acquisition{multiLock: m, c: c, began: time.Now(), deadline: deadline, done: done}).next()
	case isFull(c):
		m.entries.noteGivenUp()
		m.each(c, deadline, done)
	case c.Kind == lock.Yield:
		// A MultiLock yields all parts even if no other client is seen to wait.
		m.each(asRelease(c), deadline, done)
	default:
		m.each(c, deadline, done)
	}
}

// isSilent reports whether the server of a part has stopped answering. Then no part is taken: each try would hold parts
// until the deadline, and fail.
func (m *multiLock) isSilent() bool {
	return slices.ContainsFunc(m.parts, func(part lockPart) bool { return part.onlyServer() != nil && part.onlyServer().isSilent() })
}

// skip replies to a try that is not made. It leaves the wait queues that earlier tries entered, because other clients
// wait for the first entry.
func (m *multiLock) skip(c lock.Command, done func(Reply)) {
	var answering []lockPart
	for _, part := range m.parts[:m.entries.leaveAll()] {
		if part.onlyServer() == nil || !part.onlyServer().isSilent() {
			answering = append(answering, part)
		}
	}
	rollBack(answering, c, skipped, done)
}

func (m *multiLock) onlyServer() *Server { return nil }

// each runs the command on all parts concurrently.
func (m *multiLock) each(c lock.Command, deadline time.Time, done func(Reply)) {
	type answer struct {
		Reply
		from lockPart
	}
	c.Above = nil // only acquire uses it, counter by counter
	answered := func(answers []answer) {
		replies := make([]Reply, len(answers))
		for i, answer := range answers {
			replies[i] = answer.Reply
		}
		sum := sum(c, replies)
		if isFull(c) && sum.failed() && !sum.Transient {
			// The release ends because one part has failed permanently; the other parts must not stay held.
			for _, answer := range answers {
				if answer.failed() {
					answer.from.retryRelease(c)
				}
			}
		}
		done(sum)
	}
	answers := &collect[answer]{n: len(m.parts), judge: func(answers []answer, last bool) (func(), bool) {
		// A lost part decides a renewal; the replies of the other parts may be late.
		if last || c.Kind == lock.Renew && answers[len(answers)-1].Outcome == lock.Absent {
			return func() { answered(answers) }, true
		}
		return nil, false
	}}
	for _, part := range m.parts {
		part.run(c, deadline, func(r Reply) { answers.add(answer{r, part}) })
	}
}

func (m *multiLock) cleanUp(c lock.Command, done func(certain bool)) {
	ends := &collect[bool]{n: len(m.parts), judge: whenAll(func(ends []bool) { done(!slices.Contains(ends, false)) })}
	for _, part := range m.parts {
		part.cleanUp(c, func(certain bool) { ends.add(certain) })
	}
}

func (m *multiLock) retryRelease(c lock.Command) {
	for _, part := range m.parts {
		part.retryRelease(c)
	}
}

// sum combines the replies of the parts. A lost part outweighs a part that did not answer, except for a full release
// and for a minimum time, which are retried because the other parts must not stay held, or must be kept. A command that
// only some parts have carried out is unsure.
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

func (m *multiLock) inspect(deadline time.Time, done func(protocol.View, error)) {
	inspections := &collect[inspection]{n: len(m.parts), judge: whenAll(func(inspections []inspection) {
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
	for _, part := range m.parts {
		part.inspect(deadline, func(v protocol.View, err error) { inspections.add(inspection{View: v, err: err}) })
	}
}

func (m *multiLock) channels() []Channel {
	var channels []Channel
	for _, part := range m.parts {
		channels = append(channels, part.channels()...)
	}
	return channels
}
