package main

import (
	"fmt"
	"slices"
	"time"
)

// The cases of the synchronizers: semaphores, expirable semaphores and latches.

var synchronizerCases = []testcase{
	{"a release wakes the other side", false, only(semaphore, expirable), permitWakes},
	{"never more than there are", true, only(semaphore, expirable), crowd},
	{"released by the other side", false, only(semaphore, expirable), across},
	{"what is set, added and drained", false, only(semaphore), counts},
	{"several permits together", false, only(expirable), several},
	{"another lease of permits", true, only(expirable), extendedPermits},
	{"a permit that expires", false, only(expirable), permitExpires},
	{"a killed holder", false, only(expirable), permitOfKilledProcess},
	{"a latch that both wait for", false, only(countLatch), bothWait},
	{"counted down under load", true, only(countLatch), countedDown},
}

// taken is an acquired permit, or several.
type taken struct {
	*thread
	values []string
	at     time.Time
}

// took is what a request was granted.
func (r *request) took(n int) taken {
	a := r.await().held(true)
	p := taken{thread: r.thread, values: []string{fmt.Sprint("n=", n)}, at: a.at()}
	if id := a.values["id"]; id != "" {
		p.values = []string{"id=" + id}
	}
	return p
}

// giveBack lets a thread of either side release it, and returns when that was.
func (p taken) giveBack(by *thread) time.Time { return by.do("release", p.values...).at() }

// permits sets the number of permits. The caller must remove the key.
func (s *env) permits(by *thread, n int) (remove func()) {
	check(by.do("set", fmt.Sprint("n=", n)).values["done"] == "true", "there are permits already")
	return func() { s.remove(s.name) }
}

// available checks that both sides see n permits.
func (s *env) available(n int64) {
	for _, t := range []*thread{s.holder(long), s.waiter(long)} {
		seen := t.do("available").number("n")
		check(seen == n, "%s sees %d permits instead of %d", t.side.name, seen, n)
	}
}

// permitWakes: only the message of the release can wake the waiter within a second.
func permitWakes(s *env) {
	holder, waiter := s.holder(long), s.waiter(long)
	defer s.permits(holder, 1)()
	var latencies []time.Duration
	for range s.times(200, 50) {
		held := holder.begin("acquire").took(1)
		waits := waiter.begin("acquire")
		s.untilWaiting()
		check(waits.pending(), "%s got a permit that was taken", waiter.side.name)
		released := held.giveBack(holder)
		got := waits.took(1)
		latencies = append(latencies, got.at.Sub(released))
		got.giveBack(waiter)
	}
	s.addFigure("%d rounds: %s", len(latencies), quantiles(latencies))
	check(slices.Max(latencies) < soon, "a waiter was woken only after %v", slices.Max(latencies))
	s.available(1)
}

// crowd: four threads of each side acquire permits as fast as they can, and count how many are held at the same time.
func crowd(s *env) {
	const permits = 3
	key, began := s.name+":crowd", time.Now()
	defer s.remove(key)
	defer s.permits(s.workerThread(golang, 0), permits)()
	var all []*request
	for i := range 4 {
		for _, side := range []side{java, golang} {
			all = append(all, s.workerThread(side, i).begin("crowd", "key="+key, fmt.Sprint("rounds=", s.times(500, 100))))
		}
	}
	most := int64(0)
	for _, r := range all {
		most = max(most, r.within(10*timeout).number("most"))
	}
	s.addFigure("at most %d of %d at the same time, in %s", most, permits, inMS(time.Since(began)))
	check(most <= permits, "%d permits were held at the same time, of %d", most, permits)
	s.available(permits)
}

// across: a permit has no owner: any client that knows its id can release it.
func across(s *env) {
	holder, waiter := s.holder(long), s.waiter(long)
	defer s.permits(holder, 2)()
	first, second := holder.begin("acquire").took(1), holder.begin("acquire").took(1)
	waiter.do("tryacquire").held(false)
	first.giveBack(waiter)
	s.available(1)
	waiter.begin("tryacquire", "wait=10000").took(1).giveBack(holder)
	second.giveBack(waiter)
	s.available(2)
}

// several: a request for several permits gets all of them or none, and either side can release them.
func several(s *env) {
	holder, waiter := s.holder(long), s.waiter(long)
	defer s.permits(holder, 3)()
	held := holder.begin("acquire", "n=2").took(2)
	waiter.do("tryacquire", "n=2").held(false)
	s.available(1)
	waits := waiter.begin("acquire", "n=3")
	s.untilWaiting()
	check(waits.pending(), "%s got permits that were taken", waiter.side.name)
	released := held.giveBack(holder)
	got := waits.took(3)
	s.addFigure("granted %s after the release", inMS(got.at.Sub(released)))
	check(got.at.Sub(released) < soon, "the waiter was woken only after %v", got.at.Sub(released))
	s.available(0)
	got.giveBack(holder)
	s.available(3)
}

// counts: both sides see the changes of the other one.
func counts(s *env) {
	holder, waiter := s.holder(long), s.waiter(long)
	defer s.permits(holder, 2)()
	check(waiter.do("set", "n=9").values["done"] == "false", "%s has set what was set", waiter.side.name)
	s.available(2)
	waiter.do("add", "n=3")
	s.available(5)
	holder.do("acquire", "n=4").held(true)
	waits := waiter.begin("acquire", "n=2")
	s.untilWaiting()
	holder.do("add", "n=1")
	waits.took(2)
	holder.do("release", "n=7") // more than were ever taken
	drained := waiter.do("drain").number("n")
	check(drained == 7, "%d were drained instead of 7", drained)
	s.available(0)
}

// permitExpires: a permit whose lease is over is granted to the other side.
func permitExpires(s *env) {
	const lease = 700 * time.Millisecond
	holder, waiter := s.holder(long), s.waiter(long)
	defer s.permits(holder, 1)()
	asked := time.Now()
	holder.begin("acquire", fmt.Sprint("lease=", lease.Milliseconds())).took(1)
	got := waiter.begin("acquire").took(1)
	s.addFigure("granted %s after a lease of %v began", inMS(got.at.Sub(asked)), lease)
	check(got.at.Sub(asked) > s.holding.end(lease)-clockStep, "the other side got it %v after the lease began", got.at.Sub(asked))
	got.giveBack(waiter)
	s.available(1)
}

// permitOfKilledProcess: a permit of the watchdog expires when it is no longer renewed. Redisson has
// no watchdog for permits: a permit without a lease of a killed process stays taken.
func permitOfKilledProcess(s *env) {
	if s.holding == java {
		s.addFigure("left out: a permit of Redisson's without a lease never expires")
		return
	}
	waiter, process := s.waiter(long), s.launch(s.holding, false, short)
	defer s.permits(waiter, 1)()
	s.thread("killed", s.holding, process).begin("acquire").took(1)
	waits := waiter.begin("acquire")
	s.untilWaiting()
	process.kill()
	killed := time.Now()
	got := waits.took(1)
	s.addFigure("granted %s after the kill, with a watchdog of %v", inMS(got.at.Sub(killed)), short)
	check(got.at.Sub(killed) < short+soon, "the permit was free only after %v", got.at.Sub(killed))
	got.giveBack(waiter)
	s.available(1)
}

// bothWait: threads of both sides wait, and both sides count down.
func bothWait(s *env) {
	holder, waiter := s.holder(long), s.waiter(long)
	var latencies []time.Duration
	for range s.times(50, 20) {
		check(holder.do("set", "n=3").values["done"] == "true", "there is a count already")
		check(waiter.do("set", "n=9").values["done"] == "false", "%s has set what was set", waiter.side.name)
		var all []*request
		for i := range 4 {
			all = append(all, s.workerThread([]side{java, golang}[i%2], i/2).begin("wait"))
		}
		// Two clients of each side wait, with one subscription each.
		s.untilListening(4)
		waiter.do("down")
		holder.do("down")
		seen := waiter.do("count").number("n")
		check(seen == 1, "%s sees a count of %d instead of 1", waiter.side.name, seen)
		for _, r := range all {
			check(r.pending(), "%s did not wait", r.thread.side.name)
		}
		opened := waiter.do("down").at()
		for _, r := range all {
			latencies = append(latencies, r.await().held(true).at().Sub(opened))
		}
		holder.do("wait").held(true)
		waiter.do("down") // no effect, since the latch is open
		seen = holder.do("count").number("n")
		check(seen == 0, "%s sees a count of %d of an open latch", holder.side.name, seen)
	}
	s.addFigure("%d waits: %s", len(latencies), quantiles(latencies))
	check(slices.Max(latencies) < soon, "a waiter was woken only after %v", slices.Max(latencies))
}

// countedDown: no count-down is lost, and none counts twice.
func countedDown(s *env) {
	each, began := s.times(500, 100), time.Now()
	s.workerThread(java, 0).do("set", fmt.Sprint("n=", 8*each+1))
	var all, waits []*request
	for i := range 4 {
		for _, side := range []side{java, golang} {
			all = append(all, s.workerThread(side, i).begin("down", fmt.Sprint("n=", each)))
		}
	}
	for i, side := range []side{java, golang} {
		waits = append(waits, s.workerThread(side, 4+i).begin("wait"))
	}
	for _, r := range all {
		r.within(10 * timeout)
	}
	s.addFigure("%d count-downs in %s", 8*each, inMS(time.Since(began)))
	left := s.number(s.name)
	check(left == 1, "%d are left instead of 1", left)
	for _, r := range waits {
		check(r.pending(), "%s did not wait", r.thread.side.name)
	}
	s.workerThread(golang, 0).do("down")
	for _, r := range waits {
		r.await().held(true)
	}
}
