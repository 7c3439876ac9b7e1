package actors

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/request"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// permitsAdapter is the kindAdapter of expirable semaphores.
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
		if call := e.Ref.(*request.Call); call.Permit != nil {
			call.Permit.Until.Store(int64(e.Answer.Until))
		}
	}
}

func (v permitsAdapter) send(c *expirable.Command) {
	s, kind := v.s, lock.Release
	if c.Kind == expirable.Acquire {
		kind = lock.Acquire
	}
	lend := func(call redisclient.Call) bool { return c.Kind != expirable.Renew && s.Lend(kind, call) }
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

func (v permitsAdapter) request(call *request.Call) bool {
	switch call.Op {
	case request.OpReleaseID:
		v.s.handle(call, func(l machine, now lock.Instant) { l.(*permits).ReleaseID(now, call.Permit.ID, call) })
	case request.OpSetPermits:
		v.s.handle(call, func(l machine, now lock.Instant) {
			l.(*permits).Set(now, call.Permit.How, int(call.Permit.Count), call)
		})
	default:
		return false
	}
	return true
}

func (v permitsAdapter) describe(status *messages.Status, _ *lock.Snapshot, there *protocol.View) {
	status.FreePermits, status.TakenPermits, status.AllPermits = there.FreePermits, there.TakenPermits, there.AllPermits
}

func (v permitsAdapter) retires() {}
func (v permitsAdapter) abandon() {}

func (v permitsAdapter) giveUp(reason lock.Reason, detail string, _ bool) (all []cleanup) {
	before := v.s.endAll(reason, detail)
	commands, ttl := before.(*permits).Cleanup(v.s.rt.Now())
	for i := range commands {
		all = append(all, cleanup{ttl, func(done func(certain bool)) { v.CleanUp(commands[i], ttl, done) }})
	}
	return all
}

func (v permitsAdapter) late(m *replied) {
	if m.result.Outcome == lock.Done {
		v.s.cleanUpAgain()
	}
}
