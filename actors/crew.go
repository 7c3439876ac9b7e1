package actors

import (
	"sync"
	"time"
)

// crew runs mailboxes on goroutines that stay for a while when they have nothing to do. A
// fresh goroutine would have to grow its stack for every message, which takes longer than
// to handle it.
type crew struct {
	mu      sync.Mutex
	idle    []chan func() // the last to become idle comes first: its stack is in the cache
	members int
	closed  bool
}

const (
	// crewSize is how many goroutines stay. More come and go when needed.
	crewSize = 8
	// crewPatience is how long they stay.
	crewPatience = time.Second
)

// Schedule implements actor.Dispatcher.
func (k *crew) Schedule(job func()) {
	k.mu.Lock()
	if n := len(k.idle); n > 0 {
		next := k.idle[n-1]
		k.idle = k.idle[:n-1]
		k.mu.Unlock()
		next <- job
		return
	}
	stays := k.members < crewSize && !k.closed
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
func (k *crew) Throughput() int { return 0 }

func (k *crew) work(job func()) {
	jobs := make(chan func(), 1)
	patience := time.NewTimer(crewPatience)
	defer patience.Stop()
	for {
		job()
		if !k.rest(jobs) {
			return
		}
		patience.Reset(crewPatience)
		select {
		case job = <-jobs:
		case <-patience.C:
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

// rest puts an idle member at the disposal of Schedule, unless the crew is closed.
func (k *crew) rest(jobs chan func()) bool {
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
func (k *crew) leave(jobs chan func()) bool {
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

// close ends those who are idle; the others end with their jobs.
func (k *crew) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, each := range k.idle {
		each <- nil
	}
	k.members -= len(k.idle)
	k.idle = nil
}
