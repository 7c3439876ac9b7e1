package backend

import (
	"errors"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// silence records whether a server answers, for locks on several servers. A server that has not answered a call by its
// deadline, or within half a second, is silent. It is probed in the background until it answers. A cluster is never
// silent, since only some of its servers may be.
type silence struct {
	mu     sync.Mutex // guards what follows
	silent bool
	// took is how long the slowest of the last answers took; 0 before the first.
	took time.Duration
	// timer starts the next probe. closed: there are no more probes.
	timer  *time.Timer
	closed bool
}

const (
	// probePause is the pause between two probes.
	probePause = 100 * time.Millisecond
	// minTimeout is the time that a server has at least to answer while locks on others are held.
	minTimeout = 500 * time.Millisecond
)

// errSilent is the error of a server that was skipped.
var errSilent = redisio.Classify(errors.New("the server has not answered for a while"))

// skipped is the reply for a server that was skipped.
var skipped = Reply{Result: lock.Result{Outcome: lock.Failed, Transient: true, Err: errSilent}}

// isSilent reports whether the server has stopped answering.
func (s *Server) isSilent() bool {
	s.silence.mu.Lock()
	defer s.silence.mu.Unlock()
	return s.silence.silent
}

// answerBy returns by when the server should answer a call that is sent now, judging by its last answers.
func (s *Server) answerBy(now, deadline time.Time) time.Time {
	s.silence.mu.Lock()
	took := s.silence.took
	s.silence.mu.Unlock()
	soon := now.Add(max(minTimeout, 8*took))
	if took == 0 || deadline.Before(soon) {
		return deadline
	}
	return soon
}

// watched wraps the done of a call, and records whether the server has answered.
func (s *single) watched(deadline time.Time, done func(Reply)) func(Reply) {
	sent := time.Now()
	return func(r Reply) {
		took := time.Since(sent)
		late := !time.Now().Before(deadline) || took >= minTimeout // or the client has closed its connection
		switch {
		case r.Outcome != lock.Failed:
			s.server.silence.answered(took)
		case late && r.Transient:
			s.noteSilent()
		}
		done(r)
	}
}

// noteSilent records that the server has not answered in time, and probes it.
func (s *single) noteSilent() {
	if !s.server.redis.Cluster() && s.server.silence.begin() {
		s.probe()
	}
}

// begin marks the server as silent, and reports whether it was not.
func (k *silence) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.silent || k.closed {
		return false
	}
	k.silent = true
	return true
}

func (k *silence) answered(took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silent, k.took = false, max(took, k.took-k.took/8)
}

// probe inspects the lock repeatedly until the server answers.
func (s *single) probe() {
	sent := time.Now()
	deadline := sent.Add(s.server.callTimeout)
	s.Inspect(deadline, func(_ protocol.View, err error) {
		failure := redisio.Classify(err)
		if err == nil || !failure.Unsure && time.Now().Before(deadline) {
			s.server.silence.answered(time.Since(sent))
		} else {
			s.server.silence.again(s.probe)
		}
	})
}

func (k *silence) again(probe func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.silent && !k.closed {
		k.timer = time.AfterFunc(probePause, probe)
	}
}

// close ends the probes.
func (k *silence) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed, k.silent = true, false
	if k.timer != nil {
		k.timer.Stop()
	}
}
