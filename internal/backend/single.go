package backend

import (
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// serverLock is a lock with one key, on one Server. The types single and member embed it.
type serverLock struct {
	server *Server
	lock   *protocol.Lock
	mu     sync.Mutex // guards the making of calls
}

// call makes the call of a command, whose reply goes to the receiver.
func (s *serverLock) call(c *lock.Command, deadline time.Time, to redisclient.Receiver) redisclient.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.lock.Call(c, deadline)
	call.To = to
	return call
}

// renew sends a renewal, which shares a script with other renewals. Its reply may come after the deadline.
func (s *serverLock) renew(c *lock.Command, deadline time.Time, to redisclient.Receiver) {
	deadline = s.server.redis.RenewalDeadline(deadline, deadline.Add(c.Latest-c.Deadline))
	s.mu.Lock()
	renewal := s.lock.Renewal(c, deadline)
	s.mu.Unlock()
	renewal.To = to
	s.server.redis.Renew(renewal)
}

// Inspect implements Backend.
func (s *serverLock) Inspect(deadline time.Time, done func(protocol.View, error)) {
	call := s.lock.Inspect(deadline)
	call.To = receive(func(_ uint64, reply redisclient.Reply) {
		if reply.Err != nil {
			done(protocol.View{}, reply.Err)
			return
		}
		done(s.lock.View(reply), nil)
	})
	s.server.redis.Run(call)
}

// Channels implements Backend.
func (s *serverLock) Channels(term uint64) []Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []Channel{{s.server, s.lock.ChannelOf(term), s.lock.Waiters()}}
}

func (s *serverLock) channels() []Channel {
	return []Channel{{s.server, s.lock.Channel, s.lock.Waiters()}}
}

// attempt returns the attempt of a cleanup.
func (s *serverLock) attempt(c lock.Command) attempt {
	return func(deadline time.Time, done func(failed, transient bool)) {
		s.server.redis.Run(s.call(&c, deadline, s.read(outcomeTo(done))))
	}
}

// cleanup makes the cleanup of a release.
func (s *serverLock) cleanup(c lock.Command, done func(certain bool)) cleanup {
	return s.server.cleanup(s.attempt(c), max(c.MaxTTL, c.Lease), done)
}

// read returns a receiver that reads a reply and passes it to done.
func (s *serverLock) read(done func(Reply)) receive {
	return func(_ uint64, reply redisclient.Reply) {
		r := Reply{Result: s.lock.Read(reply)}
		if r.Outcome == lock.Refused {
			r.Busy = s.channels()
		}
		done(r)
	}
}

// receive makes a function a redisclient.Receiver.
type receive func(seq uint64, reply redisclient.Reply)

// Replied implements redisclient.Receiver.
func (f receive) Replied(seq uint64, reply redisclient.Reply) { f(seq, reply) }

// single is a serverLock that is not part of another lock, like most locks. It receives the replies to all its commands
// itself, so that no command allocates a receiver.
type single struct {
	serverLock
	to Receiver
}

// NewSingle returns the Backend for the lock of that form and name on one Redis.
func NewSingle(s *Server, form *forms.Form, name string, options *protocol.Options, to Receiver) Backend {
	return &single{serverLock: serverLock{server: s, lock: s.lock(form, name, options)}, to: to}
}

// Run implements Backend.
func (s *single) Run(c lock.Command, deadline time.Time) {
	if c.Kind == lock.Renew {
		s.renew(&c, deadline, s)
		return
	}
	if c.Kind == lock.ForceRelease {
		s.force(c, deadline)
		return
	}
	if call := s.call(&c, deadline, s); !s.to.Lend(c.Kind, call) {
		s.server.redis.Run(call)
	}
}

// force carries out a forced release.
func (s *single) force(c lock.Command, deadline time.Time) {
	run := func(c lock.Command) { s.server.redis.Run(s.call(&c, deadline, s)) }
	s.name(c, deadline, run, func(r Reply) { s.to.Replied(c.Seq, r) })
}

// Replied implements redisclient.Receiver.
func (s *single) Replied(seq uint64, reply redisclient.Reply) {
	s.to.Replied(seq, Reply{Result: s.lock.Read(reply)})
}

// CleanUp implements Backend.
func (s *single) CleanUp(c lock.Command, done func(certain bool)) {
	s.server.cleanups.start(s.cleanup(c, done))
}
