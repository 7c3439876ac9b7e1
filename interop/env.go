package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// failure ends a case. try and check panic with it, and run recovers it, so that the cases
// need no error handling after every step.
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

// env is one run of a case, on one lock.
type env struct {
	*world
	kind kind
	name string // of the lock
	// holding is the side that holds the lock first, and waiting the side that waits.
	holding, waiting side
	figures          []string
}

// run runs a case. Its figures are kept even if it fails.
func (s *env) run(testcase func(*env)) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	testcase(s)
	return nil
}

// addFigure adds a text to the case's row of the table.
func (s *env) addFigure(format string, values ...any) {
	s.figures = append(s.figures, fmt.Sprintf(format, values...))
}

// times is n, or quick with -quick.
func (s *env) times(n, quick int) int {
	if s.quick {
		return quick
	}
	return n
}

// driver returns the nth process of a side with this watchdog, for this kind of lock.
func (s *env) driver(side side, watchdog time.Duration, n int) *driver {
	return s.shared(side, s.kind.red, watchdog, n)
}

// thread is a thread of a driver, which acquires the lock.
type thread struct {
	env    *env
	side   side
	driver *driver
	name   string
	form   form
	client int // of Java's two
}

// thread returns a thread that requests the lock in the form of the waiting side.
func (s *env) thread(name string, side side, d *driver) *thread {
	return &thread{env: s, side: side, driver: d, name: s.name + " " + name, form: s.kind.wanted}
}

// as is the same thread with another form of lock.
func (t *thread) as(f form) *thread {
	other := *t
	other.form = f
	return &other
}

// holder is a thread of the holding side, waiter one of the waiting side.
func (s *env) holder(watchdog time.Duration) *thread {
	return s.thread("holder", s.holding, s.driver(s.holding, watchdog, 0)).as(s.kind.held)
}

func (s *env) waiter(watchdog time.Duration) *thread {
	return s.thread("waiter", s.waiting, s.driver(s.waiting, watchdog, 0))
}

// workerThread is the ith of eight threads of a side, which use two clients: in Java these are in
// one process, except for a RedLock.
func (s *env) workerThread(side side, i int) *thread {
	process := i % 2
	if side == java && !s.kind.red {
		process = 0
	}
	t := s.thread(fmt.Sprint("worker", i), side, s.driver(side, s.kind.watchdog(), process))
	if side == java && !s.kind.red {
		t.client = i % 2
	}
	return t
}

// begin sends a request; await waits for its answer.
func (t *thread) begin(verb string, values ...string) *request {
	word, to := t.form.request(verb, t.env.name)
	to = append(to, "thread="+t.name, fmt.Sprint("client=", t.client))
	return &request{
		thread: t, what: strings.Join(append([]string{t.side.name, verb}, values...), " "),
		answer: t.driver.send(word, append(to, values...)...),
	}
}

// do sends a request that must succeed, and waits for its answer.
func (t *thread) do(verb string, values ...string) answer {
	return t.begin(verb, values...).await()
}

// refused unlocks a lost lock, which must fail. Redisson's RedLock does not report that.
func (t *thread) refused() {
	r := t.begin("unlock")
	a := r.any()
	if t.side == java && t.form.kind == red.kind {
		check(a.word == "ok", "%s: %v", r.what, a)
		return
	}
	check(a.word == "err" && a.values["class"] == t.side.refusal, "%s should fail with %s: %v", r.what, t.side.refusal, a)
}

// request is a request that was sent.
type request struct {
	thread *thread
	what   string
	answer <-chan line
}

// answer is the answer of a driver.
type answer struct {
	line
	what string
}

func (r *request) await() answer { return r.within(timeout) }

// within is await with another time limit.
func (r *request) within(limit time.Duration) answer {
	a := r.anyWithin(limit)
	check(a.word == "ok", "%s: %s", r.what, a)
	return a
}

func (r *request) any() answer { return r.anyWithin(timeout) }

func (r *request) anyWithin(limit time.Duration) answer {
	select {
	case l := <-r.answer:
		return answer{l, r.what}
	case <-r.thread.driver.ended:
		check(false, "%s: the process has ended\n%s", r.what, r.thread.driver.stderr)
	case <-r.thread.env.ctx.Done():
		try(context.Cause(r.thread.env.ctx))
	case <-time.After(limit):
		check(false, "%s: no answer within %v", r.what, limit)
	}
	panic("unreachable")
}

// pending reports whether there is no answer yet.
func (r *request) pending() bool { return len(r.answer) == 0 }

func (a answer) number(key string) int64 {
	n, err := strconv.ParseInt(a.values[key], 10, 64)
	try(err)
	return n
}

// held checks the result of an attempt to acquire the lock.
func (a answer) held(should bool) answer {
	check(a.values["held"] == strconv.FormatBool(should), "%s: held=%s", a.what, a.values["held"])
	return a
}

// at is when the call ended, took its duration, and began its start.
func (a answer) at() time.Time       { return time.UnixMicro(a.number("at")) }
func (a answer) took() time.Duration { return time.Duration(a.number("nanos")) }
func (a answer) began() time.Time    { return a.at().Add(-a.took()) }
