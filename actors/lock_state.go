package actors

import (
	"log/slog"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// lockState is the state of a lock actor; see child.
type lockState struct {
	keyActor
	// format is how the lock is written in Redis. Requests for another format of the
	// same key are refused while this one is in use.
	format messages.Kind
	// client is the client part of the owner field.
	client string
	// kind is what a lock decides by, and variant what is special about lock actors of its kind.
	kind    lock.Kind
	variant kindAdapter
	// members are the locks that it is made of; none if it is one lock on one key.
	members []Member
	// subscribed are the channels that are subscribed; signals says which of them matter, nil if all do.
	subscribed []backend.Channel
	signals    *signals

	// until is shared with the holder: how long the hold is good for. A Hold may be kept for
	// longer than its lock actor lives, so it is no part of the lockState.
	until *atomic.Int64

	// lock is replaced by every event; now is when the last one was.
	lock machine
	now  lock.Instant
	// inspections are the requesters who await Redis's word on the lock.
	inspections map[replier]struct{}
	gauges      gauges
	shown       shown
	longs       longs
	// events are for the spans, nil if there is no tracer.
	events events

	// lender is the Call being handled, if its goroutine may be used for one command.
	lender *Call
	// leaving is set once the lock is given up.
	leaving *leaving
}

func newLockState(rt *Runtime, key lockKey, kind messages.Kind, members *Members) *lockState {
	s := &lockState{format: formatOf(kind), client: rt.id, until: new(atomic.Int64)}
	s.keyActor = rt.newChild(key, s)
	switch newVariant := variants[s.format]; {
	case newVariant != nil:
		s.variant = newVariant(s)
	case key.made == ofMembers:
		s.label, s.members = members.String(), members.sorted
		s.variant = lockAdapter{backend.All(members.parts(), s.newClientOptions(), s), s}
		s.kind, s.signals = lock.Kind{Parts: true, Tokens: members.fenced, WaitQueue: true}, &signals{}
	case key.made == ofServers:
		s.variant = lockAdapter{backend.Majority(serversOf(*rt.red.Load()), key.name, s.newClientOptions(), s), s}
		for _, each := range *rt.red.Load() {
			s.members = append(s.members, Member{Runtime: each, Name: key.name})
		}
		s.kind, s.signals = lock.Kind{Parts: true}, &signals{}
	default:
		s.variant = lockAdapter{backend.Single(rt.server, protocol.Kind(s.format), key.name, &rt.options, s), s}
		s.kind = kinds[s.format]
	}
	s.lock = s.variant.fresh()
	return s
}

// newClientOptions are for a lock actor whose keys are other lock actors' too: with a client id of
// its own none of them takes its terms for forgotten ones of theirs, and releases them.
func (s *lockState) newClientOptions() *protocol.Options {
	options := s.rt.options
	options.Client = s.rt.sibling()
	s.client = options.Client
	return &options
}

// sibling returns a new client id, of which it is seen that it is one of this system's.
func (r *Runtime) sibling() string {
	system := redisio.SystemOf(r.id)
	return system + uuid.NewString()[len(system):]
}

// kinds is how the formats of a lock on one key differ in what they decide by.
var kinds = map[messages.Kind]lock.Kind{
	messages.Kind_KIND_REENTRANT:  {Tokens: 1, WaitQueue: true},
	messages.Kind_KIND_FAIR:       {Queued: true},
	messages.Kind_KIND_READ_WRITE: {Shares: true, WaitQueue: true},
}

// step applies an event to a copy of the lock and, if that went well, replaces the
// lock by it. A panic on the way leaves the lock as it was.
func (s *lockState) step(event func(l machine, now lock.Instant)) {
	s.now = s.rt.Now()
	before, next := s.lock, s.variant.draft(s.lock)
	event(next, s.now)
	s.lock = next
	s.variant.replaced(before)
}

// handle applies an event and carries out what follows from it. source is the
// message that the event came from.
func (s *lockState) handle(source any, event func(l machine, now lock.Instant)) {
	s.step(event)
	s.accepted = source
	s.carryOut()
	s.lender = nil
}

// giveBack releases a hold whose grant reached nobody. It is for the event that granted it.
func (s *lockState) giveBack(id uint64, mode messages.Mode) {
	s.lender = nil // whose request was another
	s.step(func(l machine, now lock.Instant) {
		l.Release(now, id, 0, lock.Mode(mode), &messageRequest{op: OpRelease})
	})
	s.until.Store(int64(s.lock.LeaseUntil()))
}

// carryOut does what the lock wants done, also what a crash has left undone.
func (s *lockState) carryOut() {
	s.show() // before a holder hears of its hold
	for {
		e, more := s.lock.Effects()
		if !more {
			break
		}
		s.perform(&e)
	}
	s.variant.settled(s.lock)
	s.gauge()
	if s.closing && s.idle() {
		s.retire()
		return
	}
	s.setAlarm()
}

// perform does one thing that the lock wants done. A panic on the way, as in a process of
// the host's that is sent an answer, must not keep the others from being done. Who must be
// told is told before anything is counted or logged.
func (s *lockState) perform(e *lock.Effect) {
	defer s.survive()
	switch e.Kind {
	case lock.Reply:
		if e.Answer.Kind == lock.Granted {
			s.rt.server.Outlive(e.Answer.Until)
		}
		by := e.Ref.(replier)
		since := by.since()
		by.answered(s, e.Answer)
		s.measureAnswer(by, e.Answer, since)
		s.traceAnswer(by, e.Answer, since)
		if e.Answer.Reason == lock.NoPermits {
			s.rt.unset.refused(s.rt, s.label, e.Answer.Detail)
		}
		if e.Answer.Noticed {
			s.noticed(by, e.Answer.Detail)
		}
		if e.Answer.Kind == lock.ForceReleased && e.Answer.Count > 0 {
			s.warnSharers()
		}
	case lock.NotifyLost:
		e.Ref.(replier).lost(s, e.Answer)
		s.measureLoss(e.Ref.(replier), e.Answer.Reason)
		s.logLoss(e)
		s.note(e.Ref.(replier), "lost", reasonAttribute, reasonWord(e.Answer.Reason))
	case lock.NotifyAtRisk:
		e.Ref.(replier).atRisk(s, e.Answer)
		s.measure(risks, subjectOf(e.Ref.(replier).kind()), 0, 1)
		s.note(e.Ref.(replier), "at_risk", "", "")
		s.rt.host.Warn("lease at risk", append(s.describe(e.Ref.(replier), e.Term, s.now), "left", rounded(e.Answer.Until-s.now), "detail", e.Answer.Detail)...)
	case lock.HoldEnded:
		by := e.Ref.(replier)
		by.over(s)
		s.measure(holdTime, subjectOf(by.kind()), 0, int64(s.now-by.since()))
		s.traceHold(by)
	case lock.Subscribe:
		s.listen(e.Term)
	case lock.Unsubscribe:
		s.stopListening()
	case lock.LeaveToExpire:
		s.rt.server.LeaveToExpire(e.Answer.Until)
	default:
		s.variant.perform(*e)
	}
}

// closeLines is how many of the holds that Close ends are logged one by one.
const closeLines = 10

// logLoss logs that a hold was lost. That of a hold that Close ended needs no attention.
func (s *lockState) logLoss(e *lock.Effect) {
	level := slog.LevelWarn
	if e.Answer.Reason == lock.Closed {
		level = slog.LevelInfo
		if s.rt.closed.Load() && s.rt.closedHolds.Add(1) > closeLines {
			return // Close logs how many
		}
	}
	args := s.describe(e.Ref.(replier), e.Term, s.rt.Now())
	s.rt.host.Log(level, "lease lost", append(args, "reason", messages.Reason(e.Answer.Reason), "detail", e.Answer.Detail)...)
}

// noticed measures and logs a loss that a release has found out: to whoever watches it is a loss like others.
func (s *lockState) noticed(by replier, detail string) {
	s.measureLoss(by, lock.Gone)
	s.rt.host.Warn("lease lost", "lock", s.label, "kind", by.kind(), "reason", messages.Reason_REASON_GONE, "detail", detail)
}

// idle reports whether no request awaits an answer.
func (s *lockState) idle() bool { return s.lock.Idle() && len(s.inspections) == 0 }

// setAlarm sees to it that a tick comes when the lock wants one.
func (s *lockState) setAlarm() {
	at, wanted := s.lock.NextWake()
	if remindAt, too := s.remindAt(); too && (!wanted || remindAt < at) {
		at, wanted = remindAt, true
	}
	s.keyActor.setAlarm(at, wanted, s.idle())
}

func (s *lockState) actor() actor.Actor { return &lockActor{s} }

func (s *lockState) ownerGone(owner lock.Owner) {
	s.step(func(l machine, now lock.Instant) { l.OwnerGone(now, owner) })
}

func (s *lockState) spawned() { s.registerWithMembers() }

func (s *lockState) gone() { s.unregisterWithMembers() }

func (s *lockState) isLeaving() bool { return s.leaving != nil }

func (s *lockState) receiveLast(m any, sender *actor.PID) { s.leaving.receive(s, m, sender) }

func (s *lockState) checkLeft() { s.leaving.check(s) }
