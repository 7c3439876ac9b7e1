package actors

import (
	"crypto/rand"
	"time"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// permits is the machine of an expirable semaphore.
type permits struct {
	expirable.Semaphore
	// system is how the ids of its permits begin.
	system [8]byte
}

func (p *permits) Acquire(now machine.Instant, req machine.Request) {
	call := req.Ref.(*request.Call)
	p.Semaphore.Acquire(now, expirable.Request{Request: req, Random: p.newPermitID(), Shown: call.ShowsPermit(), Total: call.TotalPermits()})
}

// newPermitID makes an id that begins with the System (see keyspace.PermitSystemOf), so that a reader
// knows which process has the permit. The rest is random: 64 bits, which cannot be guessed.
func (p *permits) newPermitID() (id machine.PermitID) {
	n := copy(id[:], p.system[:])
	_, _ = rand.Read(id[n:]) // it never fails
	return id
}

func (p *permits) Release(now machine.Instant, id uint64, owner machine.Owner, _ machine.Mode, ref any) {
	if first := p.First(owner); first != 0 {
		id = first
	}
	p.Semaphore.Release(now, id, ref.(*request.Call).ShowsPermit(), ref)
}

func (p *permits) Subscribed(now machine.Instant, _ uint64) { p.Semaphore.Subscribed(now) }

// What is for locks only is refused before it comes here, or is no more than a hint.

func (p *permits) ForceRelease(machine.Instant, machine.Mode, machine.Owners, any) {}
func (p *permits) Ensure(machine.Instant, uint64, time.Duration, any)              {}
func (p *permits) Transferred(machine.Instant, machine.Transfer)                   {}
func (p *permits) Suspect(machine.Instant)                                         {}
func (p *permits) Term() uint64                                                    { return 0 }

// LeaseUntil is not known: each permit has a lease of its own.
func (p *permits) LeaseUntil() machine.Instant { return 0 }

func (p *permits) Effects() (machine.Effect, bool) {
	e, ok := p.Semaphore.Effects()
	if !ok {
		return machine.Effect{}, false
	}
	switch {
	case e.Kind == machine.Send:
		return machine.Effect{Kind: machine.Send, Ref: e.Command}, true
	case e.Kind == machine.Reply && e.Answer.Kind == machine.Granted:
		e.Ref.(*request.Call).Permitted(e.Permit, e.Answer.Until)
	}
	return machine.Effect{Kind: e.Kind, Ref: e.Ref, Answer: e.Answer}, true
}

func (p *permits) Snapshot() machine.Snapshot {
	held, waiters, until := p.Semaphore.Snapshot()
	return machine.Snapshot{HeldHere: held > 0, Count: held, Waiters: waiters, Until: until}
}

// permitsAdapter is the kindAdapter of expirable semaphores.
type permitsAdapter struct {
	*backend.ExpirableSemaphore
	s *lockState
}

func newPermitsVariant(s *lockState) kindAdapter {
	return permitsAdapter{backend.NewExpirableSemaphore(s.rt.server, s.key.name, s.rt.id), s}
}

func (v permitsAdapter) fresh() machine.Machine {
	client, _ := uuid.Parse(v.s.rt.id)
	return &permits{expirable.New(&v.s.rt.cfg.Config), [8]byte(client[:8])}
}

func (v permitsAdapter) draft(of machine.Machine) machine.Machine {
	next := *of.(*permits)
	return &next
}

func (v permitsAdapter) replaced(machine.Machine) {}
func (v permitsAdapter) settled(machine.Machine)  {}

func (v permitsAdapter) perform(e machine.Effect) {
	switch e.Kind {
	case machine.Send:
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
	v.s.handle(m, func(l machine.Machine, now machine.Instant) {
		l.(*permits).Replied(now, m.seq, m.own.(expirable.Result))
	})
}

func (v permitsAdapter) request(call *request.Call) bool {
	switch call.Op {
	case request.OpReleaseID:
		v.s.handle(call, func(l machine.Machine, now machine.Instant) { l.(*permits).ReleaseID(now, call.Permit.ID, call) })
	case request.OpSetPermits:
		v.s.handle(call, func(l machine.Machine, now machine.Instant) {
			l.(*permits).Set(now, hows[call.Permit.How], int(call.Permit.Count), call)
		})
	default:
		return false
	}
	return true
}

var hows = map[messages.PermitsHow]expirable.How{
	messages.PermitsHow_PERMITS_HOW_TRY: expirable.Try, messages.PermitsHow_PERMITS_HOW_TOTAL: expirable.Total, messages.PermitsHow_PERMITS_HOW_ADD: expirable.Add,
}

func (v permitsAdapter) describe(status *messages.Status, _ *machine.Snapshot, there *protocol.View) {
	status.FreePermits, status.TakenPermits, status.AllPermits = there.FreePermits, there.TakenPermits, there.AllPermits
}

func (v permitsAdapter) retires() {}
func (v permitsAdapter) abandon() {}

func (v permitsAdapter) giveUp(reason machine.Reason, detail string, _ bool) (all []cleanup) {
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
