package actors

import (
	"slices"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// cleanups are the releases that one server has not confirmed though the lock, which is made
// of several, is released as a whole. Each is sent again until the server confirms it, or the
// TTL is over. While the server does not answer, only a few of them are sent at a time,
// however many there are.
type cleanups struct {
	rt *Runtime

	mu    sync.Mutex // guards what follows
	queue []cleanup
	// running: a round is under way, or the timer will start one.
	running bool
	timer   *time.Timer
	// sent is how many are under way.
	sent   int
	closed bool
}

// cleanup is an owner whose term is over, but who may hold the lock on the leaf's server
// until then.
type cleanup struct {
	leaf  *leaf
	owner string
	until core.Instant
}

const (
	// cleanupPause lies between two rounds while nothing is confirmed.
	cleanupPause = 200 * time.Millisecond
	// cleanupBatch is how many are sent in one round.
	cleanupBatch = 64
	// cleanupTime is how long one try may take.
	cleanupTime = time.Second
)

// failed reports whether the release with that verdict has to go on as a cleanup, if nobody
// else repeats it. One that was refused for good is tried once more, and left behind then:
// Close must know of it.
func (v verdict) failed() bool { return v.Outcome == core.Failed }

// add takes a release that has just failed. It is sent again after a pause.
func (k *cleanups) add(c cleanup) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue = append(k.queue, c) // after close as well: it is what is left then
	k.next(cleanupPause)
}

// next has a round begin after a pause, if one is needed; the caller holds the lock.
func (k *cleanups) next(pause time.Duration) {
	if k.running || k.closed || len(k.queue) == 0 {
		return
	}
	k.running = true
	k.timer = time.AfterFunc(pause, k.round)
}

// round sends the first of the queue; those that fail go to its end.
func (k *cleanups) round() {
	k.mu.Lock()
	batch := k.take(cleanupBatch, k.rt.Now())
	k.mu.Unlock()
	k.send(batch, func(confirmed bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.running = false
		if confirmed { // the server answers again
			k.next(0)
		} else {
			k.next(cleanupPause)
		}
	})
}

// take removes up to n of those that still matter; the caller holds the lock.
func (k *cleanups) take(n int, now core.Instant) (batch []cleanup) {
	seen := 0
	for _, c := range k.queue {
		if len(batch) == n {
			break
		}
		if seen++; now < c.until {
			batch = append(batch, c)
		}
	}
	if k.queue = k.queue[seen:]; len(k.queue) == 0 {
		k.queue = nil
	}
	k.sent += len(batch)
	return batch
}

// send tries a batch, and says when all are answered whether any of them was confirmed.
func (k *cleanups) send(batch []cleanup, done func(confirmed bool)) {
	if len(batch) == 0 {
		done(false)
		return
	}
	g := &gather[bool]{n: len(batch), judge: atLast(func(owed []bool) {
		done(slices.Contains(owed, false))
	})}
	deadline := time.Now().Add(cleanupTime)
	for _, c := range batch {
		c.leaf.release(c.owner, deadline, func(v verdict) {
			g.add(k.answered(c, v))
		})
	}
}

func (k *cleanups) answered(c cleanup, v verdict) (owed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sent--
	owed = v.failed() && v.Transient
	if owed {
		k.queue = append(k.queue, c)
	} else if v.failed() {
		k.rt.leaveBehind(c.until)
	}
	return owed
}

// close ends the rounds. What is left is sent once more, and waited for until done.
func (k *cleanups) close(done <-chan struct{}) {
	k.mu.Lock()
	k.closed = true
	if k.timer != nil {
		k.timer.Stop()
	}
	batch := k.take(len(k.queue), k.rt.Now())
	k.mu.Unlock()
	answered := make(chan struct{})
	k.send(batch, func(bool) { close(answered) })
	select {
	case <-answered:
	case <-done:
	}
}

// complete reports whether nothing is left that may have to expire.
func (k *cleanups) complete() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.queue)+k.sent == 0
}
