package backend

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// ExpirableSemaphore stores an expirable semaphore on one Redis.
type ExpirableSemaphore struct {
	server  *Server
	permits *protocol.ExpirableSemaphore
}

// NewExpirableSemaphore returns the expirable semaphore of that name. client is the client part of an owner field.
func NewExpirableSemaphore(s *Server, name, client string) *ExpirableSemaphore {
	return &ExpirableSemaphore{server: s, permits: protocol.NewExpirableSemaphore(s.prefix+name, client)}
}

// Run carries out a command by the deadline; the reply to a renewal may come after the deadline. It calls done once, on
// any goroutine; done must not block. lend may take over the call.
func (s *ExpirableSemaphore) Run(c *expirable.Command, deadline time.Time, lend func(redisclient.Call) bool, done func(expirable.Result)) {
	if c.Kind == expirable.Renew {
		deadline = s.server.redis.RenewalDeadline(deadline, deadline.Add(c.Latest-c.Deadline))
	}
	call := s.permits.Call(c, deadline)
	call.To = receive(func(_ uint64, reply redisclient.Reply) { done(protocol.ReadExpirable(c, reply)) })
	if !lend(call) {
		s.server.redis.Run(call)
	}
}

// DeleteRecord is like Semaphore.DeleteRecord.
func (s *ExpirableSemaphore) DeleteRecord(number uint64) { s.server.deleteRecord(s.permits, number) }

// Inspect is like Backend.Inspect.
func (s *ExpirableSemaphore) Inspect(deadline time.Time, done func(protocol.View, error)) {
	call := s.permits.Inspect(deadline)
	call.To = receive(func(_ uint64, reply redisclient.Reply) {
		done(protocol.ViewExpirable(reply))
	})
	s.server.redis.Run(call)
}

// Channels is like Backend.Channels.
func (s *ExpirableSemaphore) Channels(uint64) []Channel {
	return []Channel{{Server: s.server, Name: s.permits.Channel}}
}

// CleanUp repeats a Release in the background until it is certain that the permits are free, or ttl has passed; see
// Backend.CleanUp.
func (s *ExpirableSemaphore) CleanUp(c expirable.Command, ttl time.Duration, done func(certain bool)) {
	try := func(deadline time.Time, done func(failed, transient bool)) {
		never := func(redisclient.Call) bool { return false }
		s.Run(&c, deadline, never, func(r expirable.Result) { done(r.Err != nil, r.Transient) })
	}
	s.server.cleanups.start(s.server.cleanup(try, ttl, done))
}
