package actors

import (
	"context"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// replier is whoever made a request; to package lock it is the Ref of requests and answers.
type replier interface {
	// parent is the context with the span that its spans belong to; nil if it has no spans.
	parent() context.Context
	// asked is what was requested, of a lock of that kind.
	asked() Op
	kind() messages.Kind
	// leads reports whether it was asked for in order to lead.
	leads() bool
	// answered delivers the one answer to a request.
	answered(s *lockState, a lock.Answer)
	// lost and atRisk tell a holder about its hold.
	lost(s *lockState, a lock.Answer)
	atRisk(s *lockState, a lock.Answer)
	// over says that a granted hold has ended, however it did.
	over(s *lockState)
	// since is when a request was made, or a hold granted.
	since() lock.Instant
	// inspected answers an Inspect.
	inspected(s *lockState, status *messages.Status)
}

// messageRequest is a request that came as a message of package messages.
type messageRequest struct {
	op      Op
	lock    *messages.Lock
	replyTo *actor.PID
	// members are those of a MultiLock.
	members *Members
	// owner is nil for a request that belongs to nobody in particular.
	owner *owner
	// permit is the id of a permit, if showsPermit.
	permit      expirable.ID
	showsPermit bool
	// from is when an Acquire was asked for, and then when it was granted.
	from lock.Instant
	// within is its parent.
	within context.Context
}

func (l *messageRequest) asked() Op { return l.op }

func (l *messageRequest) reply(s *lockState, m proto.Message) (taken bool) {
	return l.tell(s, l.replyTo, m)
}

// tell sends what follows from the request, with the span that the request belongs to.
func (l *messageRequest) tell(s *lockState, pid *actor.PID, m proto.Message) (taken bool) {
	if l.within == nil {
		return s.rt.deliver(pid, m)
	}
	return s.rt.deliver(pid, WithTrace(l.within, m))
}

func (l *messageRequest) ownerPID() *actor.PID {
	if l.owner == nil {
		return nil
	}
	return l.owner.pid
}

func (l *messageRequest) parent() context.Context { return l.within }

func (l *messageRequest) kind() messages.Kind { return l.lock.GetKind() }

func (l *messageRequest) leads() bool { return false }

func (l *messageRequest) since() lock.Instant { return l.from }

func (l *messageRequest) answered(s *lockState, a lock.Answer) {
	if a.Kind == lock.Granted {
		l.from = s.now
		if l.owner != nil {
			l.owner.lost = 0
		}
	}
	if a.Kind == lock.NotGranted || a.Kind == lock.Granted && a.Count > 1 {
		s.owners.done(&s.keyActor, l.owner) // a re-entry is part of the hold that it joined
	}
	if !l.reply(s, l.message(s.rt, a)) && a.Kind == lock.Granted {
		s.giveBack(a.HoldID, l.lock.Mode)
	}
}

// message is an answer as package messages spells it.
func (l *messageRequest) message(rt *Runtime, a lock.Answer) proto.Message {
	reason := messages.Reason(a.Reason)
	switch a.Kind {
	case lock.Granted:
		permit := ""
		if l.showsPermit {
			permit = l.permit.String()
		}
		return &messages.Acquired{
			Lock: l.lock, HoldId: formatHoldID(a.HoldID), PermitId: permit, Owner: l.ownerPID(),
			HoldCount: int64(a.Count), Validity: durationpb.New(l.validity(rt, a.Until)), Token: l.token(a.Tokens), MemberTokens: l.memberTokens(a.Tokens),
		}
	case lock.NotGranted:
		if a.Reason == lock.Reentry && rt.foreign(l.ownerPID()) {
			a.Detail = reentryFromAfar
		}
		return &messages.NotAcquired{Lock: l.lock, Reason: reason, Ttl: duration(a.TTL), Detail: a.Detail}
	case lock.Freed:
		return &messages.Released{Lock: l.lock, HoldCount: int64(a.Count)}
	case lock.NotFreed:
		return &messages.NotReleased{Lock: l.lock, Reason: reason, Detail: a.Detail}
	case lock.Withdrawn:
		return &messages.Cancelled{Lock: l.lock, Withdrawn: int64(a.Count)}
	case expirable.Changed:
		return &messages.TotalSet{Lock: l.lock, Set: a.Count > 0}
	case lock.ForceReleased:
		return &messages.ForceReleased{Lock: l.lock, WasHeld: a.Count > 0}
	}
	return &messages.Failed{Lock: l.lock, Reason: reason, Detail: a.Detail}
}

func (l *messageRequest) lost(s *lockState, a lock.Answer) {
	if holder := l.ownerPID(); holder != nil {
		l.owner.lost = a.HoldID
		l.tell(s, holder, &messages.LeaseLost{
			Lock: l.lock, HoldId: formatHoldID(a.HoldID), Owner: holder, Token: l.token(a.Tokens),
			Reason: messages.Reason(a.Reason), Detail: a.Detail,
		})
	}
}

func (l *messageRequest) atRisk(s *lockState, a lock.Answer) {
	if holder := l.ownerPID(); holder != nil {
		l.tell(s, holder, &messages.LeaseAtRisk{
			Lock: l.lock, HoldId: formatHoldID(a.HoldID), Owner: holder, Token: l.token(a.Tokens),
			Validity: durationpb.New(l.validity(s.rt, a.Until)), Detail: a.Detail,
		})
	}
}

// token is the fencing token of a hold; a MultiLock's are memberTokens.
func (l *messageRequest) token(drawn []int64) int64 {
	if len(drawn) == 0 || l.lock.GetKind() != messages.Kind_KIND_FENCED {
		return 0
	}
	return drawn[0]
}

func (l *messageRequest) memberTokens(drawn []int64) []int64 {
	if l.members == nil {
		return nil
	}
	return l.members.Tokens(drawn)
}

func (l *messageRequest) over(s *lockState) { s.owners.done(&s.keyActor, l.owner) }

func (l *messageRequest) inspected(s *lockState, status *messages.Status) {
	status.Lock = l.lock
	l.reply(s, status)
}

// duration is absent for a negative one.
func duration(d time.Duration) *durationpb.Duration {
	if d < 0 {
		return nil
	}
	return durationpb.New(d)
}

func formatHoldID(id uint64) string { return strconv.FormatUint(id, 36) }

// parseHoldID gives 0, which no hold has, for anything that was never a hold id.
func parseHoldID(text string) uint64 {
	id, err := strconv.ParseUint(text, 36, 64)
	if err != nil {
		return 0
	}
	return id
}
