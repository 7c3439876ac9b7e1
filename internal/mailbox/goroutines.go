package mailbox

import (
	"sync"
	"time"
)

// Goroutines runs mailboxes on goroutines that stay for a while when they are idle. A fresh goroutine would have to
// grow its stack for every message, which takes longer than handling the message.
type Goroutines struct {
	mu      sync.Mutex
	idle    []chan func() // the last to become idle comes first: its stack is in the cache
	members int
	closed  bool
}

const (
	// maxIdle is the number of goroutines that stay. Further goroutines are started when needed, and end after one job.
	maxIdle = 8
	// goroutineIdle is the time that a goroutine stays idle.
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
	stays := k.members < maxIdle && !k.closed
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

// Throughput implements actor.Dispatcher; the mailboxes of this package do not use it.
func (k *Goroutines) Throughput() int { return 0 }

func (k *Goroutines) work(job func()) {
	jobs := make(chan func(), 1)
	timer := time.NewTimer(goroutineIdle)
	defer timer.Stop()
	for {
		job()
		if !k.park(jobs) {
			return
		}
		timer.Reset(goroutineIdle)
		select {
		case job = <-jobs:
		case <-timer.C:
			if k.retire(jobs) {
				return
			}
			job = <-jobs // Schedule chose it at the last moment
		}
		if job == nil {
			return
		}
	}
}

// park makes an idle goroutine available to Schedule, unless the pool is closed.
func (k *Goroutines) park(jobs chan func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		k.members--
		return false
	}
	k.idle = append(k.idle, jobs)
	return true
}

// retire removes a goroutine that was idle for long. It reports false if Schedule has just chosen it.
func (k *Goroutines) retire(jobs chan func()) bool {
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

// Close ends the idle goroutines; the others end after their jobs.
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
