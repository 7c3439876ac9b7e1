package backend

import (
	"errors"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// silence is what the locks on several servers know of whether one of them answers. A server that has
// let the deadline of a call pass, or half a second, is silent. It is asked in the background, and is silent no more when
// it answers. A cluster is never silent, since only some of its servers may be.
type silence struct {
	mu     sync.Mutex // guards what follows
	silent bool
	// took is how long the last answers took; 0 before the first.
	took time.Duration
	// timer starts the next probe. closed: there is none any more.
	timer  *time.Timer
	closed bool
}

const (
	// probePause lies between two probes.
	probePause = 100 * time.Millisecond
	// leastPatience is how long a server has at least to answer while locks on others are held.
	leastPatience = 500 * time.Millisecond
)

// errSilent is why a server was not asked.
var errSilent = redisio.Sort(errors.New("the server has not answered for a while"))

// notAsked is the reply for a server that was not asked.
var notAsked = Reply{Result: lock.Result{Outcome: lock.Failed, Transient: true, Err: errSilent}}

// isSilent reports whether the server has ceased to answer.
func (s *Server) isSilent() bool {
	s.silence.mu.Lock()
	defer s.silence.mu.Unlock()
	return s.silence.silent
}

// patience is by when the server should answer, judging by its last answers.
func (s *Server) patience(deadline time.Time) time.Time {
	s.silence.mu.Lock()
	took := s.silence.took
	s.silence.mu.Unlock()
	soon := time.Now().Add(max(leastPatience, 8*took))
	if took == 0 || deadline.Before(soon) {
		return deadline
	}
	return soon
}

// heard makes the done of a call take note of whether the server has answered.
func (s *single) heard(deadline time.Time, done func(Reply)) func(Reply) {
	sent := time.Now()
	return func(r Reply) {
		took := time.Since(sent)
		late := !time.Now().Before(deadline) || took >= leastPatience // or the client has given up its connection
		switch {
		case r.Outcome != lock.Failed:
			s.server.silence.answered(took)
		case late && r.Transient && !s.server.redis.Cluster() && s.server.silence.begin():
			s.probe()
		}
		done(r)
	}
}

// begin makes the server silent, and reports whether it was not.
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

// probe looks at the lock, again and again until the server says something.
func (s *single) probe() {
	sent := time.Now()
	deadline := sent.Add(s.server.callTimeout)
	s.Inspect(deadline, func(_ protocol.View, err error) {
		refusal := redisio.Sort(err)
		if err == nil || !refusal.Unsure && time.Now().Before(deadline) {
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
