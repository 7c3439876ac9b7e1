package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// pairs makes every user lock and unlock its key, or the one key, again and again. The times
// are those of a pair without contention, and those of the wait with contention.
func (t *task) pairs(c candidate, lib library, s scenario) (report, error) {
	var (
		left atomic.Int64
		all  sync.WaitGroup
	)
	clock, mine := &phases{}, (*waitStats)(nil)
	if s.compares() {
		mine = newWaitStats(t, s, clock)
	}
	users := make([]*user, s.goroutines)
	left.Store(int64(s.goroutines))
	for i := range users {
		u := newUser(t, s, clock, i)
		u.waits = mine
		users[i] = u
		all.Go(func() {
			defer left.Add(-1)
			if looper, ok := lib.(looper); ok {
				looper.loop(u)
			} else {
				u.loop(lib)
			}
		})
	}
	time.Sleep(t.span(0.25))
	clock.begin()
	r, err := t.window(c, func() { time.Sleep(t.span(1)) })
	if mine != nil {
		mine.report(&r)
	}
	clock.end()
	if err != nil {
		return r, err
	}
	if s.fresh {
		r.Memory = readMemory()
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(timeout):
		r.Stuck = int(left.Load()) // they no longer count anything
	}
	for _, u := range users {
		r.Grants = append(r.Grants, u.grants)
		r.Held += u.held.Seconds()
		r.Times.merge(&u.times)
		if u.reads != nil {
			r.Times.merge(u.reads)
			r.Reads.merge(u.reads)
			r.Writes.merge(&u.times)
		}
	}
	return r, nil
}

// phases are the warm-up, the measured time, and the time after it.
type phases struct {
	phase    atomic.Int32
	from, to time.Time // of the measured time
}

const (
	warmUp = iota
	counting
	over
)

func (p *phases) begin() { p.from = time.Now(); p.phase.Store(counting) }
func (p *phases) end()   { p.to = time.Now(); p.phase.Store(over) }

func (p *phases) counts() bool { return p.phase.Load() == counting }
func (p *phases) over() bool   { return p.phase.Load() == over }

// part is the measured part of the time from one moment to another, which is now.
func (p *phases) part(from, to time.Time) time.Duration {
	phase := p.phase.Load()
	if phase == warmUp {
		return 0
	}
	if from.Before(p.from) {
		from = p.from
	}
	if phase == over && to.After(p.to) {
		to = p.to
	}
	return max(to.Sub(from), 0)
}

// A user locks and unlocks one key, and measures that: for every turn, begin, enter, leave
// and done are called in this order.
type user struct {
	*phases
	t   *task
	s   scenario
	key string
	i   int

	random  *rand.Rand // s8
	reading bool       // in this turn
	began   time.Time
	took    time.Duration

	turns  int // s18
	grants int
	times  histogram
	reads  *histogram // s8: the times of reads, which times then excludes
	held   time.Duration
	waits  *waitStats // s14, s15
}

func newUser(t *task, s scenario, p *phases, i int) *user {
	u := &user{phases: p, t: t, s: s, key: theKey, i: i}
	if !s.oneKey {
		u.key = fmt.Sprintf("%s%d", theKey, i)
	}
	if s.hasOddProcess() {
		u.reading = (s.kind == amongReaders) != t.last(s)
	}
	if s.kind == readWrite {
		u.random, u.reads = rand.New(rand.NewPCG(uint64(t.Index), uint64(i))), &histogram{}
	}
	return u
}

// A looper is a library whose users are not goroutines, and which runs the turns of a user
// itself.
type looper interface{ loop(*user) }

// loop runs the user on a goroutine.
func (u *user) loop(lib library) {
	for !u.over() {
		u.begin()
		acquire := lib.acquire
		if u.reading {
			acquire = lib.(reader).read
		}
		release, err := acquire(u.key)
		if err != nil {
			fail(err)
		}
		u.enter()
		u.leave()
		if err := release(); err != nil {
			fail(err)
		}
		u.done()
	}
}

// begin comes before the request.
func (u *user) begin() {
	u.began = time.Now()
	if u.s.fresh {
		u.turns++
		u.key = fmt.Sprint(theKey, u.i, "-", u.turns)
	}
	if u.waits != nil {
		u.waits.begin(u.i)
	}
	if u.random != nil {
		u.reading = u.random.IntN(10) > 0
	}
}

// enter comes after the grant; it does the work.
func (u *user) enter() {
	granted := time.Now()
	u.took = granted.Sub(u.began)
	if !u.s.oneKey {
		return
	}
	if now := u.t.shared.holders.Add(u.weight()); u.s.permits > 0 {
		if now > int64(u.s.permits) {
			fail(fmt.Errorf("%s let in %d, with %d permits", u.t.Lib, now, u.s.permits))
		}
	} else if u.reading && now >= writer || !u.reading && now != writer {
		fail(fmt.Errorf("%s granted the lock to a user that had to wait", u.t.Lib))
	}
	if u.waits != nil {
		u.waits.enter(u.i)
	}
	if u.s.work > 0 && !(u.s.hasOddProcess() && u.t.last(u.s)) {
		time.Sleep(u.s.work)
		u.held += u.part(granted, time.Now())
	}
}

// leave comes before the release.
func (u *user) leave() {
	if u.s.oneKey {
		u.t.shared.holders.Add(-u.weight())
	}
	if u.waits != nil {
		u.waits.leave()
	}
}

func (u *user) weight() int64 {
	if u.reading || u.s.permits > 0 {
		return 1
	}
	return writer
}

// done comes after the release.
func (u *user) done() {
	if !u.s.oneKey {
		u.took = time.Since(u.began)
	}
	if !u.counts() {
		return
	}
	u.grants++
	if u.reading && u.reads != nil {
		u.reads.add(u.took)
	} else {
		u.times.add(u.took)
	}
}
