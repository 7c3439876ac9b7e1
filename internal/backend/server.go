package backend

import (
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// Server is one Redis, a single server or a cluster.
type Server struct {
	// User is Config.User.
	User any

	clock  Clock
	redis  *redisclient.Redis
	prefix string
	// tokenCounter is Config.TokenCounter.
	tokenCounter string
	// callTimeout bounds a call in the background.
	callTimeout time.Duration
	// quarantine is the age that the server's memory must have for it to vote.
	quarantine time.Duration

	memory   memory
	health   health
	cleanups cleanups
	counters counters
	// record describes the System in Redis; nil if the System keeps no record.
	record *record
	// leftoversExpireAt is the time at which the last key expires whose release has failed permanently.
	leftoversExpireAt atomic.Int64
}

// Clock is the clock of the user of a Server.
type Clock interface {
	Now() machine.Instant
}

// Config are the settings of a Server.
type Config struct {
	// User is the system that uses the Server; code that has only the Server finds its system here.
	User any
	// KeyPrefix is the prefix of the key of every lock.
	KeyPrefix string
	// CallTimeout is the time that Redis may take to answer.
	CallTimeout time.Duration
	// Quarantine is the age that the memory of a RedLock's server must have for it to vote.
	Quarantine time.Duration
	// TokenCounter is the key of the token counter of all fenced locks; "" if each lock has its own counter.
	TokenCounter string
	// KeepTokens is the time for which the highest token of a counter is known after its last use.
	KeepTokens time.Duration
}

// NewServer returns a Server. It starts no goroutine. The caller closes the Redis.
func NewServer(clock Clock, redis *redisclient.Redis, cfg Config) *Server {
	s := &Server{
		User: cfg.User, clock: clock, redis: redis, prefix: cfg.KeyPrefix, tokenCounter: cfg.TokenCounter, quarantine: cfg.Quarantine,
		callTimeout: max(cfg.CallTimeout, time.Second), // no request waits for background calls
	}
	s.cleanups.server, s.counters.keepFor = s, cfg.KeepTokens
	return s
}

// lock returns the lock of a form and name on this Server.
func (s *Server) lock(form *forms.Form, name string, options *protocol.Options) *protocol.Lock {
	l := protocol.New(form, s.prefix+name, options)
	if l.Tokens != "" && s.tokenCounter != "" {
		l.Tokens = s.tokenCounter
	}
	return l
}

// LeaveToExpire records that a key may stay in Redis until a time.
func (s *Server) LeaveToExpire(until machine.Instant) {
	for {
		last := s.leftoversExpireAt.Load()
		if int64(until) <= last || s.leftoversExpireAt.CompareAndSwap(last, int64(until)) {
			return
		}
	}
}

// Released reports whether no key of this Server is left to expire.
func (s *Server) Released() bool {
	return s.cleanups.complete() && int64(s.clock.Now()) >= s.leftoversExpireAt.Load()
}

// Close ends the background work. It sends the remaining releases once more, and waits for them until done. When the
// Redis is closed, too, no goroutine is left.
func (s *Server) Close(done <-chan struct{}) {
	s.health.close()
	s.cleanups.close(done)
}
