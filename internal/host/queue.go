package host

import (
	"sync"
	"time"
)

const (
	// queueLimit bounds the functions that wait in a queue.
	queueLimit = 1024
	// batchDelay is the time that a measurement or a span may wait for others. With a timer every 10 ms, even a timer
	// that does nothing, one goroutine on one core locked a tenth less often.
	batchDelay = 250 * time.Millisecond
	// reportInterval is the shortest time between two reports of what a queue has dropped.
	reportInterval = time.Second
)

// queue runs functions one after another, on a goroutine that exists while functions wait. It never blocks the caller
// that adds a function: when a function blocks for long, functions that are added behind it are dropped and counted.
type queue struct {
	// batchDelay is the time from the first function to the start of the goroutine, unless flushNow is called
	// or many functions wait. The goroutine ends when it has run the functions that waited at its start:
	// functions that are added meanwhile wait for another batchDelay.
	batchDelay time.Duration

	mu      sync.Mutex // guards the fields below
	waiting []func()
	ended   chan struct{} // closed when the goroutine ends; nil while nothing waits or runs
	// timer starts the goroutine with run; nil if it has started it.
	timer *time.Timer
	run   func()
	// immediate: functions that are added before the round begins do not wait for batchDelay.
	immediate bool
	// immediateUntilEnd: no function waits for batchDelay until the goroutine ends.
	immediateUntilEnd bool
	// round is the number of waiting functions that run before the goroutine may end and wait for batchDelay.
	round int
	// dropped is the number of functions that were dropped, or panicked, and are not reported yet.
	dropped int
	// panicked is the value of the last panic.
	panicked any
	// reportedAt is the time of the last report.
	reportedAt time.Time
}

// add appends a function. dropped reports the functions that were dropped, when the queue moves again; it may block and
// panic like them.
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
		if l.batchDelay == 0 {
			go l.run()
		} else {
			l.timer = time.AfterFunc(l.batchDelay, l.run)
		}
	}
}

// flushNow starts the goroutine without the rest of batchDelay.
func (l *queue) flushNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.startNow()
}

// startNow starts the goroutine that was to start later; mu is held.
func (l *queue) startNow() {
	l.immediate = true
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
		if n, panicked := l.takeUnreported(); n > 0 {
			l.try(func() { dropped(n, panicked) }, n)
		}
	}
}

// begin begins a round with all functions that wait.
func (l *queue) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer, l.immediate, l.round = nil, false, len(l.waiting)
}

// next takes out the next function; nil ends the goroutine.
func (l *queue) next() func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.waiting) == 0:
		l.waiting = nil
		close(l.ended)
		l.ended, l.immediateUntilEnd = nil, false
		return nil
	case l.round == 0 && l.batchDelay > 0 && !l.immediate && !l.immediateUntilEnd && len(l.waiting) < queueLimit/4:
		l.timer = time.AfterFunc(l.batchDelay, l.run)
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

// takeUnreported returns the drops and the panic to report now, and counts them as reported.
func (l *queue) takeUnreported() (n int, panicked any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped == 0 || time.Since(l.reportedAt) < reportInterval {
		return 0, nil
	}
	n, panicked = l.dropped, l.panicked
	l.dropped, l.panicked, l.reportedAt = 0, nil, time.Now()
	return n, panicked
}

// emptied returns a channel that is closed when nothing waits or runs. Until then no function waits for batchDelay.
func (l *queue) emptied() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		return closed
	}
	l.immediateUntilEnd = true
	l.startNow()
	return l.ended
}

// closed is a closed channel.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
