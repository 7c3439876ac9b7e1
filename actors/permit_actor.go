package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
)

// permitState is the state of the actor of a semaphore or a latch; see child.
type permitState struct {
	keyActor
	backend *backend.Semaphore
	// pool is replaced by every event; spare is memory for the next one.
	pool, spare *semaphore.Pool
	// leaving: it was given up. sent is how many requests were sent before the gate was closed, and
	// left says that the guardian has been asked to stop the actor.
	leaving, left bool
	sent          uint64
	reason        lock.Reason
	detail        string
	// waiters is how many of them the metrics were told of.
	waiters int
	// remains is set when the actor has stopped, and is shared with those who bring replies then.
	remains atomic.Pointer[permitRemains]
}

func newPermitState(rt *Runtime, key lockKey) *permitState {
	s := &permitState{}
	s.keyActor = rt.newChild(key, s)
	pool := semaphore.New(&rt.cfg.Config)
	if s.backend = backend.NewSemaphore(rt.server, key.name, rt.commandClient(), s); key.made == ofLatch {
		pool = semaphore.NewLatch(&rt.cfg.Config)
		s.backend = backend.NewLatch(rt.server, key.name, rt.commandClient(), s)
	}
	s.pool, s.spare = &pool, new(semaphore.Pool)
	return s
}

// permitActor turns messages, timers and replies into events of its pool and carries out what
// follows, as a lockActor does for its lock.
type permitActor struct{ *permitState }

func (s *permitState) actor() actor.Actor { return &permitActor{s} }

func (s *permitActor) Receive(ctx actor.Context) {
	m := s.began(ctx)
	defer func() { s.ctx = nil }()
	if s.leaving {
		s.receiveLast(m, ctx.Sender())
		return
	}
	switch m := m.(type) {
	case *actor.Started:
		s.started(ctx.Self())
		s.stopAlarm() // after a crash: whatever it was set to, it is set anew
		s.carryOut()  // and what the crash has left undone
	case *actor.Terminated:
		s.owners.terminated(&s.keyActor, m.Who)
		s.carryOut()
	case shutdown:
		s.closing = true
		s.handle(m, func(p *semaphore.Pool, now lock.Instant) { p.Close(now, lock.Closed, "the system is closing") })
	case abandon:
		s.abandon(m)
	case *actor.Stopping:
		s.stopping()
	default:
		s.receive(m, ctx.Sender())
	}
}

// receive handles what comes as long as the actor lives.
func (s *permitState) receive(m any, sender *actor.PID) {
	switch m := m.(type) {
	case *permitReplied:
		s.handle(m, func(p *semaphore.Pool, now lock.Instant) { p.Replied(now, m.number, m.result) })
	case tick:
		if s.retireIfIdle() {
			s.leaveRecord()
		} else {
			s.handle(m, func(p *semaphore.Pool, now lock.Instant) { p.Tick(now) })
		}
	case unlocked:
		s.handle(m, func(p *semaphore.Pool, now lock.Instant) { p.Signal(now) })
	case listening:
		s.handle(m, func(p *semaphore.Pool, now lock.Instant) { p.Subscribed(now) })
	case *Call: // an OpList
		s.accepted = m
		m.complete(&Outcome{Status: s.listed()})
		s.carryOut()
	case *PermitCall:
		if m.withdrawn.Load() {
			s.accepted = m
			m.complete(&semaphore.Answer{Kind: semaphore.Refused, Reason: lock.CancelledByRequest})
			return
		}
		var id, target uint64
		if m.Op == PermitAcquire {
			id = s.newID()
			m.id.Store(id)
		} else if m.target != nil {
			target = m.target.id.Load()
		}
		s.requested(m, &m.PermitRequest, m, semaphore.Request{ID: id}, target)
	default:
		p := permitMessageOf(m, sender)
		if p == nil {
			return
		}
		req := semaphore.Request{ID: s.newID()}
		if sender != nil && !isFuture(sender) {
			switch p.Op {
			case PermitAcquire:
				p.owner = s.owners.of(&s.keyActor, sender)
				req.Owner = p.owner.id
			case PermitCancel:
				req.Owner = s.owners.number(sender)
			}
		}
		s.requested(m, &p.PermitRequest, p, req, 0)
	}
}

// requested makes a request an event.
func (s *permitState) requested(m any, q *PermitRequest, by permitReplier, req semaphore.Request, target uint64) {
	req.N, req.Try, req.Ref = int(q.N), q.Try, by
	s.handle(m, func(p *semaphore.Pool, now lock.Instant) {
		q.from = now
		req.Deadline = deadline(now, q.Wait)
		switch {
		case q.Op == PermitAcquire && q.Latch:
			p.Wait(now, req)
		case q.Op == PermitAcquire:
			p.Acquire(now, req)
		case q.Op == PermitRelease && q.Latch:
			p.CountDown(now, q.ID, by)
		case q.Op == PermitRelease:
			p.Release(now, int(q.N), q.IfExists, by)
		case q.Op == PermitCancel:
			p.Cancel(now, target, req.Owner, by)
		default:
			p.Change(now, semaphore.Change{Kind: changes[q.Op], N: q.N, TTL: q.TTL, Ref: by})
		}
	})
}

var changes = map[PermitOp]semaphore.CommandKind{
	PermitSet: semaphore.Set, PermitAdd: semaphore.Add, PermitDrain: semaphore.Drain, PermitInspect: semaphore.Inspect,
}

// step applies an event to a copy of the pool and, if that went well, replaces the pool by it.
func (s *permitState) step(event func(p *semaphore.Pool, now lock.Instant)) {
	next := s.spare
	*next = *s.pool
	if !next.HasNextNumber() {
		next.SetNextNumber(s.rt.terms.Add(1))
	}
	event(next, s.rt.Now())
	s.pool, s.spare = next, s.pool
}

// handle applies an event and carries out what follows from it. source is the message that the event
// came from.
func (s *permitState) handle(source any, event func(p *semaphore.Pool, now lock.Instant)) {
	s.step(event)
	s.accepted = source
	s.carryOut()
}

// carryOut does what the pool wants done, also what a crash has left undone.
func (s *permitState) carryOut() {
	s.performAll()
	switch {
	case s.leaving:
		s.checkLeft()
	case s.closing && s.pool.Idle():
		if s.retire() {
			s.removeRecord()
		}
		return
	}
	if !s.left {
		at, wanted := s.pool.NextWake()
		s.setAlarm(at, wanted, s.pool.Idle())
	}
}

func (s *permitState) performAll() {
	for e := s.pool.Effects(); e != nil; e = s.pool.Effects() {
		s.perform(e)
	}
	s.gauge()
}

// perform does one thing that the pool wants done. A panic on the way, as in a process of the host's
// that is sent an answer, must not keep the others from being done.
func (s *permitState) perform(e *semaphore.Effect) {
	defer s.survive()
	switch e.Kind {
	case semaphore.Send:
		s.send(*e.Command)
	case semaphore.Reply:
		by := e.Ref.(permitReplier)
		s.measureAnswer(by.request(), &e.Answer) // first: once it is answered, the memory may be another request's
		if e.Answer.Reason == lock.NoPermits {
			s.rt.unset.refused(s.rt, s.label, e.Answer.Detail)
		}
		if taken := by.permitAnswered(s, &e.Answer); !taken && e.Answer.Kind == semaphore.Granted && e.Answer.N > 0 {
			s.step(func(p *semaphore.Pool, now lock.Instant) { p.Release(now, int(e.Answer.N), true, nil) })
		}
	case semaphore.Subscribe:
		s.rt.deliver(s.rt.subscriber, &subscribe{state: &s.keyActor, channel: s.backend.Channel()})
	case semaphore.Unsubscribe:
		s.rt.deliver(s.rt.subscriber, &unsubscribe{state: &s.keyActor, channel: s.backend.Channel()})
	case semaphore.Forgotten:
		s.forgotten(e.Answer.Detail)
	}
}

// send has a command carried out. It may be called on any goroutine, and so may forgotten.
func (s *permitState) send(c semaphore.Command) {
	s.backend.Run(c, time.Now().Add(c.Deadline-s.rt.Now())) // for the timers of package time
}

// forgotten says that something may not have been given back.
func (s *permitState) forgotten(detail string) {
	s.rt.server.LeaveToExpire(s.rt.Now() + MaxLease)
	if s.key.made == ofLatch {
		s.rt.forgottenCounts.Store(true)
		s.rt.host.Error("count-downs may be missing", "latch", s.label, "detail", detail)
		return
	}
	s.rt.forgottenPermits.Store(true)
	s.rt.host.Error("permits may stay taken though nobody has them", "semaphore", s.label, "detail", detail)
}

// permitReplied brings the outcome of a command back to its actor.
type permitReplied struct {
	state  *permitState
	number uint64
	result semaphore.Result
}

// IgnoreDeadLetterLogging implements a marker of proto.actor.
func (*permitReplied) IgnoreDeadLetterLogging() {}

// Replied implements backend.PermitReceiver.
func (s *permitState) Replied(number uint64, r semaphore.Result) {
	s.post(&permitReplied{state: s, number: number, result: r})
}

// tooLate handles a reply that comes when the actor has stopped: what a command took is given back.
func (m *permitReplied) tooLate() {
	if remains := m.state.remains.Load(); remains != nil {
		remains.replied(m)
	}
}

// permitRemains is what is left of a permitState when its actor has stopped: everybody is answered, and
// only what has to be given back still is. Replies come on any goroutine then.
type permitRemains struct {
	mu   sync.Mutex // guards pool
	pool semaphore.Pool
}

// replied handles a reply, and does what follows from it. Nothing wakes the pool after a failure, so
// that it ends then.
func (r *permitRemains) replied(m *permitReplied) {
	s := m.state // of which nothing is used but what never changes
	defer s.survive()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := s.rt.Now()
	if !r.pool.HasNextNumber() {
		r.pool.SetNextNumber(s.rt.terms.Add(1))
	}
	r.pool.Replied(now, m.number, m.result)
	if err := m.result.Err; err != nil && !r.pool.Idle() {
		r.pool.Abandon(now, lock.Closed, "the actor was stopped, and then: "+err.Error())
	}
	for e := r.pool.Effects(); e != nil; e = r.pool.Effects() {
		switch e.Kind {
		case semaphore.Send:
			s.send(*e.Command)
		case semaphore.Forgotten:
			s.forgotten(e.Answer.Detail)
		}
	}
}

func (s *permitState) refuse(m any, sender *actor.PID, reason lock.Reason, detail string) {
	if call, lists := m.(*Call); lists {
		call.refuse(reason, detail)
		return
	}
	s.rt.refusePermits(m, sender, reason, detail)
}

// giveUp refuses all who wait. What has to be given back still is.
func (s *permitState) giveUp(reason lock.Reason, detail string) {
	s.rt.renewCommandClient()
	s.rt.table.drop(&s.keyActor)
	s.leaving, s.sent, s.reason, s.detail = true, s.gate.close(), reason, detail
	s.step(func(p *semaphore.Pool, now lock.Instant) { p.Close(now, reason, detail) })
	s.carryOut()
}

func (s *permitState) isLeaving() bool { return s.leaving }

func (s *permitState) receiveLast(m any, sender *actor.PID) {
	s.accepted = m
	switch m.(type) {
	case *actor.Stopping:
		s.stopping()
	case abandon:
		s.abandon(m)
	case *permitReplied, tick:
		s.receive(m, sender)
	default:
		s.refuse(m, sender, s.reason, s.detail)
	}
	s.checkLeft()
}

// checkLeft leaves as soon as no request awaits an answer, and nothing has to be given back.
func (s *permitState) checkLeft() {
	if s.pool.Idle() && s.seen >= s.sent && !s.left {
		s.left = true
		s.stopAlarm()
		s.rt.deliver(s.rt.guardian, &retired{state: &s.keyActor})
	}
}

// abandon ends the wait for Redis.
func (s *permitState) abandon(m any) {
	s.closing = true
	s.handle(m, func(p *semaphore.Pool, now lock.Instant) {
		p.Abandon(now, lock.Closed, "the Lockkeeper system was closed before Redis confirmed it")
	})
}

// stopping handles a stop that the guardian may not have asked for: nobody is to come any more, and
// all are answered. What has to be given back still is, once.
func (s *permitState) stopping() {
	s.stopAlarm()
	if !s.pool.Idle() {
		s.rt.renewCommandClient()
	}
	s.rt.table.drop(&s.keyActor)
	s.gate.close()
	s.step(func(p *semaphore.Pool, now lock.Instant) { p.Stop(now, lock.Closed, "the actor was stopped") })
	s.performAll()
	s.remains.Store(&permitRemains{pool: *s.pool})
}

func (s *permitState) ownerGone(owner lock.Owner) {
	s.step(func(p *semaphore.Pool, now lock.Instant) { p.OwnerGone(now, owner) })
}

func (s *permitState) spawned() {}

func (s *permitState) gone() {}
