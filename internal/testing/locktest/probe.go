package locktest

import (
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Probe is a process of an actor system, like an actor, that keeps the messages it is sent.
type Probe struct {
	Site *Site
	Pid  *actor.PID
	Mail chan any
	// Notice is called with every message first, and reports whether to keep it.
	Notice func(m any) bool

	mu       sync.Mutex
	watchers map[string]*actor.PID
}

// Probe starts a probe in the site's actor system; it dies when the test ends.
func (s *Site) Probe(t testing.TB) *Probe {
	t.Helper()
	p := &Probe{Site: s, Mail: make(chan any, 4096), watchers: map[string]*actor.PID{}}
	registry := s.Actors.ProcessRegistry
	var ok bool
	if p.Pid, ok = registry.Add(p, "probe"+registry.NextId()); !ok {
		t.Fatal("the probe's name is taken")
	}
	t.Cleanup(p.Die)
	return p
}

// SendUserMessage implements actor.Process. Only Notice gets warnings, since a busy machine may cause one.
func (p *Probe) SendUserMessage(_ *actor.PID, m any) {
	_, m, _ = actor.UnwrapEnvelope(m)
	keep := p.Notice == nil || p.Notice(m)
	if _, warning := m.(*messages.LeaseAtRisk); keep && !warning {
		p.Mail <- m
	}
}

// SendSystemMessage implements actor.Process.
func (p *Probe) SendSystemMessage(_ *actor.PID, m any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m := m.(type) {
	case *actor.Watch:
		p.watchers[m.Watcher.String()] = m.Watcher
	case *actor.Unwatch:
		delete(p.watchers, m.Watcher.String())
	}
}

// Stop implements actor.Process.
func (p *Probe) Stop(*actor.PID) {}

// Die turns all later messages into dead letters, and notifies the watchers.
func (p *Probe) Die() {
	registry := p.Site.Actors.ProcessRegistry
	registry.Remove(p.Pid)
	p.mu.Lock()
	watchers := p.watchers
	p.watchers = map[string]*actor.PID{}
	p.mu.Unlock()
	for _, watcher := range watchers {
		if process, there := registry.Get(watcher); there {
			process.SendSystemMessage(watcher, &actor.Terminated{Who: p.Pid})
		}
	}
}

// Send sends a request to the guardian, with the probe as its sender.
func (p *Probe) Send(m any) {
	p.Site.SendAs(p.Pid, m)
}

// Next returns the next message, which must be an M.
func Next[M any](t testing.TB, p *Probe) M {
	t.Helper()
	select {
	case m := <-p.Mail:
		if as, ok := m.(M); ok {
			return as
		}
		t.Fatalf("the probe was sent %T{%v}, want %T", m, m, *new(M))
	case <-time.After(redistest.Limit):
		t.Fatalf("the probe was sent nothing, want %T", *new(M))
	}
	panic("not reached")
}

// Ask sends a request and returns its answer, which must be an M.
func Ask[M any](t testing.TB, p *Probe, m any) M {
	t.Helper()
	p.Send(m)
	return Next[M](t, p)
}

// Future sends a request by a future and returns the answer, which must be an M.
func Future[M any](t testing.TB, s *Site, m any) M {
	t.Helper()
	answer, err := s.Actors.Root.RequestFuture(s.Guardian(), m, redistest.Limit).Result()
	if as, ok := answer.(M); ok && err == nil {
		return as
	}
	t.Fatalf("the future was sent %T{%v} (%v), want %T", answer, answer, err, *new(M))
	panic("not reached")
}

// TimedOutFuture sends a request whose future times out before the answer comes.
func TimedOutFuture(t testing.TB, s *Site, m any) {
	t.Helper()
	if answer, err := s.Actors.Root.RequestFuture(s.Guardian(), m, 10*time.Millisecond).Result(); err == nil {
		t.Fatalf("answered %T{%v}", answer, answer)
	}
}
