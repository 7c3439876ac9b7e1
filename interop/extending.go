package main

import (
	"fmt"
	"strings"
	"time"
)

// The cases in which a hold of Lockkeeper gets another lease, and Redisson sees it, and is granted the lock at its end.

const shortened = 700 * time.Millisecond

// extended: a lock. Read/write locks are left out: Redis keeps the longest of their leases.
func extended(s *env) {
	holder := s.thread("holder", golang, s.driver(golang, long, 0)).as(s.kind.held)
	watcher, waiter := s.thread("watcher", java, s.driver(java, long, 0)), s.thread("waiter", java, s.driver(java, long, 0))
	holder.do("lock")
	s.extends(holder, func() int64 { return watcher.as(s.kind.held).do("ttl").number("ttl") })
	asked := time.Now()
	holder.do("extend", lease(shortened))
	lost := holder.begin("lost")
	s.grantedAtTheEnd(waiter.do("lock").at().Sub(asked))
	check(lost.await().values["class"] == golang.refusal, "the holder was not notified of the loss")
	untouched(s, holder.refused)
	waiter.do("unlock")
}

// extendedPermits: permits that were acquired together.
func extendedPermits(s *env) {
	holder, waiter := s.thread("holder", golang, s.driver(golang, long, 0)), s.thread("waiter", java, s.driver(java, long, 0))
	defer s.permits(holder, 2)()
	held := holder.begin("acquire", "n=2").took(2)
	_, list, _ := strings.Cut(held.values[0], "=")
	ids := strings.Split(list, ",")
	check(len(ids) == 2 && ids[0] != ids[1], "the ids are %q", ids)
	for _, id := range ids {
		s.extends(holder, func() int64 { return waiter.do("ttl", "id="+id).number("ttl") }, held.values...)
	}
	asked := time.Now()
	holder.do("extend", append(held.values, lease(shortened))...)
	got := waiter.begin("acquire", "n=2").took(2)
	s.grantedAtTheEnd(got.at.Sub(asked))
	got.giveBack(holder)
	s.available(2)
}

// extends gives a hold, which values identify, other leases: Java sees each of them.
func (s *env) extends(holder *thread, seen func() int64, values ...string) {
	for _, d := range []time.Duration{4 * long, long / 2, long} {
		asked := time.Now()
		if d == long { // the watchdog's
			holder.do("extend", values...)
		} else {
			holder.do("extend", append(values, lease(d))...)
		}
		left := time.Duration(seen()) * time.Millisecond
		check(left >= d-time.Since(asked)-clockStep && left <= d, "Java sees %v of a lease of %v", left, d)
	}
}

func (s *env) grantedAtTheEnd(after time.Duration) {
	s.addFigure("granted %s after a lease of %v began", inMS(after), shortened)
	check(after > golang.end(shortened)-clockStep && after < shortened+soon, "Java was granted it %v after the lease began", after)
}

// lease is that value of a request.
func lease(d time.Duration) string { return fmt.Sprint("lease=", d.Milliseconds()) }
