package host

import (
	"sync"
	"time"
)

const (
	// queueLimit bounds the functions that wait in a queue.
	queueLimit = 1024
	// linger is how long a measurement or a span may wait for others: a timer every 10 ms, even one that
	// does nothing, took a tenth of what one goroutine on one core got done with a lock.
	linger = 250 * time.Millisecond
	// tellEvery is how often a queue reports at most what it has dropped.
	tellEvery = time.Second
)

// queue runs functions one after another, on a goroutine that is there while any wait. It
// never blocks the caller that adds one: when a function blocks for long, what is added behind it
// is dropped and counted.
type queue struct {
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
	// dropped is how many were dropped, or panicked, which were not reported yet;
	// panicked is the value of the last panic, and toldAt the time of the last report.
	dropped  int
	panicked any
	toldAt   time.Time
}

// add appends a function. dropped tells of those that were dropped, when the queue moves
// again; it may block and panic like them.
func (l *queue) add(f func(), dropped func(n int, panicked any)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= queueLimit {
		l.dropped++
		return
	}
	l.waiting = append(l.waiting, f)
	switch {
	case l.ended != nil && len(l.waiting) < queueLimit/4:
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
func (l *queue) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startNow()
}

// startNow starts the goroutine that was to start later; mu is held.
func (l *queue) startNow() {
	l.hurried = true
	if l.timer != nil && l.timer.Stop() {
		go l.run()
	}
	l.timer = nil
}

func (l *queue) runAll(dropped func(n int, panicked any)) {
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
func (l *queue) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer, l.hurried, l.round = nil, false, len(l.waiting)
}

// next takes out the next function; nil ends the goroutine.
func (l *queue) next() func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.waiting) == 0:
		l.waiting = nil
		close(l.ended)
		l.ended, l.draining = nil, false
		return nil
	case l.round == 0 && l.linger > 0 && !l.hurried && !l.draining && len(l.waiting) < queueLimit/4:
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
func (l *queue) try(f func(), n int) (returned bool) {
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

// untold is what is to be reported now.
func (l *queue) untold() (n int, panicked any) {
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
func (l *queue) idle() <-chan struct{} {
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
