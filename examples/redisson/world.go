package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	// patience is how long anything may take before it counts as failed. It is long
	// because a JVM starts slowly on a busy machine.
	patience = 30 * time.Second
	// soon is how late anything may come because the machine is busy. It is far below what
	// a missed message would cost: a TTL of 30 s, or a poll after a minute.
	soon = time.Second

	// clockStep is what the clocks, and the TTL in milliseconds, may be off.
	clockStep = 5 * time.Millisecond

	long  = 30 * time.Second // the watchdogs of the drivers: one that does not matter,
	short = 3 * time.Second  // and one that does
)

// side is one of the two that share the locks.
type side struct {
	name string
	// refusal is the class of the error when somebody unlocks what he has lost.
	refusal string
}

var (
	java   = side{name: "Java", refusal: "java.lang.IllegalMonitorStateException"}
	golang = side{name: "Go", refusal: "ErrLost"}
)

// end is when a lease of this side's is over at the earliest: Lockkeeper, which tells the
// holder first, does not trust the last 1 % and 2 ms, and gives the lock back.
func (s side) end(lease time.Duration) time.Duration {
	if s == golang {
		return lease - lease/100 - 2*time.Millisecond
	}
	return lease
}

// world is what all cases share: a Redis and the drivers.
type world struct {
	ctx   context.Context
	url   string
	redis rueidis.Client
	jar   string
	quick bool
	// mark is in the name of every key and channel of this run.
	mark    string
	drivers map[string]*driver
	// all are the drivers that were ever started.
	all []*driver
	out io.Writer
}

func newWorld(ctx context.Context, redis rueidis.Client, url, jar string, quick bool, out io.Writer) *world {
	return &world{
		ctx: ctx, redis: redis, url: url, jar: jar, quick: quick, out: out,
		mark: fmt.Sprintf("interop%08x", rand.Uint32()), drivers: map[string]*driver{},
	}
}

// launch starts a process of a side. A Java process has two Redisson clients.
func (w *world) launch(s side, watchdog time.Duration) *driver {
	program, args := "java", []string{"-Xmx256m", "-jar", w.jar, "-redis", w.url}
	if s == golang {
		self, err := os.Executable()
		try(err)
		program, args = self, []string{driveVerb}
	}
	d, err := startDriver(exec.Command(program, append(args, "-redis", w.url, "-watchdog", strconv.FormatInt(watchdog.Milliseconds(), 10))...))
	try(err)
	w.all = append(w.all, d)
	return d
}

// driver gives the nth process of a side that has this watchdog, which cases may share.
func (w *world) driver(s side, watchdog time.Duration, n int) *driver {
	key := fmt.Sprint(s.name, watchdog, n)
	d := w.drivers[key]
	if d == nil {
		d = w.launch(s, watchdog)
		w.drivers[key] = d
	}
	return d
}

// close lets all processes end, at the same time.
func (w *world) close() {
	for _, d := range w.all {
		_ = d.stdin.Close()
	}
	for _, d := range w.all {
		d.stop()
	}
}

// restart ends the shared processes after a case that failed: some of their threads may
// still wait for its lock. The next case starts new ones.
func (w *world) restart() {
	for _, d := range w.drivers {
		d.kill()
	}
	clear(w.drivers)
}

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

// thread is somebody who takes the lock: a thread of a driver.
type thread struct {
	scene  *scene
	side   side
	driver *driver
	name   string
	client int // of Java's two
}

func (s *scene) thread(name string, side side, d *driver) *thread {
	return &thread{scene: s, side: side, driver: d, name: s.mark + " " + name}
}

// holder is of the side that holds, waiter and a second waiter are of the other one.
func (s *scene) holder(watchdog time.Duration) *thread {
	return s.thread("holder", s.holding, s.driver(s.holding, watchdog, 0))
}

func (s *scene) waiter(watchdog time.Duration) *thread {
	return s.thread("waiter", s.waiting, s.driver(s.waiting, watchdog, 0))
}

// begin asks for something that may take its time; the answer is for await.
func (t *thread) begin(verb string, values ...string) *request {
	to := []string{"thread=" + t.name, "kind=" + t.scene.kind.name, "name=" + t.scene.name, fmt.Sprint("client=", t.client)}
	return &request{
		thread: t, what: strings.Join(append([]string{t.side.name, verb}, values...), " "),
		answer: t.driver.send(verb, append(to, values...)...),
	}
}

// do asks for something that should succeed.
func (t *thread) do(verb string, values ...string) answer {
	return t.begin(verb, values...).await()
}

// refused asks for something that should fail for want of the lock.
func (t *thread) refused(verb string) {
	r := t.begin(verb)
	a := r.any()
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

func (r *request) await() answer {
	a := r.any()
	check(a.word == "ok", "%s: %s", r.what, a)
	return a
}

func (r *request) any() answer {
	select {
	case l := <-r.answer:
		return answer{l, r.what}
	case <-r.thread.driver.ended:
		check(false, "%s: the process has ended\n%s", r.what, r.thread.driver.stderr)
	case <-r.thread.scene.ctx.Done():
		try(context.Cause(r.thread.scene.ctx))
	case <-time.After(patience):
		check(false, "%s: no answer within %v", r.what, patience)
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

// What follows looks into Redis.

// owner is who holds the lock, and how many times.
func (s *scene) owner() (owner, count string) {
	hash, err := s.redis.Do(s.ctx, s.redis.B().Hgetall().Key(s.name).Build()).AsStrMap()
	try(err)
	return s.kind.holder(hash)
}

// ttl is what is left of the lock's lease.
func (s *scene) ttl() time.Duration { return s.ttlOf(s.name) }

func (w *world) ttlOf(key string) time.Duration {
	n, err := w.redis.Do(w.ctx, w.redis.B().Pttl().Key(key).Build()).AsInt64()
	try(err)
	return milliseconds(int(n))
}

func (w *world) keys(pattern string) (keys []string) {
	for cursor := uint64(0); ; {
		page, err := w.redis.Do(w.ctx, w.redis.B().Scan().Cursor(cursor).Match(pattern).Count(1000).Build()).AsScanEntry()
		try(err)
		keys = append(keys, page.Elements...)
		if cursor = page.Cursor; cursor == 0 {
			return keys
		}
	}
}

// number reads a key that the drivers count in; remove deletes it.
func (s *scene) number(key string) int {
	n, err := s.redis.Do(s.ctx, s.redis.B().Get().Key(key).Build()).AsInt64()
	if !rueidis.IsRedisNil(err) {
		try(err)
	}
	return int(n)
}

func (s *scene) remove(key string) {
	_ = s.redis.Do(s.ctx, s.redis.B().Del().Key(key).Build()).Error() // leftovers would notice
}

// untilListening waits until so many clients listen for the lock's release.
func (s *scene) untilListening(clients int64) {
	channel := s.kind.channel(s.name)
	s.until(fmt.Sprintf("%d clients listen on %s", clients, channel), func() bool {
		counts, err := s.redis.Do(s.ctx, s.redis.B().PubsubNumsub().Channel(channel).Build()).ToArray()
		try(err)
		n, err := counts[1].AsInt64()
		try(err)
		return n == clients
	})
}

// untilWaiting waits until one client waits for the lock's release.
func (s *scene) untilWaiting() {
	s.untilListening(1)
	time.Sleep(5 * time.Millisecond) // it tries once more, and only then only a message helps
}

func (w *world) until(what string, met func() bool) {
	for began := time.Now(); !met(); time.Sleep(time.Millisecond) {
		check(time.Since(began) < patience, "not within %v: %s", patience, what)
		try(context.Cause(w.ctx))
	}
}
