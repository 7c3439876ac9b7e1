package backend

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// memory records the name and the age of the memory of a RedLock's server. A server that was started, flushed or
// promoted may have lost locks, and does not vote before they have expired. The time is measured here and not by the
// server, whose clock may be set.
type memory struct {
	mu         sync.Mutex
	name       string
	knownSince machine.Instant // the memory is not younger
}

// note records that a memory was at least that old.
func (m *memory) note(name string, age time.Duration, now machine.Instant) {
	if name == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.name != name || now-age < m.knownSince {
		m.name, m.knownSince = name, now-age
	}
}

// runID returns the run id of the server, a part of its memory's name; "" if unknown.
func (m *memory) runID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, _, _ := strings.Cut(m.name, ":")
	return id
}

// knownMemory returns the name and the age to send to the server.
func (s *Server) knownMemory() protocol.Memory {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	known := protocol.Memory{Key: keyspace.Memory(s.prefix), Name: s.memory.name}
	if known.Name != "" {
		known.Age = s.clock.Now() - s.memory.knownSince
	}
	return known
}

// discoverTime is the time that Discover waits for the servers.
const discoverTime = 500 * time.Millisecond

// Discover identifies the servers of a RedLock. It waits at most 500 ms for servers that are down or hang: these
// servers are identified by their first vote.
func Discover(servers []*Server) {
	answered := make(chan struct{})
	answers := &collect[struct{}]{n: len(servers), judge: whenAll(func([]struct{}) { close(answered) })}
	deadline := time.Now().Add(discoverTime)
	for _, s := range servers {
		call := protocol.InspectMemory(keyspace.Memory(s.prefix), uuid.NewString(), deadline)
		call.To = receive(func(_ uint64, reply redisclient.Reply) {
			if reply.Err == nil {
				s.memory.note(reply.S[0], time.Duration(reply.N[0])*time.Millisecond, s.clock.Now())
			}
			answers.add(struct{}{})
		})
		s.redis.Run(call)
	}
	select {
	case <-answered:
	case <-time.After(discoverTime):
	}
}

// Distinct returns an error if two systems of a RedLock are known to be on one server.
func Distinct(servers []*Server) error {
	first := map[string]int{}
	for i, s := range servers {
		id := s.memory.runID()
		if id == "" {
			continue
		}
		if other, known := first[id]; known {
			return fmt.Errorf("systems %d and %d of the RedLock are on the same Redis server: each needs its own server", other+1, i+1)
		}
		first[id] = i
	}
	return nil
}
