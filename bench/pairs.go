package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// pairs makes every user lock and unlock its key, or the one key, again and again. Without contention the times are the
// times of a pair, with contention the times of the wait.
func (t *task) pairs(c candidate, lib library, s scenario) (report, error) {
	var (
		left atomic.Int64
		all  sync.WaitGroup
	)
	clock := &phases{}
	users := make([]*user, s.goroutines)
	left.Store(int64(s.goroutines))
	for i := range users {
		u := newUser(t, s, clock, i)
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
		r.Times.merge(&u.times)
	}
	return r, nil
}

// phases are the warm-up, the measured time, and the time after it.
type phases struct{ phase atomic.Int32 }

const (
	warmUp = iota
	counting
	over
)

func (p *phases) begin() { p.phase.Store(counting) }
func (p *phases) end()   { p.phase.Store(over) }

func (p *phases) counts() bool { return p.phase.Load() == counting }
func (p *phases) over() bool   { return p.phase.Load() == over }

// A user locks and unlocks one key, and measures that: for every turn, begin, enter, leave
// and done are called in this order.
type user struct {
	*phases
	t   *task
	s   scenario
	key string
	i   int

	random  *rand.Rand // of readWrite
	reading bool       // in this turn
	began   time.Time
	took    time.Duration

	turns  int // s18
	grants int
	times  histogram
}

func newUser(t *task, s scenario, p *phases, i int) *user {
	u := &user{phases: p, t: t, s: s, key: theKey, i: i}
	if !s.oneKey {
		u.key = keyOf(i)
	}
	if s.kind == readWrite {
		u.random = rand.New(rand.NewPCG(uint64(t.Index), uint64(i)))
	}
	return u
}

// keyOf is the key of the ith user, where each has one of its own.
func keyOf(i int) string { return fmt.Sprint(theKey, i) }

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
	if u.random != nil {
		u.reading = u.random.IntN(10) > 0
	}
}

// enter comes after the grant.
func (u *user) enter() {
	u.took = time.Since(u.began)
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
}

// leave comes before the release.
func (u *user) leave() {
	if u.s.oneKey {
		u.t.shared.holders.Add(-u.weight())
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
	if u.counts() {
		u.grants++
		u.times.add(u.took)
	}
}
