package backend

import (
	"errors"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// health records whether a server answers, for locks on several servers. A server that has not answered a call by its
// deadline, or within half a second, is silent. It is probed in the background until it answers. A cluster is never
// silent, since only some of its servers may be down.
type health struct {
	mu     sync.Mutex // guards the fields below
	silent bool
	// took is the time that the slowest of the last answers took; 0 before the first.
	took time.Duration
	// timer starts the next probe.
	timer *time.Timer
	// closed: no further probes are made.
	closed bool
}

const (
	// probePause is the pause between two probes.
	probePause = 100 * time.Millisecond
	// minTimeout is the shortest time that a server has to answer while locks on other servers are held.
	minTimeout = 500 * time.Millisecond
)

// errSilent is the error of a server that was skipped.
var errSilent = redisio.Classify(errors.New("the server has not answered for a while"))

// skipped is the reply for a server that was skipped.
var skipped = Reply{Result: lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Transient: true, Err: errSilent}}}

// isSilent reports whether the server has stopped answering.
func (s *Server) isSilent() bool {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.silent
}

// answerBy returns the time by which the server should answer a call that is sent now, judging by its last answers.
func (s *Server) answerBy(now, deadline time.Time) time.Time {
	s.health.mu.Lock()
	took := s.health.took
	s.health.mu.Unlock()
	soon := now.Add(max(minTimeout, 8*took))
	if took == 0 || deadline.Before(soon) {
		return deadline
	}
	return soon
}

// timeAnswer wraps the done of a call. It records whether the server has answered, and how long the answer took.
func (s *serverLock) timeAnswer(deadline time.Time, done func(Reply)) func(Reply) {
	sent := time.Now()
	return func(r Reply) {
		took := time.Since(sent)
		late := !time.Now().Before(deadline) || took >= minTimeout // or the client has closed its connection
		switch {
		case r.Outcome != lock.Failed:
			s.server.health.noteAnswer(took)
		case late && r.Transient:
			s.noteSilent()
		}
		done(r)
	}
}

// noteSilent records that the server has not answered in time, and probes it.
func (s *serverLock) noteSilent() {
	if !s.server.redis.Cluster() && s.server.health.markSilent() {
		s.probe()
	}
}

// markSilent marks the server as silent, and reports whether it was not silent before.
func (h *health) markSilent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent || h.closed {
		return false
	}
	h.silent = true
	return true
}

func (h *health) noteAnswer(took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent, h.took = false, max(took, h.took-h.took/8)
}

// probe inspects the lock repeatedly until the server answers.
func (s *serverLock) probe() {
	sent := time.Now()
	deadline := sent.Add(s.server.callTimeout)
	s.Inspect(deadline, func(_ protocol.View, err error) {
		failure := redisio.Classify(err)
		if err == nil || !failure.Unsure && time.Now().Before(deadline) {
			s.server.health.noteAnswer(time.Since(sent))
		} else {
			s.server.health.probeLater(s.probe)
		}
	})
}

func (h *health) probeLater(probe func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent && !h.closed {
		h.timer = time.AfterFunc(probePause, probe)
	}
}

// close ends the probes.
func (h *health) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed, h.silent = true, false
	if h.timer != nil {
		h.timer.Stop()
	}
}
