package backend

import (
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// member is a serverLock that is part of another lock.
type member struct {
	serverLock
	wire protocol.Member
	// granted is the last term to which a vote has granted the lock, or may have granted it.
	granted    atomic.Uint64
	unanswered unanswered // of a RedLock
}

func newMember(spec MemberSpec, options *protocol.Options) *member {
	l := spec.Server.lock(spec.Form, spec.Name, options)
	return &member{
		serverLock: serverLock{server: spec.Server, lock: l},
		wire:       protocol.Member{Lock: l, Mode: spec.Mode, Fenced: spec.Fenced},
	}
}

func (m *member) run(c lock.Command, deadline time.Time, done func(Reply)) {
	c, done = m.wire.Command(c), m.timeAnswer(deadline, done)
	if c.Kind == lock.Renew {
		m.renew(&c, deadline, m.read(done))
		return
	}
	run := func(c lock.Command) { m.server.redis.Run(m.call(&c, deadline, m.read(done))) }
	if c.Kind == lock.ForceRelease {
		m.name(c, deadline, run, done)
		return
	}
	run(c)
}

// vote runs an Acquire on one server of a RedLock. It records the age of the server's memory from the reply.
func (m *member) vote(c lock.Command, quarantine time.Duration, deadline time.Time, done func(Reply)) {
	m.mu.Lock()
	call := m.lock.Vote(&c, quarantine, m.server.knownMemory(), uuid.NewString(), deadline)
	m.mu.Unlock()
	read := m.read(m.timeAnswer(deadline, done))
	call.To = receive(func(seq uint64, reply redisclient.Reply) {
		if reply.Err == nil {
			age := time.Duration(0)
			name, out := protocol.Voted(reply)
			if out > 0 {
				age = quarantine - out
			}
			m.server.memory.note(name, age, m.server.clock.Now())
		}
		read(seq, reply)
	})
	m.server.redis.Run(call)
}

// releaseOf releases the lock if one of the owners, of any client, holds it.
func (m *member) releaseOf(owners []string, deadline time.Time, done func(Reply)) {
	m.mu.Lock()
	call := m.lock.ForceReleaseOf(owners, deadline)
	m.mu.Unlock()
	call.To = m.read(done)
	m.server.redis.Run(call)
}

func (m *member) cleanUp(c lock.Command, done func(certain bool)) {
	m.server.cleanups.start(m.release(c, done))
}

func (m *member) retryRelease(c lock.Command) { m.server.cleanups.add(m.release(c, nil)) }

func (m *member) release(c lock.Command, done func(certain bool)) cleanup {
	return m.cleanup(m.wire.Command(asRelease(c)), done)
}

func (m *member) inspect(deadline time.Time, done func(protocol.View, error)) {
	m.Inspect(deadline, done)
}

func (m *member) onlyServer() *Server { return m.server }

// mayHold reports whether a vote here has granted the lock to a term, or may have granted it.
func (m *member) mayHold(term uint64) bool { return m.granted.Load() >= term }
