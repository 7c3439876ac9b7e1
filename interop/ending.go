package main

import (
	"fmt"
	"time"
)

// The cases in which a hold ends without its holder.

// leaseEnds: a lease that is over lets the other side in, and the holder is refused later.
func leaseEnds(s *scene) {
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
	s.tell("granted %s after a lease of %v began", inMS(after), lease)
	check(after > s.holding.end(lease)-clockStep && after < lease+soon, "the other side got in %v after the lease began", after)
	if lost != nil {
		told := lost.await()
		s.tell("the holder was told %s before", inMS(granted.Sub(told.at())))
		check(told.values["class"] == golang.refusal, "it was told %s", told)
		check(told.at().Sub(granted) < soon/2, "the holder was told %v after the other side got in", told.at().Sub(granted))
	}
	untouched(s, func() { holder.refused() })
	waiter.do("unlock")
}

// untouched checks that something changes nothing about who has the lock.
func untouched(s *scene, something func()) {
	owner, count := s.owner()
	check(owner != "", "nobody has the lock")
	something()
	ownerAfter, countAfter := s.owner()
	check(owner == ownerAfter && count == countAfter, "%s had the lock %s times, and after a late call %q has it %q times", owner, count, ownerAfter, countAfter)
}

// forced: the other side frees the lock by force, one of its own gets it, and the holder
// is told: ours by itself at its next renewal, Java's when it unlocks.
func forced(s *scene) {
	holder, waiter := s.holder(short), s.waiter(long)
	forcer := s.thread("forcer", s.waiting, s.driver(s.waiting, long, 0)).as(s.kind.held)
	holder.do("lock")
	waits := waiter.begin("lock")
	s.untilWaiting()
	limit := soon
	began := time.Now()
	if single(s.kind) || s.waiting == golang {
		check(forcer.do("force").values["was"] == "true", "it was not held")
	} else { // Java frees a part, and the holder has to give up the rest
		s.forceParts(forcer)
		limit += short / 3
	}
	granted := waits.await().at()
	s.tell("granted after %s", inMS(granted.Sub(began)))
	check(granted.Sub(began) < limit, "the waiter got in only after %v", granted.Sub(began))
	untouched(s, func() {
		if s.holding == golang {
			lost := holder.do("lost")
			after := lost.at().Sub(began)
			s.tell("the holder was told after %s (renewal every %v)", inMS(after), short/3)
			check(lost.values["class"] == golang.refusal, "it was told %s", lost)
			check(after < short/3+soon, "the holder was told after %v", after)
		}
		holder.refused()
	})
	waiter.do("unlock")
	if single(s.kind) || s.waiting == golang {
		check(forcer.do("force").values["was"] == "false", "a free lock was held")
	}
}

// forceParts frees so much of a lock made of several that it is lost: one of a MultiLock,
// two of a RedLock's three. Redisson can force parts only.
func (s *scene) forceParts(t *thread) {
	places := s.kind.places(s.name)
	parts := places[1:2]
	if s.kind.red {
		parts = places[:2]
	}
	for _, p := range parts {
		t.client = p.server
		was := t.as(plain).do("force", "name="+p.name, "kind="+p.kind).values["was"]
		check(was == "true", "a part of it was not held")
	}
}

// doomed is a case with a process that is going to be killed: its lock is the other
// side's when its TTL is over.
type doomed struct {
	*scene
	process *driver
	waits   *request
	// ends is when its TTL is over: not sooner than that from when Redis was asked for it.
	ends, killed time.Time
}

func (d *doomed) prepare() {
	holder, waiter := d.thread("holder", d.holding, d.process).as(d.kind.held), d.waiter(long)
	holder.do("lock")
	d.waits = waiter.begin("lock")
	d.untilWaiting()
}

func (d *doomed) finish() {
	granted := d.waits.await().at()
	after := granted.Sub(d.killed)
	left := d.ends.Sub(d.killed)
	d.tell("granted %s after the kill, with a TTL of %s left", inMS(after), inMS(left))
	check(after > left-clockStep, "a TTL of %v was over after %v", left, after)
	check(after < short+soon, "a TTL of %v was over only after %v", short, after)
	d.waiter(long).do("unlock")
}
