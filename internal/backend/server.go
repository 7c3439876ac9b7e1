package backend

import (
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Server is one Redis, as backends use it: a single server or a cluster.
type Server struct {
	// System is the user of the server.
	System System

	redis  *redisio.Redis
	prefix string
	// callTimeout is how long a call in the background may take.
	callTimeout time.Duration
	// quarantine is how old the server's memory must be known to be, else it has no vote.
	quarantine time.Duration

	memory   memory
	silence  silence
	cleanups cleanups
	// record says who the System is; nil if it does not say so.
	record *record
	// leftUntil is when the last key expires whose release has failed for good.
	leftUntil atomic.Int64
}

// System is the user of a Server. Now returns the time on its clock.
type System interface {
	Now() lock.Instant
}

// Config is how a system uses its Redis.
type Config struct {
	// KeyPrefix is put before every lock's name.
	KeyPrefix string
	// CallTimeout is how long Redis may take to answer.
	CallTimeout time.Duration
	// Quarantine is how old the memory of one of a RedLock's servers must be known to be,
	// else it has no vote.
	Quarantine time.Duration
}

// NewServer returns a Server and starts nothing yet. The caller closes the Redis.
func NewServer(system System, redis *redisio.Redis, cfg Config) *Server {
	s := &Server{
		System: system, redis: redis, prefix: cfg.KeyPrefix, quarantine: cfg.Quarantine,
		callTimeout: max(cfg.CallTimeout, time.Second), // nobody waits for what goes on in the background
	}
	s.cleanups.server = s
	return s
}

// LeaveToExpire records that a key may stay in Redis until then, and is not released.
func (s *Server) LeaveToExpire(until lock.Instant) {
	for {
		last := s.leftUntil.Load()
		if int64(until) <= last || s.leftUntil.CompareAndSwap(last, int64(until)) {
			return
		}
	}
}

// Released reports whether no key is left to expire, as far as is known here.
func (s *Server) Released() bool {
	return s.cleanups.complete() && int64(s.System.Now()) >= s.leftUntil.Load()
}

// Close ends the background work. It sends the remaining releases once more, and waits for them
// until done. When the Redis is closed as well, no goroutine is left.
func (s *Server) Close(done <-chan struct{}) {
	s.silence.close()
	s.cleanups.close(done)
}
