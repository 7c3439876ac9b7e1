package backend

import (
	"slices"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// cleanups are the releases that one server has not confirmed and no request waits for: of a lock that was abandoned,
// or of a part while its MultiLock counts as released. Each release is sent again until the server confirms it, or the
// TTL has passed. While the server does not answer, only a few releases are sent at a time.
type cleanups struct {
	server *Server

	mu    sync.Mutex // guards the fields below
	queue []cleanup
	// running: a round is in progress, or the timer will start one.
	running bool
	timer   *time.Timer
	// sent is the number of releases without an answer yet.
	sent   int
	closed bool
}

// cleanup releases what an ended term may still hold. It is tried until a point in time.
type cleanup struct {
	try   attempt
	until machine.Instant
	// done gets the outcome, unless it is nil.
	done func(certain bool)
}

// attempt sends a release once. It calls done once, on any goroutine: a release that has failed may be repeated if the
// failure is transient.
type attempt func(deadline time.Time, done func(failed, transient bool))

// outcomeTo returns a function that passes the outcome of a reply to the done of an attempt.
func outcomeTo(done func(failed, transient bool)) func(Reply) {
	return func(r Reply) { done(r.failed(), r.Transient) }
}

// cleanup makes a cleanup of what Redis keeps for ttl from now on.
func (s *Server) cleanup(try attempt, ttl time.Duration, done func(certain bool)) cleanup {
	return cleanup{try: try, until: s.clock.Now() + ttl, done: done}
}

const (
	// cleanupPause is the pause between two rounds while nothing is confirmed.
	cleanupPause = 200 * time.Millisecond
	// cleanupBatch is the number of releases in one round.
	cleanupBatch = 64
)

// start adds a release and sends it at once.
func (k *cleanups) start(c cleanup) {
	k.mu.Lock()
	k.sent++
	k.mu.Unlock()
	k.send([]cleanup{c}, func(confirmed bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.scheduleRound(cleanupPause)
	})
}

// add adds a release that has just failed. It is sent again after a pause.
func (k *cleanups) add(c cleanup) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue = append(k.queue, c) // even after close: complete then reports it
	k.scheduleRound(cleanupPause)
}

// scheduleRound schedules a round after a pause if one is needed; the caller holds the mutex.
func (k *cleanups) scheduleRound(pause time.Duration) {
	if k.running || k.closed || len(k.queue) == 0 {
		return
	}
	k.running = true
	k.timer = time.AfterFunc(pause, k.sendRound)
}

// sendRound sends the first releases of the queue; those that fail go to its end.
func (k *cleanups) sendRound() {
	k.mu.Lock()
	batch := k.take(cleanupBatch)
	k.mu.Unlock()
	k.send(batch, func(confirmed bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.running = false
		if confirmed { // the server answers again
			k.scheduleRound(0)
		} else {
			k.scheduleRound(cleanupPause)
		}
	})
}

// take removes the first n; the caller holds the mutex.
func (k *cleanups) take(n int) []cleanup {
	n = min(n, len(k.queue))
	batch := k.queue[:n:n]
	if k.queue = k.queue[n:]; len(k.queue) == 0 {
		k.queue = nil
	}
	k.sent += n
	return batch
}

// send sends a batch, and at the end reports whether any release was confirmed.
func (k *cleanups) send(batch []cleanup, done func(confirmed bool)) {
	if len(batch) == 0 {
		done(false)
		return
	}
	all := &collect[bool]{n: len(batch), judge: whenAll(func(retry []bool) { done(slices.Contains(retry, false)) })}
	deadline := time.Now().Add(k.server.callTimeout)
	for _, c := range batch {
		if k.server.clock.Now() >= c.until { // the key has expired
			all.add(k.handleOutcome(c, false, false))
			continue
		}
		c.try(deadline, func(failed, transient bool) { all.add(k.handleOutcome(c, failed, transient)) })
	}
}

// handleOutcome handles the outcome of an attempt, and reports whether the release must be retried.
func (k *cleanups) handleOutcome(c cleanup, failed, transient bool) (retry bool) {
	k.mu.Lock()
	k.sent--
	if retry = failed && transient && !k.closed; retry {
		k.queue = append(k.queue, c)
	}
	k.mu.Unlock()
	if failed && !retry {
		k.server.LeaveToExpire(c.until)
	}
	if !retry && c.done != nil {
		c.done(!failed)
	}
	return retry
}

// close ends the rounds. It sends the remaining releases once more, and waits for them until
// done.
func (k *cleanups) close(done <-chan struct{}) {
	k.mu.Lock()
	k.closed = true
	if k.timer != nil {
		k.timer.Stop()
	}
	batch := k.take(len(k.queue))
	k.mu.Unlock()
	answered := make(chan struct{})
	k.send(batch, func(bool) { close(answered) })
	select {
	case <-answered:
	case <-done:
	}
}

// complete reports whether no release is left.
func (k *cleanups) complete() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.queue)+k.sent == 0
}
