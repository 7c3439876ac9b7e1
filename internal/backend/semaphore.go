package backend

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
)

// PermitReceiver is the user of a Semaphore.
type PermitReceiver interface {
	// Replied gets the reply to the command of that number, once, on any goroutine. It must not block.
	Replied(number uint64, r semaphore.Result)
}

// Semaphore stores a semaphore or a latch, for one PermitReceiver. Its methods may be called on any goroutine, and do
// not block.
type Semaphore struct {
	server *Server
	wire   wire
	// channel is the channel of the permits, or of the latch.
	channel string
	// waiters is the channel to which a waiter also subscribes; "" for a latch.
	waiters string
	to      PermitReceiver
}

// wire makes the calls of a Semaphore's commands.
type wire interface {
	recorder
	Call(*semaphore.Command, time.Time) redisclient.Call
}

// NewSemaphore returns the semaphore of that name on one Redis, for a client.
func NewSemaphore(s *Server, name, client string, options *protocol.Options, to PermitReceiver) *Semaphore {
	permits := protocol.NewSemaphore(s.prefix+name, client, options)
	return &Semaphore{server: s, wire: permits, channel: permits.Channel, waiters: permits.Waiters(), to: to}
}

// NewLatch returns the latch of that name on one Redis, for a client.
func NewLatch(s *Server, name, client string, to PermitReceiver) *Semaphore {
	latch := protocol.NewLatch(s.prefix+name, client)
	return &Semaphore{server: s, wire: latch, channel: latch.Channel, to: to}
}

// Run carries out a command by the deadline, and delivers the reply to the PermitReceiver.
func (s *Semaphore) Run(c semaphore.Command, deadline time.Time) {
	call := s.wire.Call(&c, deadline)
	call.To = receive(func(number uint64, reply redisclient.Reply) { s.to.Replied(number, protocol.ReadNumbers(reply)) })
	s.server.redis.Run(call)
}

// DeleteRecord removes the record of the client's last command from Redis, unless the record has a later number. If
// that fails, the record expires.
func (s *Semaphore) DeleteRecord(number uint64) {
	s.server.deleteRecord(s.wire, number)
}

// recorder makes the call that removes the record of a command.
type recorder interface {
	DeleteRecord(number uint64, deadline time.Time) redisclient.Call
}

func (s *Server) deleteRecord(of recorder, number uint64) {
	call := of.DeleteRecord(number, time.Now().Add(s.callTimeout))
	call.To = receive(func(uint64, redisclient.Reply) {})
	s.redis.Run(call)
}

// Channel returns the channel on which a waiter is notified of permits.
func (s *Semaphore) Channel() Channel {
	return Channel{Server: s.server, Name: s.channel, Waiters: s.waiters}
}
