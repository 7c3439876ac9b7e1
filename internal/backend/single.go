package backend

import (
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// single is one lock on one Redis.
type single struct {
	server *Server
	lock   *protocol.Lock
	mu     sync.Mutex // guards the making of calls
}

// call makes the call of a command, whose reply goes to the receiver.
func (s *single) call(c *lock.Command, deadline time.Time, to redisclient.Receiver) redisclient.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.lock.Call(c, deadline)
	call.To = to
	return call
}

// renew sends a renewal, which shares a script with other renewals. Its reply may come after the deadline.
func (s *single) renew(c *lock.Command, deadline time.Time, to redisclient.Receiver) {
	deadline = s.server.redis.RenewalDeadline(deadline, deadline.Add(c.Latest-c.Deadline))
	s.mu.Lock()
	renewal := s.lock.Renewal(c, deadline)
	s.mu.Unlock()
	renewal.To = to
	s.server.redis.Renew(renewal)
}

// Inspect implements Backend.
func (s *single) Inspect(deadline time.Time, done func(protocol.View, error)) {
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
func (s *single) Channels(term uint64) []Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []Channel{{s.server, s.lock.ChannelOf(term), s.lock.Waiters()}}
}

func (s *single) channels() []Channel { return []Channel{{s.server, s.lock.Channel, s.lock.Waiters()}} }

// attempt returns the attempt of a cleanup.
func (s *single) attempt(c lock.Command) attempt {
	return func(deadline time.Time, done func(failed, transient bool)) {
		s.server.redis.Run(s.call(&c, deadline, s.read(outcomeTo(done))))
	}
}

// cleanup makes the cleanup of a release.
func (s *single) cleanup(c lock.Command, done func(certain bool)) cleanup {
	return s.server.cleanup(s.attempt(c), max(c.MaxTTL, c.Lease), done)
}

// read returns a receiver that reads a reply and passes it to done.
func (s *single) read(done func(Reply)) receive {
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

// direct is a single that is not part of another lock, like most locks. It receives the replies to all its commands
// itself, so that no command allocates a receiver.
type direct struct {
	single
	to Receiver
}

// Single returns the Backend for the lock of that form and name on one Redis.
func Single(s *Server, form *forms.Form, name string, options *protocol.Options, to Receiver) Backend {
	return &direct{single: single{server: s, lock: s.lock(form, name, options)}, to: to}
}

// Run implements Backend.
func (d *direct) Run(c lock.Command, deadline time.Time) {
	if c.Kind == lock.Renew {
		d.renew(&c, deadline, d)
		return
	}
	if c.Kind == lock.ForceRelease {
		d.force(c, deadline)
		return
	}
	if call := d.call(&c, deadline, d); !d.to.Lend(c.Kind, call) {
		d.server.redis.Run(call)
	}
}

// force carries out a forced release.
func (d *direct) force(c lock.Command, deadline time.Time) {
	run := func(c lock.Command) { d.server.redis.Run(d.call(&c, deadline, d)) }
	d.name(c, deadline, run, func(r Reply) { d.to.Replied(c.Seq, r) })
}

// Replied implements redisclient.Receiver.
func (d *direct) Replied(seq uint64, reply redisclient.Reply) {
	d.to.Replied(seq, Reply{Result: d.lock.Read(reply)})
}

// CleanUp implements Backend.
func (d *direct) CleanUp(c lock.Command, done func(certain bool)) {
	d.server.cleanups.start(d.cleanup(c, done))
}
