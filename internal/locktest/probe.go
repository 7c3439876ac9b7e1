package locktest

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// Probe is an actor, as far as others can tell: a process that keeps what it is sent.
type Probe struct {
	Site *Site
	Pid  *actor.PID
	Mail chan any
	// notice sees every message first, and reports whether it is to be kept.
	Notice func(m any) bool
}

func (s *Site) Probe(t testing.TB) *Probe {
	t.Helper()
	p := &Probe{Site: s, Mail: make(chan any, 4096)}
	registry := s.Actors.ProcessRegistry
	var ok bool
	if p.Pid, ok = registry.Add(p, "probe"+registry.NextId()); !ok {
		t.Fatal("the probe's name is taken")
	}
	t.Cleanup(p.Die)
	return p
}

// SendUserMessage implements actor.Process.
func (p *Probe) SendUserMessage(_ *actor.PID, m any) {
	_, m, _ = actor.UnwrapEnvelope(m)
	if p.Notice == nil || p.Notice(m) {
		p.Mail <- m
	}
}

// SendSystemMessage implements actor.Process.
func (p *Probe) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (p *Probe) Stop(*actor.PID) {}

// Die makes whatever is sent from now on a dead letter.
func (p *Probe) Die() { p.Site.Actors.ProcessRegistry.Remove(p.Pid) }

// Send sends a request to the guardian, with the probe as its sender.
func (p *Probe) Send(m any) {
	p.Site.Actors.Root.RequestWithCustomSender(p.Site.Guardian(), m, p.Pid)
}

// Next is the next message, which must be an M.
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

// Ask sends a request and gives its answer, which must be an M.
func Ask[M any](t testing.TB, p *Probe, m any) M {
	t.Helper()
	p.Send(m)
	return Next[M](t, p)
}
