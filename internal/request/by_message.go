package request

import (
	"context"
	"reflect"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// ByMessage is the requester of a Call that came as a message of package messages.
type ByMessage struct {
	// message is the type of the message.
	message reflect.Type
	// correlationID is returned to the requester with each answer.
	correlationID string
	// lock, semaphore or latch is the subject of the message; the others are nil.
	lock      *messages.Lock
	semaphore *messages.Semaphore
	latch     *messages.Latch
	// replyTo gets the answer; nil if the message has no sender.
	replyTo *actor.PID
	// ownerPID is the actor that the request belongs to; nil if there is none.
	ownerPID *actor.PID
	// life is the process of replyTo when the request was posted; nil if it was dead or is on another node. A later
	// actor with the same PID gets no answer, since it would take a grant for its own.
	life actor.Process
	// ownerLife is the same for ownerPID.
	ownerLife actor.Process
	// permit is the Permit of the Call.
	permit Permit
	// Within is the parent of the spans of the request.
	Within context.Context
}

func (m *ByMessage) belongsTo(owner *actor.PID) {
	if owner != nil {
		m.ownerPID = owner
	}
}

// holder returns the actor that has the hold of the request and is notified of a loss; nil if there is none.
func (m *ByMessage) holder(call *Call) *actor.PID {
	if call.Record == nil {
		return nil
	}
	return m.ownerPID
}

func (m *ByMessage) Parent(*Call) context.Context       { return m.Within }
func (m *ByMessage) Owner() (*actor.PID, actor.Process) { return m.ownerPID, m.ownerLife }
func (m *ByMessage) Awaits() bool                       { return m.replyTo != nil }
func (m *ByMessage) MessageType() string                { return m.message.String() }

// traced returns a message that follows from the request, with the span that the request belongs to.
func (m *ByMessage) traced(message proto.Message) any {
	if m.Within == nil {
		return message
	}
	return WithTrace(m.Within, message)
}

// answer sends a message to the sender of the request.
func (m *ByMessage) answer(from Sender, message proto.Message) (taken bool) {
	if m.life == nil && !from.Foreign(m.replyTo) {
		return false
	}
	return from.DeliverTo(m.life, m.replyTo, m.traced(message))
}

func (m *ByMessage) Answered(from Sender, call *Call, a *machine.Answer) (taken bool) {
	if m.replyTo == nil {
		return false
	}
	return m.answer(from, m.Message(from, call, a))
}

// Message returns an answer as a message of package messages.
func (m *ByMessage) Message(from Sender, call *Call, a *machine.Answer) proto.Message {
	switch {
	case call.Count != nil && call.IsLatch():
		return m.latchMessage(a)
	case call.Count != nil:
		return m.semaphoreMessage(a)
	}
	reason := messages.Reason(a.Reason)
	switch a.Kind {
	case machine.Granted:
		var permits []string
		if call.ShowsPermit() {
			permits = call.Permit.IDs()
		}
		granted := &messages.Acquired{
			Lock: m.lock, HoldId: formatHoldID(a.HoldID), PermitIds: permits, Owner: m.holder(call),
			HoldCount: int64(a.Count), Validity: durationpb.New(m.validity(from, call, a.Until)), Token: m.token(a.Tokens),
			CorrelationId: m.correlationID,
		}
		if call.Members != nil {
			granted.MemberTokens = call.Members.Tokens(a.Tokens)
		}
		return granted
	case machine.NotGranted:
		if a.Reason == machine.Reentry && from.Foreign(m.holder(call)) {
			a.Detail = remoteReentryDetail
		}
		return &messages.NotAcquired{Lock: m.lock, Reason: reason, Ttl: Duration(a.TTL), Detail: a.Detail, CorrelationId: m.correlationID}
	case machine.Freed:
		return &messages.Released{Lock: m.lock, HoldCount: int64(a.Count), CorrelationId: m.correlationID}
	case machine.Extended:
		return &messages.Extended{
			Lock: m.lock, HoldId: formatHoldID(a.HoldID), Validity: durationpb.New(m.validity(from, call, a.Until)),
			CorrelationId: m.correlationID,
		}
	case machine.NotFreed:
		return &messages.NotReleased{Lock: m.lock, Reason: reason, Detail: a.Detail, CorrelationId: m.correlationID}
	case machine.Withdrawn:
		return &messages.Cancelled{Lock: m.lock, Withdrawn: int64(a.Count), CorrelationId: m.correlationID}
	case machine.Changed:
		return &messages.ExpirablePermitsSet{Lock: m.lock, Set: a.Done, CorrelationId: m.correlationID}
	case machine.ForceReleased:
		return &messages.ForceReleased{Lock: m.lock, WasHeld: a.Count > 0, CorrelationId: m.correlationID}
	}
	return &messages.Failed{Lock: m.lock, Reason: reason, Detail: a.Detail, CorrelationId: m.correlationID}
}

func (m *ByMessage) semaphoreMessage(a *machine.Answer) proto.Message {
	switch a.Kind {
	case machine.Granted:
		return &messages.PermitsAcquired{Semaphore: m.semaphore, Permits: int32(a.N), CorrelationId: m.correlationID}
	case machine.Freed:
		return &messages.PermitsReleased{Semaphore: m.semaphore, Released: a.Done, CorrelationId: m.correlationID}
	case machine.NotGranted, machine.NotFreed, machine.NotDone:
		return &messages.PermitsRefused{
			Semaphore: m.semaphore, Reason: messages.Reason(a.Reason), Detail: a.Detail, CorrelationId: m.correlationID,
		}
	case machine.Withdrawn:
		return &messages.PermitsChanged{Semaphore: m.semaphore, Done: true, Permits: int64(a.Count), CorrelationId: m.correlationID}
	}
	return &messages.PermitsChanged{Semaphore: m.semaphore, Done: a.Done, Permits: a.N, CorrelationId: m.correlationID}
}

func (m *ByMessage) latchMessage(a *machine.Answer) proto.Message {
	switch a.Kind {
	case machine.Granted:
		return &messages.LatchOpened{Latch: m.latch, CorrelationId: m.correlationID}
	case machine.NotGranted, machine.NotFreed, machine.NotDone:
		return &messages.LatchRefused{Latch: m.latch, Reason: messages.Reason(a.Reason), Detail: a.Detail, CorrelationId: m.correlationID}
	case machine.Withdrawn:
		return &messages.LatchChanged{Latch: m.latch, Done: true, Count: int64(a.Count), CorrelationId: m.correlationID}
	}
	return &messages.LatchChanged{Latch: m.latch, Done: a.Done, Count: a.N, CorrelationId: m.correlationID}
}

func (m *ByMessage) Lost(from Sender, call *Call, a *machine.Answer) {
	if holder := m.holder(call); holder != nil {
		from.DeliverTo(m.ownerLife, holder, m.traced(&messages.LeaseLost{
			Lock: m.lock, HoldId: formatHoldID(a.HoldID), Owner: holder, Token: m.token(a.Tokens),
			Reason: messages.Reason(a.Reason), Detail: a.Detail, CorrelationId: m.correlationID,
		}))
	}
}

func (m *ByMessage) AtRisk(from Sender, call *Call, a *machine.Answer) {
	if holder := m.holder(call); holder != nil {
		from.DeliverTo(m.ownerLife, holder, m.traced(&messages.LeaseAtRisk{
			Lock: m.lock, HoldId: formatHoldID(a.HoldID), Owner: holder, Token: m.token(a.Tokens),
			Validity: durationpb.New(m.validity(from, call, a.Until)), Detail: a.Detail, CorrelationId: m.correlationID,
		}))
	}
}

// token returns the fencing token of a hold of a fenced lock, and 0 for other kinds. A MultiLock has the tokens of its
// members.
func (m *ByMessage) token(drawn []int64) int64 {
	if len(drawn) == 0 || !TraitsOf(m.lock.GetKind()).Fenced {
		return 0
	}
	return drawn[0]
}

// validity returns the time for which the lease is valid for its owner. If the owner or the receiver is on another
// node, a margin is deducted, since that node's clock may run at another speed.
func (m *ByMessage) validity(from Sender, call *Call, until machine.Instant) machine.Instant {
	left := max(until-from.Now(), 0)
	if from.Foreign(m.holder(call)) || from.Foreign(m.replyTo) {
		left = max(left-machine.Margin(left), 0)
	}
	return left
}

func (m *ByMessage) Inspected(from Sender, _ *Call, status *messages.Status) {
	status.Lock, status.CorrelationId = m.lock, m.correlationID
	m.answer(from, status)
}

// Duration converts d; it returns nil if d is negative.
func Duration(d time.Duration) *durationpb.Duration {
	if d < 0 {
		return nil
	}
	return durationpb.New(d)
}

func formatHoldID(id uint64) string { return strconv.FormatUint(id, 36) }

// parseHoldID returns 0, which no hold has, for a text that was never a hold id.
func parseHoldID(text string) uint64 {
	id, err := strconv.ParseUint(text, 36, 64)
	if err != nil {
		return 0
	}
	return id
}
