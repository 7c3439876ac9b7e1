package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// pool is the machine of a semaphore or a latch.
type pool struct {
	semaphore.Pool
	latch bool
}

// forgotten is the effect that something may not have been given back.
const forgotten = expirable.Renewed + 1

func (p *pool) Acquire(now machine.Instant, req machine.Request) {
	q := semaphore.Request{ID: req.ID, N: int(req.Ref.(*request.Call).Count.N), Owner: req.Owner, Deadline: req.Deadline, Try: req.Try, Ref: req.Ref}
	if p.latch {
		p.Wait(now, q)
	} else {
		p.Pool.Acquire(now, q)
	}
}

func (p *pool) Release(now machine.Instant, _ uint64, _ machine.Owner, _ machine.Mode, ref any) {
	if c := ref.(*request.Call).Count; p.latch {
		p.CountDown(now, c.ID, ref)
	} else {
		p.Pool.Release(now, int(c.N), c.IfExists, ref)
	}
}

func (p *pool) Subscribed(now machine.Instant, _ uint64) { p.Pool.Subscribed(now) }
func (p *pool) Close(now machine.Instant)                { p.Pool.Close(now, machine.Closed, "the system is closing") }

// What is for locks only is refused before it comes here, or is no more than a hint.

func (p *pool) ForceRelease(machine.Instant, machine.Mode, machine.Owners, any) {}
func (p *pool) Ensure(machine.Instant, uint64, time.Duration, any)              {}
func (p *pool) Transferred(machine.Instant, machine.Transfer)                   {}
func (p *pool) Suspect(machine.Instant)                                         {}
func (p *pool) Term() uint64                                                    { return 0 }
func (p *pool) LeaseUntil() machine.Instant                                     { return 0 }
func (p *pool) Outstanding() (holders []machine.Holder, pending []any)          { return nil, nil }

func (p *pool) Load() (holds, waiters int, first any) { return 0, p.Waiters(), p.Next() }
func (p *pool) Snapshot() machine.Snapshot            { return machine.Snapshot{Waiters: p.Waiters()} }

func (p *pool) Effects() (e machine.Effect, ok bool) {
	of := p.Pool.Effects()
	if of == nil {
		return e, false
	}
	e.Kind, e.Ref = effectKinds[of.Kind], of.Ref
	if of.Kind == semaphore.Send {
		e.Ref = of.Command
		return e, true
	}
	a := &e.Answer
	a.HandedOn, a.Done, a.N, a.TTL, a.Reason, a.Detail = of.Answer.HandedOn, of.Answer.Done, of.Answer.N, of.Answer.TTL, of.Answer.Reason, of.Answer.Detail
	if of.Kind == semaphore.Reply {
		a.Kind = answerKind(of.Answer.Kind, of.Ref.(*request.Call).Op)
	}
	return e, true
}

var effectKinds = [...]machine.EffectKind{
	semaphore.Send: machine.Send, semaphore.Reply: machine.Reply, semaphore.Subscribe: machine.Subscribe, semaphore.Unsubscribe: machine.Unsubscribe,
	semaphore.Forgotten: forgotten,
}

// answerKind is that of an answer in the terms of all lock actors.
func answerKind(kind semaphore.AnswerKind, op request.Op) machine.AnswerKind {
	switch {
	case kind == semaphore.Refused:
		return request.RefusalKind(op)
	case kind == semaphore.Granted && op == request.OpAcquire:
		return machine.Granted
	case kind == semaphore.Returned:
		return machine.Freed
	}
	return machine.Changed
}

// semaphoreAdapter is the kindAdapter of semaphores and latches.
type semaphoreAdapter struct {
	backend *backend.Semaphore
	s       *lockState
	// spare is memory for the next draft.
	spare *pool
	// rest is what an actor that has left still has to give back. It is shared with what brings replies.
	rest atomic.Pointer[rest]
}

func newSemaphoreAdapter(s *lockState) kindAdapter {
	v := &semaphoreAdapter{s: s, spare: new(pool)}
	if v.latch() {
		v.backend = backend.NewLatch(s.rt.server, s.key.name, s.rt.commandClient(), v)
	} else {
		v.backend = backend.NewSemaphore(s.rt.server, s.key.name, s.rt.commandClient(), v)
	}
	return v
}

func (v *semaphoreAdapter) latch() bool { return v.s.format == messages.Kind_KIND_LATCH }

func (v *semaphoreAdapter) fresh() machine.Machine {
	if v.latch() {
		return &pool{semaphore.NewLatch(&v.s.rt.cfg.Config), true}
	}
	return &pool{semaphore.New(&v.s.rt.cfg.Config), false}
}

func (v *semaphoreAdapter) draft(of machine.Machine) machine.Machine {
	next := v.spare
	*next = *of.(*pool)
	if !next.HasNextNumber() {
		next.SetNextNumber(v.s.rt.terms.Add(1))
	}
	return next
}

func (v *semaphoreAdapter) replaced(before machine.Machine) { v.spare = before.(*pool) }
func (v *semaphoreAdapter) settled(machine.Machine)         {}

func (v *semaphoreAdapter) perform(e machine.Effect) {
	switch e.Kind {
	case machine.Send:
		v.send(*e.Ref.(*semaphore.Command))
	case forgotten:
		v.forgotten(e.Answer.Detail)
	}
}

// send has a command carried out. It may be called on any goroutine, and so may forgotten.
func (v *semaphoreAdapter) send(c semaphore.Command) {
	v.backend.Run(c, time.Now().Add(c.Deadline-v.s.rt.Now())) // for the timers of package time
}

// forgotten says that something may not have been given back.
func (v *semaphoreAdapter) forgotten(detail string) {
	rt := v.s.rt
	rt.server.LeaveToExpire(rt.Now() + request.MaxLease)
	if v.latch() {
		rt.forgottenCounts.Store(true)
		rt.host.Error("count-downs may be missing", "latch", v.s.label, "detail", detail)
		return
	}
	rt.forgottenPermits.Store(true)
	rt.host.Error("permits may stay taken though no process has them", "semaphore", v.s.label, "detail", detail)
}

// Replied implements backend.PermitReceiver.
func (v *semaphoreAdapter) Replied(number uint64, r semaphore.Result) {
	v.s.post(&replied{state: v.s, seq: number, own: r})
}

func (v *semaphoreAdapter) replied(m *replied) {
	v.s.handle(m, func(l machine.Machine, now machine.Instant) { l.(*pool).Replied(now, m.seq, m.own.(semaphore.Result)) })
}

// request handles the requests that do not wait for permits.
func (v *semaphoreAdapter) request(call *request.Call) bool {
	kind, is := changes[call.Op]
	if is {
		v.s.handle(call, func(l machine.Machine, now machine.Instant) {
			call.From = now
			l.(*pool).Change(now, semaphore.Change{Kind: kind, N: call.Count.N, TTL: call.Count.TTL, Ref: call})
		})
	}
	return is
}

var changes = map[request.Op]semaphore.CommandKind{
	request.OpSetPermits: semaphore.Set, request.OpAddPermits: semaphore.Add, request.OpDrain: semaphore.Drain, request.OpInspect: semaphore.Inspect,
}

func (v *semaphoreAdapter) Channels(uint64) []backend.Channel {
	return []backend.Channel{v.backend.Channel()}
}

// Only locks are inspected for the log, and a request to inspect a semaphore is one of those above.

func (v *semaphoreAdapter) Inspect(time.Time, func(protocol.View, error))                {}
func (v *semaphoreAdapter) describe(*messages.Status, *machine.Snapshot, *protocol.View) {}

// retires removes the record of the last command at the end of the System, unless a copy of a command may still need it:
// it expires then. An actor that was idle leaves the record, so that lockkeeper ls finds what was used a while ago; the
// next actor must not remove it while a copy of a command may need it.
func (v *semaphoreAdapter) retires() {
	number, certain := v.s.lock.(*pool).Sent()
	switch {
	case v.s.closing && number != 0 && certain:
		v.backend.Forget(number)
	case !v.s.closing && !certain:
		v.s.rt.renewCommandClient()
	}
}

// giveUp answers all requests. What has to be given back still is, unless Redis is awaited no longer.
func (v *semaphoreAdapter) giveUp(reason machine.Reason, detail string, awaits bool) []cleanup {
	s := v.s
	if !s.lock.Idle() {
		s.rt.renewCommandClient()
	}
	s.step(func(l machine.Machine, now machine.Instant) {
		if awaits {
			l.(*pool).Stop(now, reason, detail)
		} else {
			l.(*pool).Abandon(now, reason, detail)
		}
	})
	s.performAll()
	left := &rest{of: v, pool: s.lock.(*pool).Pool}
	if s.lock = v.fresh(); left.pool.Idle() {
		return nil
	}
	v.rest.Store(left)
	return []cleanup{{request.MaxLease, func(done func(bool)) { left.whenDone(done) }}}
}

func (v *semaphoreAdapter) late(m *replied) {
	if left := v.rest.Load(); left != nil {
		left.event(func(now machine.Instant) {
			result := m.own.(semaphore.Result)
			left.pool.Replied(now, m.seq, result)
			if result.Err != nil && !left.pool.Idle() { // nothing wakes the pool after a failure
				left.pool.Abandon(now, machine.Closed, "the actor was stopped, and then: "+result.Err.Error())
			}
		})
	}
}

func (v *semaphoreAdapter) abandon() {
	if left := v.rest.Load(); left != nil {
		left.event(func(now machine.Instant) {
			left.pool.Abandon(now, machine.Closed, "the Lockkeeper system was closed before Redis confirmed it")
		})
	}
}

// rest is what is left of a pool when its actor has left: all requests are answered, and only what has to be given back
// still is. Replies come on any goroutine then.
type rest struct {
	of *semaphoreAdapter

	mu   sync.Mutex // guards what follows
	pool semaphore.Pool
	done func(certain bool)
}

// whenDone has done called once nothing is left to give back.
func (r *rest) whenDone(done func(certain bool)) {
	r.event(func(machine.Instant) { r.done = done })
}

// event applies an event, and does what follows from it.
func (r *rest) event(event func(now machine.Instant)) {
	defer r.of.s.survive()
	if done := r.apply(event); done != nil {
		done(true) // or it was reported as forgotten
	}
}

// apply returns what to call if nothing is left.
func (r *rest) apply(event func(now machine.Instant)) (done func(certain bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt := r.of.s.rt
	if !r.pool.HasNextNumber() {
		r.pool.SetNextNumber(rt.terms.Add(1))
	}
	event(rt.Now())
	for e := r.pool.Effects(); e != nil; e = r.pool.Effects() {
		switch e.Kind {
		case semaphore.Send:
			r.of.send(*e.Command)
		case semaphore.Forgotten:
			r.of.forgotten(e.Answer.Detail)
		}
	}
	if r.pool.Idle() {
		done, r.done = r.done, nil
	}
	return done
}

// Redis keeps the last command of each client about a semaphore or a latch, in a record that lasts for an hour: a copy of
// the command that arrives late is not carried out again.

// commandClient is the client id under which new actors of semaphores and latches send their commands.
func (r *Runtime) commandClient() string { return *r.commands.Load() }

// renewCommandClient is for an actor that leaves while one of its commands is not confirmed. The next
// actor's commands then count as another client's, so that they do not make that command late.
func (r *Runtime) renewCommandClient() {
	client := r.sibling()
	r.commands.Store(&client)
}
