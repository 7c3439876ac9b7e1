package actors

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// memory is what this process knows of the memory of its server, as one of a RedLock's: a
// server that was started, flushed, or has taken over from another, may have forgotten
// locks, and gets no vote before these have run out. How long that takes is measured here,
// and not by the server, whose clock may be set.
type memory struct {
	mu    sync.Mutex
	name  string
	since core.Instant // it exists at least since then
}

// seen takes note of a memory that was at least that old.
func (m *memory) seen(name string, age time.Duration, now core.Instant) {
	if name == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.name != name || now-age < m.since {
		m.name, m.since = name, now-age
	}
}

// known is what to tell the server.
func (r *Runtime) known() wire.Memory {
	m := &r.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	known := wire.Memory{Key: redisio.Memory(r.cfg.KeyPrefix), Name: m.name}
	if m.name != "" {
		known.Age = r.Now() - m.since
	}
	return known
}

// server is the run id of the server, a part of its memory's name; empty if it is not known.
func (m *memory) server() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, _, _ := strings.Cut(m.name, ":")
	return id
}

// meetTime bounds how long RedLock waits for the servers to say who they are.
const meetTime = 500 * time.Millisecond

// meet asks the servers who they are, from when on each is known. Those that are away or
// hang are not waited for: they are known from their first votes.
func meet(systems []*Runtime) {
	met := make(chan struct{})
	g := &gather[struct{}]{n: len(systems), judge: atLast(func([]struct{}) { close(met) })}
	deadline := time.Now().Add(meetTime)
	for _, r := range systems {
		call := wire.LookAtMemory(redisio.Memory(r.cfg.KeyPrefix), uuid.NewString(), deadline)
		call.To = acquaintance{r, func() { g.add(struct{}{}) }}
		r.redis.Run(call)
	}
	select {
	case <-met:
	case <-time.After(meetTime):
	}
}

// acquaintance is who awaits the reply to LookAtMemory.
type acquaintance struct {
	rt   *Runtime
	done func()
}

// Replied implements redisio.Receiver.
func (a acquaintance) Replied(_ uint64, reply redisio.Reply) {
	if reply.Err == nil {
		a.rt.memory.seen(reply.S[0], time.Duration(reply.N[0])*time.Millisecond, a.rt.Now())
	}
	a.done()
}

// distinct says which two of the systems are on one server, as far as is known.
func distinct(systems []*Runtime) error {
	first := map[string]int{}
	for i, r := range systems {
		server := r.memory.server()
		if server == "" {
			continue
		}
		if other, known := first[server]; known {
			return fmt.Errorf("systems %d and %d of the RedLock are on the same Redis server: each needs one of its own", other+1, i+1)
		}
		first[server] = i
	}
	return nil
}
