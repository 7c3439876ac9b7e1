package actors

import (
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// requester is whoever made a request; to the core it is the Ref of tickets and answers.
type requester interface {
	// asked is what was requested.
	asked() Op
	// answered delivers the one answer to a request.
	answered(c *cell, a core.Answer)
	// lost and atRisk tell a holder about its hold.
	lost(c *cell, a core.Answer)
	atRisk(c *cell, a core.Answer)
	// over says that a granted hold has ended, however it did.
	over(c *cell)
	// inspected answers an Inspect.
	inspected(c *cell, s *messages.Status)
}

// letter is a request that came as a message of package messages.
type letter struct {
	op      Op
	lock    *messages.Lock
	replyTo *actor.PID
	// members are those of a MultiLock.
	members *Members
	// owner is nil for a request that belongs to nobody in particular.
	owner *owner
}

func (l *letter) asked() Op { return l.op }

func (l *letter) reply(c *cell, m proto.Message) (taken bool) { return c.rt.deliver(l.replyTo, m) }

func (l *letter) ownerPID() *actor.PID {
	if l.owner == nil {
		return nil
	}
	return l.owner.pid
}

func (l *letter) answered(c *cell, a core.Answer) {
	if a.Kind == core.NotGranted || a.Kind == core.Granted && a.Count > 1 {
		c.owners.done(c, l.owner) // a re-entry is part of the hold that it joined
	}
	if !l.reply(c, l.message(c.rt, a)) && a.Kind == core.Granted {
		c.giveBack(a.HoldID, l.lock.Mode)
	}
}

// message is an answer as package messages spells it.
func (l *letter) message(rt *Runtime, a core.Answer) proto.Message {
	reason := messages.Reason(a.Reason)
	switch a.Kind {
	case core.Granted:
		return &messages.Acquired{
			Lock: l.lock, HoldId: formatHoldID(a.HoldID), Owner: l.ownerPID(),
			HoldCount: int64(a.Count), Validity: durationpb.New(l.validity(rt, a.Until)), Token: l.token(a.Tokens), MemberTokens: l.memberTokens(a.Tokens),
		}
	case core.NotGranted:
		if a.Reason == core.Reentry && rt.foreign(l.ownerPID()) {
			a.Detail = reentryFromAfar
		}
		return &messages.NotAcquired{Lock: l.lock, Reason: reason, Ttl: duration(a.TTL), Detail: a.Detail}
	case core.Freed:
		return &messages.Released{Lock: l.lock, HoldCount: int64(a.Count)}
	case core.NotFreed:
		return &messages.NotReleased{Lock: l.lock, Reason: reason, Detail: a.Detail}
	case core.Withdrawn:
		return &messages.Cancelled{Lock: l.lock, Withdrawn: int64(a.Count)}
	case core.Forced:
		return &messages.ForceReleased{Lock: l.lock, WasHeld: a.Count > 0}
	}
	return &messages.Failed{Lock: l.lock, Reason: reason, Detail: a.Detail}
}

func (l *letter) lost(c *cell, a core.Answer) {
	if holder := l.ownerPID(); holder != nil {
		c.rt.deliver(holder, &messages.LeaseLost{
			Lock: l.lock, HoldId: formatHoldID(a.HoldID), Owner: holder, Token: l.token(a.Tokens),
			Reason: messages.Reason(a.Reason), Detail: a.Detail,
		})
	}
}

func (l *letter) atRisk(c *cell, a core.Answer) {
	if holder := l.ownerPID(); holder != nil {
		c.rt.deliver(holder, &messages.LeaseAtRisk{
			Lock: l.lock, HoldId: formatHoldID(a.HoldID), Owner: holder, Token: l.token(a.Tokens),
			Validity: durationpb.New(l.validity(c.rt, a.Until)), Detail: a.Detail,
		})
	}
}

// token is the fencing token of a hold; a MultiLock's are memberTokens.
func (l *letter) token(drawn []int64) int64 {
	if len(drawn) == 0 || l.lock.GetKind() != messages.Kind_KIND_FENCED {
		return 0
	}
	return drawn[0]
}

func (l *letter) memberTokens(drawn []int64) []int64 {
	if l.members == nil {
		return nil
	}
	return l.members.Tokens(drawn)
}

func (l *letter) over(c *cell) { c.owners.done(c, l.owner) }

func (l *letter) inspected(c *cell, s *messages.Status) {
	s.Lock = l.lock
	l.reply(c, s)
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
