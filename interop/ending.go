package main

import (
	"fmt"
	"time"
)

// The cases in which a hold ends without a release by its holder.

// leaseEnds: after the end of a lease the other side is granted the lock, and the holder's release is refused.
func leaseEnds(s *env) {
	const lease = 700 * time.Millisecond
	holder, waiter := s.holder(long), s.waiter(long)
	began := holder.do("lock", fmt.Sprint("lease=", lease.Milliseconds())).began()
	var lost *request
	waits := waiter.begin("lock")
	if s.holding == golang {
		lost = holder.begin("lost")
	}
	granted := waits.await().at()
	after := granted.Sub(began)
	s.addFigure("granted %s after a lease of %v began", inMS(after), lease)
	check(after > s.holding.end(lease)-clockStep && after < lease+soon, "the other side was granted the lock %v after the lease began", after)
	if lost != nil {
		notified := lost.await()
		s.addFigure("the holder was notified %s before", inMS(granted.Sub(notified.at())))
		check(notified.values["class"] == golang.refusal, "the notification is %s", notified)
		check(notified.at().Sub(granted) < soon/2,
			"the holder was notified %v after the other side was granted the lock", notified.at().Sub(granted))
	}
	untouched(s, func() { holder.refused() })
	waiter.do("unlock")
}

// untouched checks that a late call does not change the owner and the hold count.
func untouched(s *env, call func()) {
	owner, count := s.owner()
	check(owner != "", "the lock is free")
	call()
	ownerAfter, countAfter := s.owner()
	check(owner == ownerAfter && count == countAfter,
		"%s held the lock %s times, and after a late call %q holds it %q times", owner, count, ownerAfter, countAfter)
}

// forced: the other side releases the lock by force, its waiter is granted the lock, and the holder
// is notified: Lockkeeper at its next renewal, Redisson when it unlocks.
func forced(s *env) {
	holder, waiter := s.holder(short), s.waiter(long)
	forcer := s.thread("forcer", s.waiting, s.driver(s.waiting, long, 0)).as(s.kind.held)
	holder.do("lock")
	waits := waiter.begin("lock")
	s.untilWaiting()
	limit := soon
	began := time.Now()
	if single(s.kind) || s.waiting == golang {
		check(forcer.do("force").values["was"] == "true", "it was not held")
	} else { // Java releases a part, and the holder has to give up the rest
		s.forceParts(forcer)
		limit += short / 3
	}
	granted := waits.await().at()
	s.addFigure("granted after %s", inMS(granted.Sub(began)))
	check(granted.Sub(began) < limit, "the waiter was granted the lock only after %v", granted.Sub(began))
	untouched(s, func() {
		if s.holding == golang {
			lost := holder.do("lost")
			after := lost.at().Sub(began)
			s.addFigure("the holder was notified after %s (renewal every %v)", inMS(after), short/3)
			check(lost.values["class"] == golang.refusal, "the notification is %s", lost)
			check(after < short/3+soon, "the holder was notified after %v", after)
		}
		holder.refused()
	})
	waiter.do("unlock")
	if single(s.kind) || s.waiting == golang {
		check(forcer.do("force").values["was"] == "false", "a free lock was held")
	}
}

// forceParts releases by force as many parts of a lock as make it lost: one of a MultiLock, two
// of a RedLock's three. Redisson can only force parts.
func (s *env) forceParts(t *thread) {
	all := s.kind.parts(s.name)
	parts := all[1:2]
	if s.kind.red {
		parts = all[:2]
	}
	for _, p := range parts {
		t.client = p.server
		was := t.as(plain).do("force", "name="+p.name, "kind="+p.kind).values["was"]
		check(was == "true", "a part of it was not held")
	}
}

// killedHolder is a case whose process is killed: the other side is granted the lock when the TTL
// is over.
type killedHolder struct {
	*env
	process *driver
	waits   *request
	// ends is when its TTL is over at the earliest, counted from when the TTL was read.
	ends, killed time.Time
}

func (d *killedHolder) prepare() {
	holder, waiter := d.thread("holder", d.holding, d.process).as(d.kind.held), d.waiter(long)
	holder.do("lock")
	d.waits = waiter.begin("lock")
	d.untilWaiting()
}

func (d *killedHolder) finish() {
	granted := d.waits.await().at()
	after := granted.Sub(d.killed)
	left := d.ends.Sub(d.killed)
	d.addFigure("granted %s after the kill, with a TTL of %s left", inMS(after), inMS(left))
	check(after > left-clockStep, "a TTL of %v was over after %v", left, after)
	check(after < short+soon, "a TTL of %v was over only after %v", short, after)
	d.waiter(long).do("unlock")
}
