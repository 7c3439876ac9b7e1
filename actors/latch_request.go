package actors

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// latchMessageOf reads a message; nil if it is no request about a latch.
func latchMessageOf(m any, sender *actor.PID) *permitMessage {
	request, ok := m.(interface{ GetLatch() *messages.Latch })
	if !ok {
		return nil
	}
	p := &permitMessage{latch: request.GetLatch(), replyTo: sender}
	p.Latch, p.Name = true, p.latch.GetName()
	switch m := m.(type) {
	case *messages.AwaitLatch:
		p.Op, p.Wait = PermitAcquire, m.GetWait().AsDuration()
		p.Try = m.GetWait() != nil && p.Wait == 0
	case *messages.CountDown:
		p.Op, p.ID = PermitRelease, m.GetId()
	case *messages.CancelAwait:
		p.Op = PermitCancel
	case *messages.TrySetCount:
		p.Op, p.N = PermitSet, m.GetCount()
	case *messages.InspectLatch:
		p.Op = PermitInspect
	default:
		return nil
	}
	return p
}

// latchMessage is an answer about a latch as package messages spells it.
func (p *permitMessage) latchMessage(a *semaphore.Answer) proto.Message {
	switch a.Kind {
	case semaphore.Granted:
		return &messages.LatchOpened{Latch: p.latch}
	case semaphore.Refused:
		return &messages.LatchRefused{Latch: p.latch, Reason: messages.Reason(a.Reason), Detail: a.Detail}
	}
	return &messages.LatchChanged{Latch: p.latch, Done: a.Done, Count: a.N}
}

// CheckPermits returns an error if a request about a semaphore or a latch is not valid here.
func (r *Runtime) CheckPermits(q *PermitRequest) error {
	err := errors.Join(q.Check(), r.CheckName(q.Name))
	if err != nil || !q.Latch || !r.redis.Sharded() {
		return err
	}
	if full := r.cfg.KeyPrefix + q.Name; redisio.Slot(full) != redisio.Slot(redisio.LatchChannel(full)) {
		return fmt.Errorf("the latch's name %q does not work in a Redis Cluster with sharded pub/sub: Redisson puts it into braces for the channel, which is in another slot then; use no brace", q.Name)
	}
	return err
}
