package main

import (
	"fmt"
	"slices"
	"time"
)

// order: alternating Java and Go waiters are granted the lock in order of arrival.
func order(s *env) {
	holder := s.holder(long)
	holder.do("lock")
	type one struct {
		*thread
		waits *request
	}
	var queue []one
	for i, initial := range "JGJGGJJGJJGG" {
		side := map[rune]side{'J': java, 'G': golang}[initial]
		t := s.workerThread(side, i)
		queue = append(queue, one{t, t.begin("lock")})
		s.untilQueued(int64(i) + 1)
	}
	last := holder.do("unlock").at()
	var waits []time.Duration
	for i, w := range queue {
		granted := w.waits.await().at()
		waits = append(waits, granted.Sub(last))
		for _, later := range queue[i+1:] {
			check(later.waits.pending(), "%s was granted the lock before its turn", later.waits.what)
		}
		last = w.do("unlock").at()
	}
	s.addFigure("%d of two Java clients and two Go processes; release to grant %s", len(queue), quantiles(waits))
}

// killedWaiter: the process of the first waiter is killed. The waiters behind it are granted the lock
// when the first counts as dead, for which both sides have a limit.
func killedWaiter(s *env) {
	const limit = time.Second
	more := []string{"-poll", fmt.Sprint(limit.Milliseconds() / 3)}
	if s.holding == java {
		if s.version < "3.46" {
			s.addFigure("left out: before 3.46 Redisson's limit is always 5 min")
			return
		}
		more = []string{"-fairwait", fmt.Sprint(limit.Milliseconds())}
	}
	process := s.launch(s.holding, false, short, more...)
	holder, first, second := s.holder(short), s.thread("first", s.holding, process), s.waiter(short)
	holder.do("lock")
	first.begin("lock")
	s.untilListening(1)
	waits := second.begin("lock")
	s.untilListening(2)
	process.kill()
	s.untilListening(1)
	left := s.ttl()
	released := holder.do("unlock").at()
	granted := waits.await().at().Sub(released)
	s.addFigure("granted %s after the release, with a limit of %v and a TTL of %s", inMS(granted), limit, inMS(left))
	// Its limit begins at the latest when the holder's TTL is over; Redisson's waiters try again only
	// then.
	check(granted < short+limit+soon, "granted only after %v", granted)
	second.do("unlock")
}

// tokens: eight threads acquire the lock again and again. Each hold has a higher token than all before.
func tokens(s *env) {
	type hold struct {
		at    time.Time
		token int64
		side  side
	}
	rounds := s.times(40, 15)
	grants := make(chan []hold)
	failures := make(chan any, 16)
	for i := range 8 {
		t := s.workerThread([]side{java, golang}[i%2], i/2)
		go func() {
			var mine []hold
			defer func() {
				failures <- recover()
				grants <- mine
			}()
			for range rounds {
				a := t.do("lock")
				mine = append(mine, hold{a.at(), a.number("token"), t.side})
				t.do("unlock")
			}
		}()
	}
	var all []hold
	for range 8 {
		if failure := <-failures; failure != nil {
			defer panic(failure)
		}
		all = append(all, <-grants...)
	}
	slices.SortFunc(all, func(a, b hold) int { return a.at.Compare(b.at) })
	changes := 0
	for i := 1; i < len(all); i++ {
		check(all[i].token > all[i-1].token,
			"token %d of %s comes after token %d of %s", all[i].token, all[i].side.name, all[i-1].token, all[i-1].side.name)
		if all[i].side != all[i-1].side {
			changes++
		}
	}
	newest := s.workerThread(java, 0).do("token").number("token")
	s.addFigure("%d holds, from token %d to %d; the lock changed sides %d times; the counter is %d",
		len(all), all[0].token, all[len(all)-1].token, changes, newest)
	check(newest >= all[len(all)-1].token, "the counter is %d", newest)
	left := s.redis.ttl(s.ctx, prefixed("redisson_lock_token", s.name))
	check(left < 0, "the counter has a TTL of %v", left)
}
