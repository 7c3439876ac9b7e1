package actors

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// host runs the code of the host program: its log handler, its meter, its tracer, its subscribers to
// the event stream. Each may block or panic, so it runs on a goroutine that does nothing else, and
// holders are notified of a loss before.
type host struct {
	actor  *actor.ActorSystem
	logger *slog.Logger

	logs, events, meter, spans hostQueue
}

func newHost(system *actor.ActorSystem, logger *slog.Logger) *host {
	return &host{actor: system, logger: logger, meter: hostQueue{linger: hostLinger}, spans: hostQueue{linger: hostLinger}}
}

// log logs a line. The arguments are as for slog, and must not change afterwards.
func (h *host) log(level slog.Level, message string, args ...any) {
	h.logs.add(func() { h.logger.Log(context.Background(), level, message, args...) }, h.logsDropped)
}

// report logs a line whose arguments take a while to find out; that may block and panic like the
// handler.
func (h *host) report(level slog.Level, message string, args func() []any) {
	h.logs.add(func() { h.logger.Log(context.Background(), level, message, args()...) }, h.logsDropped)
}

func (h *host) warn(message string, args ...any)  { h.log(slog.LevelWarn, message, args...) }
func (h *host) error(message string, args ...any) { h.log(slog.LevelError, message, args...) }

// logsDropped says how many lines the handler did not take.
func (h *host) logsDropped(n int, _ any) {
	h.logger.Warn("log lines were dropped: the log handler blocked or panicked", "lines", n)
}

// publish publishes an event on the event stream.
func (h *host) publish(event any) {
	h.events.add(func() { h.actor.EventStream.Publish(event) }, h.dropped("a subscriber of the event stream"))
}

// trace calls f, which makes a span.
func (h *host) trace(f func()) { h.spans.add(f, h.dropped("the tracer")) }

// measure calls f, which records a measurement.
func (h *host) measure(f func()) { h.meter.add(f, h.dropped("the meter")) }

func (h *host) dropped(who string) func(int, any) {
	return func(n int, panicked any) {
		h.warn(who+" blocked or panicked, and has missed some calls", "missed", n, "panic", panicked)
	}
}

// CallHost runs a function of the host program, such as one given as an option, on a goroutine
// of its own. A panic in it is logged.
func (r *Runtime) CallHost(what string, f func()) {
	go func() {
		defer r.survive(what + " panicked")
		f()
	}()
}

// survive, deferred, ends a panic, and has it logged.
func (r *Runtime) survive(message string) {
	if panicked := recover(); panicked != nil {
		r.host.error(message, "panic", panicked)
	}
}

// closeGrace is how long Close waits for the host to take the last log lines,
// measurements and events.
const closeGrace = time.Second

// drain waits until the host has taken everything, for at most closeGrace.
func (h *host) drain() {
	over := time.NewTimer(closeGrace)
	defer over.Stop()
	for _, l := range []*hostQueue{&h.meter, &h.spans, &h.events, &h.logs} { // the logs last: the others may add to them
		select {
		case <-l.idle():
		case <-over.C:
			return
		}
	}
}

const (
	// hostQueueLimit bounds the functions that wait in a hostQueue.
	hostQueueLimit = 1024
	// hostLinger is how long a measurement or a span may wait for others: a timer every 10 ms, even one that
	// does nothing, took a tenth of what one goroutine on one core got done with a lock.
	hostLinger = 250 * time.Millisecond
	// tellEvery is how often a hostQueue reports at most what it has dropped.
	tellEvery = time.Second
)

// hostQueue runs functions one after another, on a goroutine that is there while any wait. It
// never blocks whoever adds one: when a function blocks for long, what is added behind it
// is dropped and counted.
type hostQueue struct {
	// linger is how long the goroutine is not started, unless it is asked to hurry or much waits. It ends
	// when it has run all that waited when it was started: what came meanwhile lingers again.
	linger time.Duration

	mu      sync.Mutex // guards what follows
	waiting []func()
	ended   chan struct{} // closed when the goroutine ends; nil while nothing waits or runs
	// timer starts the goroutine with run; nil if it has. hurried: what comes meanwhile is not to linger;
	// draining: nor is what comes until the goroutine ends.
	timer             *time.Timer
	run               func()
	hurried, draining bool
	// round is how many of those waiting are run before what came after them may linger.
	round int
	// dropped is how many were dropped, or panicked, of which nobody was told yet;
	// panicked is the value of the last panic, and toldAt when somebody was told.
	dropped  int
	panicked any
	toldAt   time.Time
}

// add appends a function. dropped tells of those that were dropped, when the queue moves
// again; it may block and panic like them.
func (l *hostQueue) add(f func(), dropped func(n int, panicked any)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= hostQueueLimit {
		l.dropped++
		return
	}
	l.waiting = append(l.waiting, f)
	switch {
	case l.ended != nil && len(l.waiting) < hostQueueLimit/4:
	case l.ended != nil:
		l.startNow()
	default:
		l.ended = make(chan struct{})
		l.run = func() { l.runAll(dropped) }
		if l.linger == 0 {
			go l.run()
		} else {
			l.timer = time.AfterFunc(l.linger, l.run)
		}
	}
}

// hurry ends the lingering.
func (l *hostQueue) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startNow()
}

// startNow starts the goroutine that was to start later; mu is held.
func (l *hostQueue) startNow() {
	l.hurried = true
	if l.timer != nil && l.timer.Stop() {
		go l.run()
	}
	l.timer = nil
}

func (l *hostQueue) runAll(dropped func(n int, panicked any)) {
	over := false
	defer func() {
		if !over { // a function has ended the goroutine: runtime.Goexit
			go l.runAll(dropped)
		}
	}()
	l.begin()
	for {
		f := l.next()
		if f == nil {
			over = true
			return
		}
		l.try(f, 1)
		if n, panicked := l.untold(); n > 0 {
			l.try(func() { dropped(n, panicked) }, n)
		}
	}
}

// begin begins a round with all that wait.
func (l *hostQueue) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer, l.hurried, l.round = nil, false, len(l.waiting)
}

// next takes out the next function; nil ends the goroutine.
func (l *hostQueue) next() func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.waiting) == 0:
		l.waiting = nil
		close(l.ended)
		l.ended, l.draining = nil, false
		return nil
	case l.round == 0 && l.linger > 0 && !l.hurried && !l.draining && len(l.waiting) < hostQueueLimit/4:
		l.timer = time.AfterFunc(l.linger, l.run)
		return nil
	case l.round > 0:
		l.round--
	}
	f := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	return f
}

// try runs a function that counts for n dropped if it does not return, and reports whether it did.
func (l *hostQueue) try(f func(), n int) (returned bool) {
	defer func() {
		if returned {
			return
		}
		panicked := recover()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dropped += n
		l.panicked = panicked
	}()
	f()
	return true
}

// untold is what somebody is to be told of now.
func (l *hostQueue) untold() (n int, panicked any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped == 0 || time.Since(l.toldAt) < tellEvery {
		return 0, nil
	}
	n, panicked = l.dropped, l.panicked
	l.dropped, l.panicked, l.toldAt = 0, nil, time.Now()
	return n, panicked
}

// idle is closed when nothing waits or runs. Until then nothing lingers.
func (l *hostQueue) idle() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		return closed
	}
	l.draining = true
	l.startNow()
	return l.ended
}

// closed is a closed channel.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
