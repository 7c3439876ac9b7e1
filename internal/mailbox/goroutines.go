package mailbox

import (
	"sync"
	"time"
)

// Goroutines run mailboxes, and stay for a while when they have nothing to do. A
// fresh goroutine would have to grow its stack for every message, which takes longer than
// to handle it.
type Goroutines struct {
	mu      sync.Mutex
	idle    []chan func() // the last to become idle comes first: its stack is in the cache
	members int
	closed  bool
}

const (
	// mostGoroutines is how many goroutines stay. More come and go when needed.
	mostGoroutines = 8
	// goroutineIdle is how long they stay.
	goroutineIdle = time.Second
)

// Schedule implements actor.Dispatcher.
func (k *Goroutines) Schedule(job func()) {
	k.mu.Lock()
	if n := len(k.idle); n > 0 {
		next := k.idle[n-1]
		k.idle = k.idle[:n-1]
		k.mu.Unlock()
		next <- job
		return
	}
	stays := k.members < mostGoroutines && !k.closed
	if stays {
		k.members++
	}
	k.mu.Unlock()
	if stays {
		go k.work(job)
	} else {
		go job()
	}
}

// Throughput implements actor.Dispatcher; our mailboxes do not ask for it.
func (k *Goroutines) Throughput() int { return 0 }

func (k *Goroutines) work(job func()) {
	jobs := make(chan func(), 1)
	timer := time.NewTimer(goroutineIdle)
	defer timer.Stop()
	for {
		job()
		if !k.rest(jobs) {
			return
		}
		timer.Reset(goroutineIdle)
		select {
		case job = <-jobs:
		case <-timer.C:
			if k.leave(jobs) {
				return
			}
			job = <-jobs // it was chosen at the last moment
		}
		if job == nil {
			return
		}
	}
}

// rest puts an idle member at the disposal of Schedule, unless all are to end.
func (k *Goroutines) rest(jobs chan func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		k.members--
		return false
	}
	k.idle = append(k.idle, jobs)
	return true
}

// leave takes a member out that was idle for long; it reports whether that is so still.
func (k *Goroutines) leave(jobs chan func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, each := range k.idle {
		if each == jobs {
			k.idle = append(k.idle[:i], k.idle[i+1:]...)
			k.members--
			return true
		}
	}
	return false
}

// Close ends those who are idle; the others end with their jobs.
func (k *Goroutines) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, each := range k.idle {
		each <- nil
	}
	k.members -= len(k.idle)
	k.idle = nil
}
