package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// failure ends a case. The cases are told as stories, without an if after every
// sentence; it is thrown by try and check, and caught by play.
type failure struct{ error }

func try(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func check(ok bool, format string, values ...any) {
	if !ok {
		panic(failure{fmt.Errorf(format, values...)})
	}
}

// scene is one case being played, on one lock.
type scene struct {
	*world
	kind kind
	name string // of the lock
	// holding has the lock first, and waiting wants it.
	holding, waiting side
	figures          []string
}

// play plays a case. The figures are what it has to tell, also if it fails.
func (s *scene) play(act func(*scene)) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	act(s)
	return nil
}

func (s *scene) tell(format string, values ...any) {
	s.figures = append(s.figures, fmt.Sprintf(format, values...))
}

// times is n, or less for the quick form.
func (s *scene) times(n, quick int) int {
	if s.quick {
		return quick
	}
	return n
}

// driver gives the nth process of a side that has this watchdog, for this kind of lock.
func (s *scene) driver(side side, watchdog time.Duration, n int) *driver {
	return s.shared(side, s.kind.red, watchdog, n)
}

// thread is somebody who takes the lock: a thread of a driver.
type thread struct {
	scene  *scene
	side   side
	driver *driver
	name   string
	form   form
	client int // of Java's two
}

// thread makes one that wants the lock as the waiting side does.
func (s *scene) thread(name string, side side, d *driver) *thread {
	return &thread{scene: s, side: side, driver: d, name: s.name + " " + name, form: s.kind.wanted}
}

// as is the same thread, that asks for something else.
func (t *thread) as(f form) *thread {
	other := *t
	other.form = f
	return &other
}

// holder is of the side that holds, waiter of the other one.
func (s *scene) holder(watchdog time.Duration) *thread {
	return s.thread("holder", s.holding, s.driver(s.holding, watchdog, 0)).as(s.kind.held)
}

func (s *scene) waiter(watchdog time.Duration) *thread {
	return s.thread("waiter", s.waiting, s.driver(s.waiting, watchdog, 0))
}

// crew is the ith of eight threads of a side, which belong to two clients: of Java's these
// are in one process, unless they are for a RedLock.
func (s *scene) crew(side side, i int) *thread {
	process := i % 2
	if side == java && !s.kind.red {
		process = 0
	}
	t := s.thread(fmt.Sprint("crew", i), side, s.driver(side, s.kind.watchdog(), process))
	if side == java && !s.kind.red {
		t.client = i % 2
	}
	return t
}

// begin asks for something that may take its time; the answer is for await.
func (t *thread) begin(verb string, values ...string) *request {
	word, to := t.form.request(verb, t.scene.name)
	to = append(to, "thread="+t.name, fmt.Sprint("client=", t.client))
	return &request{
		thread: t, what: strings.Join(append([]string{t.side.name, verb}, values...), " "),
		answer: t.driver.send(word, append(to, values...)...),
	}
}

// do asks for something that should succeed.
func (t *thread) do(verb string, values ...string) answer {
	return t.begin(verb, values...).await()
}

// refused asks to unlock what was lost, which should fail. A RedLock of Redisson's says
// nothing about that.
func (t *thread) refused() {
	r := t.begin("unlock")
	a := r.any()
	if t.side == java && t.form.kind == red.kind {
		check(a.word == "ok", "%s: %v", r.what, a)
		return
	}
	check(a.word == "err" && a.values["class"] == t.side.refusal, "%s should fail with %s: %v", r.what, t.side.refusal, a)
}

// request is one that was sent.
type request struct {
	thread *thread
	what   string
	answer <-chan line
}

// answer is that of a driver.
type answer struct {
	line
	what string
}

func (r *request) await() answer { return r.within(patience) }

// within is await for what may take longer.
func (r *request) within(limit time.Duration) answer {
	a := r.anyWithin(limit)
	check(a.word == "ok", "%s: %s", r.what, a)
	return a
}

func (r *request) any() answer { return r.anyWithin(patience) }

func (r *request) anyWithin(limit time.Duration) answer {
	select {
	case l := <-r.answer:
		return answer{l, r.what}
	case <-r.thread.driver.ended:
		check(false, "%s: the process has ended\n%s", r.what, r.thread.driver.stderr)
	case <-r.thread.scene.ctx.Done():
		try(context.Cause(r.thread.scene.ctx))
	case <-time.After(limit):
		check(false, "%s: no answer within %v", r.what, limit)
	}
	panic("unreachable")
}

// pending tells that there is no answer yet.
func (r *request) pending() bool { return len(r.answer) == 0 }

func (a answer) number(key string) int64 {
	n, err := strconv.ParseInt(a.values[key], 10, 64)
	try(err)
	return n
}

// held checks that an attempt to take the lock went as it should.
func (a answer) held(should bool) answer {
	check(a.values["held"] == strconv.FormatBool(should), "%s: held=%s", a.what, a.values["held"])
	return a
}

// at is when it happened, took how long the call lasted, and began when it began.
func (a answer) at() time.Time       { return time.UnixMicro(a.number("at")) }
func (a answer) took() time.Duration { return time.Duration(a.number("nanos")) }
func (a answer) began() time.Time    { return a.at().Add(-a.took()) }
