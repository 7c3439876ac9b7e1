package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// ofPermits is the variant of the permits that expire.
type permitsAdapter struct {
	*backend.ExpirableSemaphore
	s *lockState
}

func newPermitsVariant(s *lockState) kindAdapter {
	return permitsAdapter{backend.NewExpirableSemaphore(s.rt.server, s.key.name, s.rt.id), s}
}

func (v permitsAdapter) fresh() machine {
	client, _ := uuid.Parse(v.s.rt.id)
	return &permits{expirable.New(&v.s.rt.cfg.Config), [8]byte(client[:8])}
}

func (v permitsAdapter) draft(of machine) machine {
	next := *of.(*permits)
	return &next
}

func (v permitsAdapter) replaced(machine) {}
func (v permitsAdapter) settled(machine)  {}

func (v permitsAdapter) perform(e lock.Effect) {
	switch e.Kind {
	case lock.Send:
		v.send(e.Ref.(*expirable.Command))
	case expirable.Renewed:
		if call, ok := e.Ref.(*Call); ok {
			call.Permit.Until.Store(int64(e.Answer.Until))
		}
	}
}

func (v permitsAdapter) send(c *expirable.Command) {
	s, kind := v.s, lock.Release
	if c.Kind == expirable.Acquire {
		kind = lock.Acquire
	}
	lend := func(call redisio.Call) bool { return c.Kind != expirable.Renew && s.Lend(kind, call) }
	v.Run(c, time.Now().Add(c.Deadline-s.now), lend, func(r expirable.Result) {
		reply := &replied{state: s, seq: c.Seq, own: r}
		if c.Kind == expirable.Acquire && r.Served > 0 {
			reply.result.Outcome = lock.Done // something was taken
		}
		s.post(reply)
	})
}

func (v permitsAdapter) replied(m *replied) {
	v.s.handle(m, func(l machine, now lock.Instant) { l.(*permits).Replied(now, m.seq, m.own.(expirable.Result)) })
}

func (v permitsAdapter) called(call *Call) {
	switch call.Op {
	case OpReleaseID:
		v.releaseID(call, call.Permit.ID, call)
	case OpSetPermits:
		v.set(call, call.Permit.How, call.Permit.Count, call)
	}
}

func (v permitsAdapter) received(m any, sender *actor.PID) {
	switch m := m.(type) {
	case *messages.ReleaseByID:
		id, _ := ParsePermitID(m.PermitId) // it was checked
		v.releaseID(m, id, messageRequestOf(m, sender))
	case *messages.SetTotal:
		v.set(m, hows[m.How], m.Permits, messageRequestOf(m, sender))
	}
}

func (v permitsAdapter) releaseID(source any, id expirable.ID, by replier) {
	v.s.handle(source, func(l machine, now lock.Instant) { l.(*permits).ReleaseID(now, id, by) })
}

func (v permitsAdapter) set(source any, how expirable.How, n int64, by replier) {
	v.s.handle(source, func(l machine, now lock.Instant) { l.(*permits).Set(now, how, int(n), by) })
}

func (v permitsAdapter) describe(status *messages.Status, _ *lock.Snapshot, there *protocol.View) {
	status.FreePermits, status.TakenPermits, status.AllPermits = there.FreePermits, there.TakenPermits, there.AllPermits
}

func (v permitsAdapter) cleanups(d machine) (all []cleanup) {
	commands, ttl := d.(*permits).Cleanup(v.s.rt.Now())
	for i := range commands {
		all = append(all, cleanup{ttl, func(done func(certain bool)) { v.CleanUp(commands[i], ttl, done) }})
	}
	return all
}
