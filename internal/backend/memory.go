package backend

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// memory is what this process knows of the memory of a RedLock's server. A server that was
// started, flushed or promoted may have forgotten locks, and has no vote before they have
// expired. The time is measured here and not by the server, whose clock may be set.
type memory struct {
	mu    sync.Mutex
	name  string
	since lock.Instant // it exists at least since then
}

// seen records that a memory was at least that old.
func (m *memory) seen(name string, age time.Duration, now lock.Instant) {
	if name == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.name != name || now-age < m.since {
		m.name, m.since = name, now-age
	}
}

// server is the run id of the server, a part of its memory's name; empty if it is not known.
func (m *memory) server() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, _, _ := strings.Cut(m.name, ":")
	return id
}

// knownMemory is what to send to the server.
func (s *Server) knownMemory() protocol.Memory {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	known := protocol.Memory{Key: redisio.Memory(s.prefix), Name: s.memory.name}
	if known.Name != "" {
		known.Age = s.System.Now() - s.memory.since
	}
	return known
}

// meetTime bounds how long Meet waits for the servers.
const meetTime = 500 * time.Millisecond

// Meet asks the servers of a RedLock to identify themselves. It does not wait for servers that
// are down or hang: they are identified by their first vote.
func Discover(servers []*Server) {
	met := make(chan struct{})
	answers := &collect[struct{}]{n: len(servers), judge: whenAll(func([]struct{}) { close(met) })}
	deadline := time.Now().Add(meetTime)
	for _, s := range servers {
		call := protocol.InspectMemory(redisio.Memory(s.prefix), uuid.NewString(), deadline)
		call.To = receive(func(_ uint64, reply redisio.Reply) {
			if reply.Err == nil {
				s.memory.seen(reply.S[0], time.Duration(reply.N[0])*time.Millisecond, s.System.Now())
			}
			answers.add(struct{}{})
		})
		s.redis.Run(call)
	}
	select {
	case <-met:
	case <-time.After(meetTime):
	}
}

// Distinct returns an error if two systems of a RedLock are known to be on one server.
func Distinct(servers []*Server) error {
	first := map[string]int{}
	for i, s := range servers {
		id := s.memory.server()
		if id == "" {
			continue
		}
		if other, known := first[id]; known {
			return fmt.Errorf("systems %d and %d of the RedLock are on the same Redis server: each needs one of its own", other+1, i+1)
		}
		first[id] = i
	}
	return nil
}
